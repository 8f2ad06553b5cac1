#!/usr/bin/env bash
# continuum 1.2.7: forgetting and backward transfer leave out the task before the last, so after two tasks both are 0.
#
# Guess: of two tasks whose first falls from 90 % to 0 %, Logger.forgetting ("eq. 3" of Chaudhry et al., 2018) is 0.9,
#        and backward_transfer is -0.9. forward_transfer looks at tasks before they are learnt. For more tasks, both
#        transfers are those of Díaz-Rodríguez et al. (2018), by whose divisor the code divides.
# Seen:  the sums end one task early, and are divided by the number of all of them: after two tasks forgetting and
#        backward transfer are 0 for any accuracies, and "remembering" is 1. After three they are too small.
#        forward_transfer is the mean accuracy on tasks that were learnt already. accuracy_A is right. No warning.
# Means: fine-tuning that forgets everything looks perfect, and in longer sequences the newest loss is missing. Compute
#        these from the matrix of accuracies.
#
# Output seen (accuracies after each task: forgetting, backward transfer, remembering, forward transfer):
#   [0.9, 0.1], [0.0, 0.9]: 0.00, 0.00, 1.00, 0.00; right: 0.90, -0.90, 0.10, 0.10
#   [0.9, 0.1, 0.2], [0.5, 0.8, 0.3], [0.2, 0.4, 0.9]: 0.35, -0.23, 0.77, 0.37; right: 0.55, -0.50, 0.50, 0.20
#   [0.9, 0.1, 0.1], [0.9, 0.9, 0.1], [0.9, 0.0, 0.9]: 0.00, 0.00, 1.00, 0.60; right: 0.45, -0.30, 0.70, 0.10
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 numpy==2.4.6
env/bin/pip install -q --no-deps continuum==1.2.7 # its data sets need torchvision and scikit-image, its metrics do not
env/bin/python -W ignore - <<'PYTHON'
import sys
import sysconfig
import types

import numpy as np

package = types.ModuleType("continuum")  # the package without continuum/__init__.py, which imports the data sets
package.__path__ = [sysconfig.get_paths()["purelib"] + "/continuum"]
sys.modules["continuum"] = package
from continuum.metrics import Logger  # noqa: E402


def logged(accuracies):
    count = len(accuracies)
    logger = Logger(list_subsets=["test"])
    for row in accuracies:
        tasks = np.repeat(np.arange(count), 100)
        right = np.tile(np.arange(100), count) < np.repeat(np.multiply(row, 100).round(), 100)
        labels = tasks % 2
        logger.add([np.where(right, labels, 1 - labels), labels, tasks], subset="test")
        transfers = [logger.backward_transfer, logger.remembering, logger.forward_transfer]
        values = [logger.forgetting, *transfers, logger.accuracy_A]
        logger.end_task()
    return values


def defined(accuracies):
    table = np.array(accuracies)
    count = len(table)
    before = np.tril_indices(count, -1)
    forgetting = (table[:-1, :-1].max(axis=0) - table[-1, :-1]).mean()
    backward = (table - np.diag(table))[before].mean()
    forward = table[np.triu_indices(count, 1)].mean()
    return [forgetting, backward, 1 - abs(min(backward, 0)), forward, table[np.tril_indices(count)].mean()]


def text(values):
    return ", ".join(f"{value + 0.0:.2f}" for value in values[:4])


EXPECTED = {
    ((0.9, 0.1), (0.0, 0.9)): [0, 0, 1, 0],
    ((0.9, 0.1, 0.2), (0.5, 0.8, 0.3), (0.2, 0.4, 0.9)): [0.35, -0.7 / 3, 2.3 / 3, 1.1 / 3],
    ((0.9, 0.1, 0.1), (0.9, 0.9, 0.1), (0.9, 0.0, 0.9)): [0, 0, 1, 0.6],
}
for accuracies, expected in EXPECTED.items():
    found, right = logged(accuracies), defined(accuracies)
    print(f"{', '.join(str(list(row)) for row in accuracies)}: {text(found)}; right: {text(right)}")
    assert np.isclose(found[4], right[4])
    assert np.allclose(found[:4], expected), "this has changed"
PYTHON
