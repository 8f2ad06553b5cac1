#!/usr/bin/env bash
# scikit-posthocs 0.17.1: posthoc_wilcoxon pairs rows by their order in the table, so other orders give other p values.
#
# Guess: a paired test of a long table of scores gives the same p for any order of its rows, as posthoc_nemenyi_friedman
#        of the same library does, or asks for the column that says what belongs together.
# Seen:  posthoc_wilcoxon has no such column. The first row of a method is paired with the first row of the other one.
#        Runs that finished in another order are paired with runs on other patient splits: p = 0.002 for the sorted table
#        and 0.49 to 0.70 for five orders of the same rows, without a warning. sort=True sorts by method only.
# Means: the p of a table of runs in the order in which they finished says nothing about the methods. Sort by split
#        and method before, or pivot.
#
# Output seen:
#   sorted by split: p = 0.00195
#   in the order of finishing, 0: p = 0.62
#   in the order of finishing, 1: p = 0.49
#   in the order of finishing, 2: p = 0.62
#   in the order of finishing, 3: p = 0.70
#   in the order of finishing, 4: p = 0.49
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q scikit-posthocs==0.17.1 scipy==1.17.1 pandas==3.0.3 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
import pandas as pd
from scikit_posthocs import posthoc_nemenyi_friedman, posthoc_wilcoxon

warnings.simplefilter("error")
generator = np.random.default_rng(0)
splits = pd.DataFrame({"split": np.arange(10), "ease": generator.normal(0.8, 0.05, 10)})
runs = splits.merge(pd.DataFrame({"method": ["clops", "er"], "gain": [0.01, 0.0]}), how="cross")
runs["auc"] = runs.ease + runs.gain + generator.normal(0, 0.002, 20)  # the same difference in each split


def wilcoxon(table):
    return posthoc_wilcoxon(table, val_col="auc", group_col="method", sort=True).loc["clops", "er"]


def nemenyi(table):
    given = {"y_col": "auc", "group_col": "method", "block_col": "split", "block_id_col": "split"}
    return posthoc_nemenyi_friedman(table, melted=True, **given).loc["clops", "er"]


right = wilcoxon(runs)
print(f"sorted by split: p = {right:.5f}")
assert right < 0.005
for seed in range(5):
    finished = runs.sample(frac=1, random_state=seed)
    found = wilcoxon(finished)
    print(f"in the order of finishing, {seed}: p = {found:.2f}")
    assert found > 0.05, "this has changed"
    assert np.isclose(nemenyi(finished), nemenyi(runs))
PYTHON
