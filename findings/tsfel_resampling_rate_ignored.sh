#!/usr/bin/env bash
# tsfel 0.2.0: dataset_features_extractor has an option resampling_rate that it ignores, and takes 30 Hz.
#
# Guess: resampling_rate, "Resampling rate (default: 100)" of the documentation, sets the rate, and is 100 Hz without.
# Seen:  the function reads another name, resample_rate, with a default of 30 Hz, from **kwargs that accept any name.
#        Files of 100 Hz are interpolated to 30 Hz without a filter, so that 20 Hz appears as 10 Hz. No error, no
#        warning.
# Means: features of ECG or EMG are those of aliases, and windows of 100 samples are 3.3 s long instead of 1 s. Pass
#        resample_rate, and compare the number of windows.
#
# Output seen (10 s of a sine of 20 Hz in a file of 100 Hz, windows of 100 samples):
#   {}: 2 windows, frequency 9.9 Hz
#   {'resampling_rate': 100}: 2 windows, frequency 9.9 Hz
#   {'resample_rate': 100}: 9 windows, frequency 20.0 Hz
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q tsfel==0.2.0 numpy==2.4.6 scipy==1.17.1 pandas==3.0.3
env/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import tsfel

warnings.simplefilter("error", UserWarning)
assert "resampling_rate" in tsfel.dataset_features_extractor.__doc__
assert "resample_rate" not in tsfel.dataset_features_extractor.__doc__, "this has changed"
spectral = tsfel.get_features_by_domain("spectral")["spectral"]
SET = {"spectral": {"Fundamental frequency": spectral["Fundamental frequency"]}}
Path("data/person").mkdir(parents=True)
nanoseconds = np.arange(1000) * 10_000_000  # the default of time_unit
table = pd.DataFrame({"time": nanoseconds, "ecg": np.sin(2 * np.pi * 20 * nanoseconds / 1e9)})
table.to_csv("data/person/ECG.csv", header=False, index=False)


def seen(number, **options):
    output = f"output{number}/"
    tsfel.dataset_features_extractor(
        "data", SET, verbose=0, n_jobs=None, window_size=100, output_directory=output, **options
    )
    (file,) = Path(output).glob("**/Features.csv")
    frequencies = pd.read_csv(file).filter(like="Fundamental").iloc[:, 0]
    print(f"{options}: {len(frequencies)} windows, frequency {frequencies.mean():.1f} Hz")
    return len(frequencies), round(float(frequencies.mean()), 1)


assert seen(0) == seen(1, resampling_rate=100) == (2, 9.9), "this has changed"
assert seen(2, resample_rate=100) == (9, 20.0)
PYTHON
