#!/usr/bin/env bash
# tsfresh 0.21.2: energies of 16-bit samples are computed in 16 bits, so an ECG can have a negative energy.
#
# Guess: extract_features gives the same for samples of a recorder as int16 and as float. Features are floats, and mean,
#        variance and most others are indeed equal.
# Seen:  sums of squares and products wrap beyond 32,767, which a second of an ECG exceeds: abs_energy, cid_ce, c3,
#        root_mean_square, energy_ratio_by_chunks and time_reversal_asymmetry_statistic are wrong. Ratios that add up to
#        1 by definition add up to 4.85. There is no warning.
# Means: these features depend on how often a sum wraps, which is noise to a classifier, and differ between a reader
#        that returns integers and one that returns floats. Convert samples to float before.
#
# Output seen:
#   abs_energy: -7120 as int16, 1238064 as float
#   root_mean_square: 15.97 as int16, 35.19 as float
#   sum of energy_ratio_by_chunks: 4.85 as int16, 1.00 as float
#   variance: 1058.66 as int16, 1058.66 as float
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q tsfresh==0.21.2 pandas==3.1.1 numpy==2.4.6 scipy==1.17.1
cat > look.py <<'PYTHON'
import warnings

import numpy as np
import pandas as pd
from tsfresh import extract_features

warnings.simplefilter("error", RuntimeWarning)
times = np.arange(1000)
ecg = np.random.default_rng(0).normal(0, 3, 1000)  # five beats of 200 steps, as 1 mV in most records of PhysioNet
for beat in range(100, 1000, 200):
    ecg += 200 * np.exp(-0.5 * ((times - beat) / 3) ** 2)
    ecg += 40 * np.exp(-0.5 * ((times - beat - 60) / 12) ** 2)
ecg = ecg.round()
assert -20 < ecg.min() and ecg.max() < 210
chunks = [{"num_segments": 10, "segment_focus": chunk} for chunk in range(10)]
wanted = {"abs_energy": None, "root_mean_square": None, "energy_ratio_by_chunks": chunks, "variance": None}


def seen(kind):
    table = pd.DataFrame({"id": 1, "time": times, "ecg": ecg.astype(kind)})
    features = extract_features(
        table,
        column_id="id",
        column_sort="time",
        default_fc_parameters=wanted,
        n_jobs=0,
        disable_progressbar=True,
    ).iloc[0]
    ratios = features.filter(like="energy_ratio_by_chunks").sum()
    return {
        "abs_energy": features["ecg__abs_energy"],
        "root_mean_square": features["ecg__root_mean_square"],
        "sum of energy_ratio_by_chunks": ratios,
        "variance": features["ecg__variance"],
    }


integers, floats = seen(np.int16), seen(np.float64)
for name, value in floats.items():
    digits = 0 if name == "abs_energy" else 2
    print(f"{name}: {integers[name]:.{digits}f} as int16, {value:.{digits}f} as float")
ratios = "sum of energy_ratio_by_chunks"
assert np.isclose(integers["variance"], floats["variance"]) and np.isclose(floats[ratios], 1)
assert integers["abs_energy"] < 0 < floats["abs_energy"], "this has changed"
assert integers["root_mean_square"] < 0.5 * floats["root_mean_square"] and integers[ratios] > 4, "this has changed"
PYTHON
env/bin/python look.py
