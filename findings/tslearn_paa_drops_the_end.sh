#!/usr/bin/env bash
# tslearn 0.10.0: piecewise aggregate approximation looks at none of the last samples, up to nearly half of a series.
#
# Guess: PiecewiseAggregateApproximation(n_segments=100) of 199 samples gives means of one or two samples each, or weighs
#        samples on a border, so that all of them count. Keogh and Pazzani's segments cover the series.
# Seen:  each segment has 199 // 100 = 1 sample, so the first 100 samples are copied, and 99 are never looked at. There is
#        no warning. inverse_transform returns 199 samples again, the missing ones as 0. SymbolicAggregateApproximation
#        does the same.
# Means: a series that differs from another only at its end has distance 0. The number of segments must divide the length.
#
# Output seen (0 in the first half and 1 in the second):
#   10 samples, 3 segments: mean 0.50 before, 0.44 after, distance to zeros 1.92 of 2.24
#   199 samples, 100 segments: mean 0.50 before, 0.00 after, distance to zeros 0.00 of 9.95
#   200 samples, 100 segments: mean 0.50 before, 0.50 after, distance to zeros 10.00 of 10.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q tslearn==0.10.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 numba==0.68.1
env/bin/python -W ignore - <<'PYTHON'
import warnings

import numpy as np
from tslearn.piecewise import PiecewiseAggregateApproximation, SymbolicAggregateApproximation

warnings.simplefilter("error")  # after the imports, which warn of a missing package

for samples, segments in ((10, 3), (199, 100), (200, 100)):
    step = (np.arange(samples) >= samples / 2).astype(float)
    both = np.array([step, 0 * step])[:, :, None]
    method = PiecewiseAggregateApproximation(segments)
    means = method.fit_transform(both)
    distance = method.distance_paa(means[0], means[1])
    right = np.linalg.norm(step)
    print(
        f"{samples} samples, {segments} segments: mean {step.mean():.2f} before, {means[0].mean():.2f} after, "
        f"distance to zeros {distance:.2f} of {right:.2f}"
    )
    if samples % segments == 0:
        assert np.isclose(distance, right)
    else:
        length = samples // segments
        first = step[: length * segments].reshape(segments, length).mean(1)
        assert np.array_equal(means[0, :, 0], first), "this has changed"
        assert method.inverse_transform(means).shape == (2, samples, 1), "this has changed"
        letters = SymbolicAggregateApproximation(segments, 4).fit_transform(both)
        assert samples == 10 or np.array_equal(letters[0], letters[1]), "this has changed"
PYTHON
