#!/usr/bin/env bash
# mne 1.13.2 with pybv 0.8.1: an annotation with a decimal comma is exported to BrainVision and read at another time.
#
# Guess: export_raw writes a comma of a description as \1, as the header of the file that it writes says, so that the
#        annotation returns as it was, as it does through EDF.
# Seen:  the comma is written as it is. The reader takes what follows it for the position: "SpO2 97,5" at 4 s with a
#        duration of 0.5 s returns as "SpO2 97" at 0.016 s with a duration of 4.004 s, without a warning.
# Means: events of a German or French recorder move to the begin of the recording and cover what they do not describe.
#        Replace commas in descriptions before the export, or export to EDF.
#
# Output seen:
#   BrainVision: 0.016 s for 4.004 s: Comment/SpO2 97
#   EDF: 4.000 s for 0.500 s: SpO2 97,5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 pybv==0.8.1 edfio==0.4.18 numpy==2.4.6
cat > look.py <<'PYTHON'
import mne
import numpy as np

mne.set_log_level("error")
signal = np.random.default_rng(0).normal(0, 20e-6, (3, 2000))
raw = mne.io.RawArray(signal, mne.create_info(["Fz", "Cz", "Pz"], 250, "eeg"))
raw.set_annotations(mne.Annotations([4.0], [0.5], ["SpO2 97,5"]))
found = []
for name, ending, read in (
    ("BrainVision", "vhdr", mne.io.read_raw_brainvision),
    ("EDF", "edf", mne.io.read_raw_edf),
):
    mne.export.export_raw(f"a.{ending}", raw)
    (each,) = read(f"a.{ending}").annotations
    found.append((round(float(each["onset"]), 3), round(float(each["duration"]), 3), str(each["description"])))
    print(f"{name}: {found[-1][0]:.3f} s for {found[-1][1]:.3f} s: {found[-1][2]}")
assert found == [(0.016, 4.004, "Comment/SpO2 97"), (4.0, 0.5, "SpO2 97,5")], "this has changed"
PYTHON
env/bin/python look.py
