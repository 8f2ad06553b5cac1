#!/usr/bin/env bash
# river 0.26.1: ROCAUC of a calibrated model of a rare class is 0.5, and the worse of two models gets the larger value.
#
# Guess: the documentation says that the error is small "as long as the predicted probabilities are well calibrated", and
#        that the metric compares models reliably in any case: so a few hundredths.
# Seen:  the curve has ten thresholds that are 0.11 apart. Calibrated probabilities of a class of 3 % lie below
#        the first, so the model has an area of 0.5. A worse model, calibrated too, that knows a few certain instances
#        has a larger area. No warning.
# Means: models of rare rhythms or events look like guesses, and a comparison picks the worse. Take RollingROCAUC, which
#        ranks the instances of a window, or n_thresholds=100 and more.
#
# Output seen (20,000 instances, 3.3 % of the class; both models know the true probability given what they see):
#   sees a risk: exact 0.733, ROCAUC 0.500, with 100 thresholds 0.731
#   sees a rare marker: exact 0.622, ROCAUC 0.622, with 100 thresholds 0.622
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q river==0.26.1 numpy==2.4.6 scipy==1.17.1
env/bin/python - <<'PYTHON'
import numpy as np
from river import metrics
from scipy.stats import rankdata

COUNT = 20_000
generator = np.random.default_rng(0)
risk = 0.1 * generator.random(COUNT) ** 3
marker = generator.random(COUNT) < 0.01
labels = generator.random(COUNT) < np.where(marker, 0.8, risk)
MODELS = {
    "sees a risk": 0.01 * 0.8 + 0.99 * risk,
    "sees a rare marker": np.where(marker, 0.8, 0.1 / 4),
}


def exact(scores):
    positive, negative = np.sum(labels), np.sum(~labels)
    ranks = rankdata(scores)
    return (np.sum(ranks[labels]) - positive * (positive + 1) / 2) / (positive * negative)


def streamed(scores, thresholds):
    metric = metrics.ROCAUC(n_thresholds=thresholds)
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        metric.update(label, score)
    return metric.get()


areas = {}
for name, scores in MODELS.items():
    assert abs(np.mean(scores) - np.mean(labels)) < 0.002
    right, found, finer = exact(scores), streamed(scores, 10), streamed(scores, 100)
    print(f"{name}: exact {right:.3f}, ROCAUC {found:.3f}, with 100 thresholds {finer:.3f}")
    areas[name] = right, found
(risk_area, risk_found), (marker_area, marker_found) = areas.values()
assert risk_area > marker_area + 0.05
assert abs(risk_found - 0.5) < 1e-9 and marker_found > risk_found + 0.05, "this has changed"
PYTHON
