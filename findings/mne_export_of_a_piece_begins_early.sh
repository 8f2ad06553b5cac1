#!/usr/bin/env bash
# mne 1.13.2 with edfio 0.4.18 and pybv 0.8.1: a piece of a recording is exported with the start time of the whole.
#
# Guess: the second hour of a recording that began at 22:00, exported to EDF or BrainVision, says that it begins at
#        23:00. raw.first_time is known, and the onsets of annotations are moved by it.
# Seen:  the file says 22:00, for both formats, while its annotations are counted from 23:00: an annotation at 23:00:10
#        is at 22:00:10 now. A FIF file keeps the two apart. There is no warning.
# Means: pieces of one night all begin at the same time of day, and are early by hours beside another recorder. Add
#        raw.first_time to the start of an exported piece.
#
# Output seen (an annotation at 23:00:10):
#   EDF: begins at 22:00:00, annotation at 22:00:10
#   BrainVision: begins at 22:00:00, annotation at 22:00:10
#   FIF: begins at 23:00:00, annotation at 23:00:10
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 edfio==0.4.18 pybv==0.8.1
env/bin/python -W ignore - <<'PYTHON'
from datetime import UTC, datetime, timedelta

import mne
import numpy as np

mne.set_log_level("error")
START = datetime(2020, 1, 1, 22, tzinfo=UTC)
HOUR = 3600

whole = mne.io.RawArray(np.zeros((1, 2 * HOUR * 10)), mne.create_info(["Cz"], 10.0, "eeg"))
whole.set_meas_date(START)
whole.set_annotations(mne.Annotations(HOUR + 10, 1, "mark", orig_time=START))
piece = whole.crop(HOUR, 2 * HOUR, include_tmax=False)
assert piece.first_time == HOUR

mne.export.export_raw("piece.edf", piece)
mne.export.export_raw("piece.vhdr", piece)
piece.save("piece_raw.fif")
READ = {
    "EDF": mne.io.read_raw_edf("piece.edf"),
    "BrainVision": mne.io.read_raw_brainvision("piece.vhdr"),
    "FIF": mne.io.read_raw_fif("piece_raw.fif"),
}
for name, raw in READ.items():
    assert raw.n_times == HOUR * 10
    begin = raw.info["meas_date"] + timedelta(seconds=float(raw.first_time))
    (annotation,) = raw.annotations
    mark = raw.info["meas_date"] + timedelta(seconds=float(annotation["onset"]))
    print(f"{name}: begins at {begin:%H:%M:%S}, annotation at {mark:%H:%M:%S}")
    late = timedelta(hours=1 if name == "FIF" else 0)
    assert begin == START + late
    assert mark == begin + timedelta(seconds=10)
PYTHON
