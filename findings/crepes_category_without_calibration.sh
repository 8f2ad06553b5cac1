#!/usr/bin/env bash
# crepes 0.9.1: a Mondrian category without calibration data gets the prediction interval [0, 0].
#
# Guess: predict_int warns and returns the interval from -inf to inf, as it does for a category with too few calibration
#        instances, or raises.
# Seen:  instances of a category that no calibration instance has keep the zeros that the result is initialised with.
#        With y_min and y_max the interval is one of the bounds. The percentiles of a predictive system are 0, and
#        smoothed p values are random numbers. There is no warning, and evaluate averages the zero widths in.
# Means: the intervals of a new hospital or device have no width and contain nothing, and make the mean width look better.
#        Compare the categories before: np.isin(test_bins, calibration_bins).
#
# Output seen (calibrated on sites A and B, confidence 0.9, prediction 70 everywhere):
#   site A: 62.9 to 77.1; with bounds 62.9 to 77.1; median 70.0
#   site B: 61.3 to 78.7; with bounds 61.3 to 78.7; median 68.8
#   site C: 0.0 to 0.0; with bounds 40.0 to 40.0; median 0.0
#   evaluate on A and B: error 0.14, mean width 15.8
#   evaluate on A, B and C: error 0.43, mean width 10.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q crepes==0.9.1 numpy==2.4.6 pandas==3.0.3 scipy==1.17.1 scikit-learn==1.9.1
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from crepes import ConformalPredictiveSystem, ConformalRegressor

warnings.simplefilter("error")
generator = np.random.default_rng(0)
sites = np.array(["A", "B"])[generator.integers(0, 2, 400)]
predictions = generator.normal(70, 10, 400)
values = predictions + generator.normal(0, 5, 400)
regressor = ConformalRegressor()
regressor.fit(values - predictions, bins=sites)
system = ConformalPredictiveSystem()
system.fit(values - predictions, bins=sites)

names, same = np.array(["A", "B", "C"]), np.full(3, 70.0)
intervals = regressor.predict_int(same, bins=names, confidence=0.9)
bounded = regressor.predict_int(same, bins=names, confidence=0.9, y_min=40, y_max=200)
medians = system.predict_percentiles(same, bins=names, higher_percentiles=[50])
for name, (low, high), (lower, upper), median in zip(names, intervals, bounded, np.ravel(medians), strict=True):
    print(f"site {name}: {low:.1f} to {high:.1f}; with bounds {lower:.1f} to {upper:.1f}; median {median:.1f}")
assert np.all(intervals[:2, 0] < 70) and np.all(intervals[:2, 1] > 70)
assert np.array_equal(intervals[2], [0, 0]) and np.array_equal(bounded[2], [40, 40]), "this has changed"
assert np.ravel(medians)[2] == 0, "this has changed"

places = names[generator.integers(0, 3, 300)]
predictions = generator.normal(70, 10, 300)
values = predictions + generator.normal(0, 5, 300)
known = places != "C"
measures = {}
for text, chosen in (("A and B", known), ("A, B and C", np.full(300, True))):
    found = regressor.evaluate(predictions[chosen], values[chosen], bins=places[chosen], confidence=0.9)
    print(f"evaluate on {text}: error {found['error']:.2f}, mean width {found['eff_mean']:.1f}")
    measures[text] = found
assert measures["A, B and C"]["error"] > 0.4, "this has changed"
assert measures["A, B and C"]["eff_mean"] < 0.7 * measures["A and B"]["eff_mean"], "this has changed"
PYTHON
