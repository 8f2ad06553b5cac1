#!/usr/bin/env bash
# venn-abers 1.5.4: classes are those of the calibration labels, and a missing one gives "probabilities" below 0.
#
# Guess: VennAbersCalibrator gives as many columns as the outputs have, or raises if the calibration set lacks a class.
# Seen:  with one of three classes missing it returns two columns for the three of p_test, and takes the problem for one
#        of two classes, 0 and 1. Without class 0 or 1 most rows are the same, with one column below 0 and one above 1.
#        Two classes with labels 1 and 2, or -1 and 1, instead of 0 and 1 give such values, too. Nothing is raised, and
#        there is no warning. The documentation says "Calibration set labels".
# Means: a rare rhythm that the calibration patients do not have, or a class that a later task brings, changes all
#        columns. Check np.unique(y_cal) before, and number the classes from 0.
#
# Output seen (outputs of three classes that are calibrated already):
#   all classes: 3 columns, first row 0.19 0.58 0.23 of 0.16 0.68 0.15
#   without class 0: 2 columns, first row -0.48 1.48 of 0.16 0.68 0.15
#   without class 1: 2 columns, first row -0.10 1.10 of 0.16 0.68 0.15
#   without class 2: 2 columns, first row 0.31 0.69 of 0.16 0.68 0.15
#   two classes, labels [0, 1]: 0.14 0.22 0.52
#   two classes, labels [1, 2]: 1.05 1.07 1.61
#   two classes, labels [-1, 1]: -2.33 -1.00 0.10
#   two classes, isotonic regressions of scikit-learn: 0.14 0.22 0.52
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q venn-abers==1.5.4 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1 pandas==3.0.3
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from sklearn.isotonic import IsotonicRegression
from venn_abers import VennAbersCalibrator

warnings.simplefilter("error", UserWarning)
warnings.simplefilter("error", RuntimeWarning)


def calibrated(outputs, labels, tested):
    return VennAbersCalibrator().predict_proba(p_cal=outputs, y_cal=labels, p_test=tested)


def text(values):
    return " ".join(f"{value:.2f}" for value in values)


generator = np.random.default_rng(0)
outputs = generator.dirichlet([1, 1, 1], 300)
labels = np.array([generator.choice(3, p=row) for row in outputs])
tested = generator.dirichlet([1, 1, 1], 50)
for missing in (None, 0, 1, 2):
    kept = labels != missing if missing is not None else np.ones(300, dtype=bool)
    found = calibrated(outputs[kept], labels[kept], tested)
    name = "all classes" if missing is None else f"without class {missing}"
    print(f"{name}: {found.shape[1]} columns, first row {text(found[0])} of {text(tested[0])}")
    assert found.shape == (50, 3 if missing is None else 2), "this has changed"
    if missing == 0:
        assert found.min() < 0 and found.max() > 1, "this has changed"

scores = generator.uniform(size=80)
positive = (generator.uniform(size=80) < scores).astype(int)
asked = np.array([0.1, 0.3, 0.5])
results = {}
for names in ([0, 1], [1, 2], [-1, 1]):
    both = np.column_stack([1 - scores, scores])
    results[str(names)] = calibrated(both, np.array(names)[positive], np.column_stack([1 - asked, asked]))[:, 1]
    print(f"two classes, labels {names}: {text(results[str(names)])}")
right = []
for score in asked:
    low, high = (
        IsotonicRegression().fit(np.append(scores, score), np.append(positive, label)).predict([score])[0]
        for label in (0, 1)
    )
    right.append(high / (1 - low + high))
print(f"two classes, isotonic regressions of scikit-learn: {text(right)}")
assert np.allclose(results["[0, 1]"], right)
assert np.abs(results["[1, 2]"] - right).min() > 0.3, "this has changed"
assert np.abs(results["[-1, 1]"] - right).min() > 0.3, "this has changed"
PYTHON
