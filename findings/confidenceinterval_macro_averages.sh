#!/usr/bin/env bash
# confidenceinterval 1.0.5: intervals of macro averages are too wide by a factor of 2.5, or too narrow.
#
# Guess: the analytical 95 % interval of f1_score, precision_score and recall_score with average="macro" contains the true
#        value in about 95 of 100 samples, as that of average="micro" does, and is as wide as 1.96 standard deviations of
#        the score over samples.
# Seen:  with two balanced classes the interval of F1 is 2.5 times as wide, and contains the truth always. With a rare
#        class, that of precision is a quarter too narrow and contains it in 5 of 6 samples. The covariance of the
#        confusion matrix is computed as a product by element of a vector with itself, which gives no matrix of
#        covariances. The scores are right.
# Means: F1 of two methods looks undecided where it is not, and precision looks decided where it is not.
#
# Output seen (300 samples):
#   2 equal classes, F1: contains the truth in 100%, half width 0.074 instead of 0.029
#   2 equal classes, precision: contains the truth in 98%, half width 0.033 instead of 0.029
#   2 equal classes, recall: contains the truth in 98%, half width 0.033 instead of 0.029
#   one class of 10%, F1: contains the truth in 99%, half width 0.049 instead of 0.036
#   one class of 10%, precision: contains the truth in 84%, half width 0.026 instead of 0.036
#   one class of 10%, recall: contains the truth in 99%, half width 0.037 instead of 0.030
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q confidenceinterval==1.0.5 scikit-learn==1.9.1 statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6
env/bin/python -W ignore - <<'PYTHON'
import confidenceinterval
import numpy as np
from sklearn import metrics

SCORES = {"F1": "f1_score", "precision": "precision_score", "recall": "recall_score"}


def sample(random, count, share):
    truth = (random.random(count) < share).astype(int)
    return truth, np.where(random.random(count) < 0.9, truth, 1 - truth)


factors = {}
coverages = {}
for name, share, count in (("2 equal classes", 0.5, 400), ("one class of 10%", 0.1, 1000)):
    random = np.random.default_rng(0)
    population = sample(random, 1_000_000, share)
    samples = [sample(random, count, share) for _ in range(300)]
    for score, function in SCORES.items():
        value = getattr(metrics, function)(*population, average="macro")
        rows = [getattr(confidenceinterval, function)(*pair, average="macro") for pair in samples]
        low, high = np.array([row[1] for row in rows]).T
        width, right = np.mean(high - low) / 2, 1.96 * np.std([row[0] for row in rows])
        covered = np.mean((low <= value) & (value <= high))
        print(
            f"{name}, {score}: contains the truth in {covered:.0%}, half width {width:.3f} instead of {right:.3f}"
        )
        factors[name, score] = width / right
        coverages[name, score] = covered
assert factors["2 equal classes", "F1"] > 2, "this has changed"
assert coverages["one class of 10%", "precision"] < 0.87, "this has changed"
PYTHON
