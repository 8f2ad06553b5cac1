#!/usr/bin/env bash
# hrv-analysis 1.0.5: removing an ectopic beat keeps the pause after it, and removes the normal interval that follows.
#
# Guess: remove_ectopic_beats(rr, method="malik") removes both intervals of a premature beat, the short one and the
#        compensatory pause, each of which differs by more than a fifth from the interval before it.
# Seen:  after a removed interval the next one is kept without a test, so the pause stays. The interval after the pause is
#        compared with the pause, and removed. The rules of Malik and Kamath and "custom" do so. That of Karlsson removes
#        the short interval, the pause and the one before; that of Acar removes the two.
# Means: what is returned as normal intervals has one pause for each ectopic beat. A heart that is regular except for a
#        premature beat in ten keeps an RMSSD of 93 ms after cleaning.
#
# Output seen (intervals 9 to 13 of 800, 500, 1100, 800 and 800 ms):
#   RMSSD before: 229 ms
#   malik: [800.0, nan, 1100.0, nan, 800.0], RMSSD after 93 ms
#   kamath: [800.0, nan, 1100.0, nan, 800.0], RMSSD after 93 ms
#   custom: [800.0, nan, 1100.0, nan, 800.0], RMSSD after 93 ms
#   karlsson: [nan, nan, nan, 800.0, 800.0], RMSSD after 0 ms
#   acar: [800.0, nan, nan, 800.0, 800.0], RMSSD after 0 ms
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q hrv-analysis==1.0.5 nolds==0.5.2 numpy==1.26.4 setuptools==68.2.2
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from hrvanalysis import get_time_domain_features, interpolate_nan_values, remove_ectopic_beats

intervals = np.full(300, 800.0)
intervals[10::10] = 500
intervals[11::10] = 1100


def rmssd(rr):
    return get_time_domain_features(list(rr))["rmssd"]


print(f"RMSSD before: {rmssd(intervals):.0f} ms")
for rule in ("malik", "kamath", "custom", "karlsson", "acar"):
    kept = remove_ectopic_beats(list(intervals), method=rule, verbose=False)
    after = rmssd(interpolate_nan_values(kept))
    print(f"{rule}: {[float(rr) for rr in kept[9:14]]}, RMSSD after {after:.0f} ms")
    if rule in ("malik", "kamath", "custom"):
        assert kept[11] == 1100 and np.isnan(kept[12]), "this has changed"
        assert after > 80, "this has changed"
    else:
        assert np.isnan(kept[11]) and kept[12] == 800, "this has changed"
        assert after == 0, "this has changed"
PYTHON
