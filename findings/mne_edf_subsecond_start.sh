#!/usr/bin/env bash
# mne 1.13.2: read_raw_edf drops the fraction of the start time that export_raw wrote.
#
# Guess: a recording that starts at 10:00:00.500 and goes through EDF+ starts at 10:00:00.500 again.
# Seen:  export_raw writes the fraction into the file (edfio reads 10:00:00.500000). read_raw_edf returns
#        10:00:00, without a warning. The same recording keeps its fraction through BrainVision.
# Means: meas_date of an EDF+ file is early by up to a second when a second file is aligned to it.
#
# Output seen:
#   in the file 10:00:00.500000; EDF+ read by mne 10:00:00; BrainVision read by mne 10:00:00.500000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 edfio==0.4.18 pybv==0.8.1
env/bin/python - <<'PYTHON'
import datetime

import edfio
import mne
import numpy as np

mne.set_log_level("error")
raw = mne.io.RawArray(np.zeros((1, 1000)), mne.create_info(["EEG"], 100.0, "eeg"))
raw.set_meas_date(datetime.datetime(2020, 1, 1, 10, 0, 0, 500_000, tzinfo=datetime.UTC))
raw.export("start.edf")
raw.export("start.vhdr")
written = edfio.read_edf("start.edf").starttime
edf = mne.io.read_raw_edf("start.edf").info["meas_date"].time()
vision = mne.io.read_raw_brainvision("start.vhdr").info["meas_date"].time()
print(f"in the file {written}; EDF+ read by mne {edf}; BrainVision read by mne {vision}")
assert written.microsecond == vision.microsecond == 500_000
assert edf.microsecond == 0
PYTHON
