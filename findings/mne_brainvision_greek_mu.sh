#!/usr/bin/env bash
# mne 1.13.2: BrainVision channels in μV with the Greek letter are read as if their microvolts were volts.
#
# Guess: "μV" with the Greek letter mu (U+03BC) and "µV" with the micro sign (U+00B5) are one unit. Unicode's normal
#        forms NFKC and NFKD turn the second into the first, and mne's reader of EDF takes both.
# Seen:  with the Greek letter, values are 1,000,000 times larger, and the channels have the type "misc" instead of
#        "eeg", so that they are in no picks of EEG. There is no warning. "UV" is read in this way, too; "nV", "uV" and
#        "mV" are converted.
# Means: EEG that is loaded from such a header is dropped by pick("eeg"), or enters a network a million times too large.
#
# Output seen:
#   micro sign: types ['eeg'], largest sample 100 microvolt, warnings []
#   Greek letter: types ['misc'], largest sample 100000000 microvolt, warnings []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 pybv==0.8.1
env/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

import mne
import numpy as np
import pybv

volts = np.linspace(-100e-6, 100e-6, 1000)[None]
pybv.write_brainvision(data=volts, sfreq=250, ch_names=["Cz"], fname_base="micro", folder_out=".", unit="µV")
header = Path("micro.vhdr").read_text(encoding="utf-8")
assert "\u00b5V" in header
Path("greek.vhdr").write_text(header.replace("\u00b5V", "\u03bcV"), encoding="utf-8")
seen = {}
for what, name in (("micro sign", "micro.vhdr"), ("Greek letter", "greek.vhdr")):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raw = mne.io.read_raw_brainvision(name, verbose="warning")
        largest = round(float(np.abs(raw.get_data()).max()) * 1e6)
    said = [str(each.message) for each in caught if issubclass(each.category, RuntimeWarning)]
    print(f"{what}: types {raw.get_channel_types()}, largest sample {largest} microvolt, warnings {said}")
    seen[what] = (raw.get_channel_types(), largest, said)
assert seen == {"micro sign": (["eeg"], 100, []), "Greek letter": (["misc"], 100_000_000, [])}
PYTHON
