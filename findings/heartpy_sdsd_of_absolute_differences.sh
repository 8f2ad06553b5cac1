#!/usr/bin/env bash
# heartpy 1.2.7: SDSD is the standard deviation of absolute differences, four tenths less than SDSD.
#
# Guess: `sdsd`, "standard deviation of successive differences", is np.std(np.diff(rr)). It is nearly equal to RMSSD then,
#        since successive differences have a mean of nearly 0, and is sqrt(2) times `sd1`.
# Seen:  the differences lose their signs first, so that the spread is one around their mean size: 60 % of SDSD for normal
#        variation. For a heart that alternates between two intervals it is 0 instead of 100 ms. rmssd and sd1, of the
#        same call, are right.
# Means: values do not compare with those of other programs or of papers. Take sqrt(2) * sd1, or np.diff.
#
# Output seen:
#   normal variation: sdsd 42.7 ms, of the definition 71.0, rmssd 71.0, sqrt(2) sd1 71.0
#   alternating 750 and 850 ms: sdsd 0.0 ms, of the definition 100.0, rmssd 100.0, sqrt(2) sd1 100.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q heartpy==1.2.7 numpy==2.4.6 scipy==1.17.1 setuptools==68.2.2
env/bin/python -W ignore - <<'PYTHON'
import heartpy
import numpy as np

CASES = {
    "normal variation": 800 + 50 * np.random.default_rng(0).standard_normal(300),
    "alternating 750 and 850 ms": np.tile([750.0, 850.0], 150),
}
for name, intervals in CASES.items():
    measures = heartpy.process_rr(intervals)[1]
    defined = np.std(np.diff(intervals))
    found, axis = measures["sdsd"], 2**0.5 * measures["sd1"]
    print(
        f"{name}: sdsd {found:.1f} ms, of the definition {defined:.1f}, "
        f"rmssd {measures['rmssd']:.1f}, sqrt(2) sd1 {axis:.1f}"
    )
    assert np.isclose(axis, defined, rtol=0.01) and np.isclose(measures["rmssd"], defined, rtol=0.01)
    assert np.isclose(found, np.std(np.abs(np.diff(intervals)))), "this has changed"
    assert found < 0.7 * defined, "this has changed"
PYTHON
