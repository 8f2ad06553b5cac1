#!/usr/bin/env bash
# tsfel 0.2.0: a window whose last sample equals its first counts as constant, and its percentiles are that sample.
#
# Guess: "ECDF Percentile" gives the 20th and 80th percentile of a window, as np.percentile does.
# Seen:  whether a window is constant is asked with sum(diff(window)) == 0, which is the last sample minus the first. An
#        ECG in whole units of its recorder often ends where it began: "ECDF Percentile" gives that sample twice then,
#        "ECDF Percentile Count" gives it as a number of samples, and ecdf_slope is infinite. Without a warning.
# Means: some windows of a recording of 16 bits have features of another kind than the others, a count that can be
#        negative among them. Pass floats with a little noise, or leave these features out; "ECDF Percentile" is in the
#        default set.
#
# Output seen (500 samples of one and the same ECG-like signal, the last sample equal to the first or not):
#   last sample -37 (first -38): percentiles -264 and 343, counts 100 and 400, slope 0.0012
#   last sample -38 (first -38): percentiles -38 and -38, counts -38 and -38, slope inf
#   numpy, both: percentiles -264 and 343
#   windows of an ECG with noise of 5 units that end where they began: 15 of 360
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q tsfel==0.2.0 numpy==2.4.6 scipy==1.17.1 pandas==3.0.3
env/bin/python -W error::RuntimeWarning - <<'PYTHON'
import numpy as np
import tsfel

generator = np.random.default_rng(0)


def heart(samples):
    phase = 2 * np.pi * 1.3 * np.arange(samples) / 250
    return np.round(400 * np.sin(phase) + generator.normal(0, 20, samples)).astype(int)


other = heart(500)
other[0], other[-1] = -38, -37
same = other.copy()
same[-1] = -38
found = []
for window in (other, same):
    low, high = tsfel.ecdf_percentile(window, [0.2, 0.8])
    fewer, more = tsfel.ecdf_percentile_count(window, [0.2, 0.8])
    slope = tsfel.ecdf_slope(window)
    found.append((low, high, fewer, more, slope))
    print(
        f"last sample {window[-1]} (first {window[0]}): percentiles {low} and {high}, counts {fewer} and {more}, "
        f"slope {slope:.4f}"
    )
right = [np.percentile(window, [20, 80], method="inverted_cdf") for window in (other, same)]
assert np.array_equal(*right)
print(f"numpy, both: percentiles {right[0][0]} and {right[0][1]}")
assert found[0][:4] == (*right[0], 100, 400)
assert found[1] == (-38, -38, -38, -38, np.inf), "this has changed"
features = tsfel.time_series_features_extractor(tsfel.get_features_by_domain("statistical"), same, fs=250, verbose=0)
assert features["0_ECDF Percentile_1"][0] == -38, "this has changed"
beats = np.where(np.arange(2500) % 200 == 100, 200, 0)
windows = np.round(beats + generator.normal(0, 5, (360, 2500)))
closed = windows[:, 0] == windows[:, -1]
print(f"windows of an ECG with noise of 5 units that end where they began: {closed.sum()} of {len(windows)}")
assert closed.sum() > 0
PYTHON
