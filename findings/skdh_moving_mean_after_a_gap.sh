#!/usr/bin/env bash
# scikit-digital-health 0.17.18: one missing sample makes the moving mean of all later windows missing, too.
#
# Guess: moving_mean(signal, 50, 50) with one NaN is NaN for the one window that has it, as in pandas, or for none with
#        req_points=0.5, the "minimum fraction of points required to compute the mean".
# Seen:  all windows from there to the end of the recording are NaN, those that share no sample with it among them: a
#        cumulative sum takes the NaN along. req_points changes nothing. moving_sd is the same; moving_median of the
#        same library gives a number for each window, without a warning. The documentation warns of cancellation, and of
#        nothing else.
# Means: one lost packet ends a recording of a week, and features that leave out NaN are those of its begin. Fill or cut
#        gaps before.
#
# Output seen (1,000 samples, windows of 50, sample 120 missing; windows that are NaN):
#   numpy: [2]
#   moving_mean: 2 to 19, 18 of 20
#   moving_mean, req_points=0.5: 2 to 19, 18 of 20
#   moving_sd: 2 to 19, 18 of 20
#   moving_median: 0 of 20
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q scikit-digital-health==0.17.18 numpy==2.4.6 scipy==1.17.1 pandas==3.0.3
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
import pandas as pd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from skdh.utility import moving_mean, moving_median, moving_sd

warnings.simplefilter("error")
whole = np.random.default_rng(0).standard_normal(1000)
signal = whole.copy()
signal[120] = np.nan
right = signal.reshape(20, 50).mean(axis=1)
print(f"numpy: {np.flatnonzero(np.isnan(right)).tolist()}")
assert np.allclose(right, pd.Series(signal).rolling(50).mean()[49::50], equal_nan=True)
assert np.allclose(moving_mean(whole, 50, 50), whole.reshape(20, 50).mean(axis=1))
FOUND = {
    "moving_mean": moving_mean(signal, 50, 50),
    "moving_mean, req_points=0.5": moving_mean(signal, 50, 50, req_points=0.5),
    "moving_sd": moving_sd(signal, 50, 50)[0],
    "moving_median": moving_median(signal, 50, 50),
}
for name, values in FOUND.items():
    missing = np.flatnonzero(np.isnan(values))
    places = f"{missing[0]} to {missing[-1]}, " if len(missing) else ""
    print(f"{name}: {places}{len(missing)} of {len(values)}")
    assert missing.tolist() == ([] if name == "moving_median" else list(range(2, 20))), "this has changed"
PYTHON
