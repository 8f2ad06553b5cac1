#!/usr/bin/env bash
# pydicom 3.0.2 and ecgdatakit 2.0.3: two readings of the padding value of a DICOM waveform, neither of them right.
#
# Guess: both give samples that equal Waveform Padding Value as missing, if they lie outside of the signal.
# Seen:  Dataset.waveform_array gives padding as signal: -32768 becomes -40.96 mV. ecgdatakit gives each sample that
#        equals the value as NaN: with the value 0, as a free converter writes it, also samples of 0 uV in a signal.
# Means: one reader makes spikes of 41 mV, the other makes holes in nearly every ECG of that converter.
#
# Output seen:
#   padding -32768 in 100 of 10,000 samples: pydicom minimum -40.96 mV, ecgdatakit 100 missing
#   padding 0, 211 samples of 0 uV in lead I: pydicom 0 missing, ecgdatakit 211 missing
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q 'ecgdatakit[dicom]==2.0.3' pydicom==3.0.2
env/bin/python - <<'PYTHON'
import numpy as np
import pydicom
from ecgdatakit import FileParser
from pydicom.data import get_testdata_file


def seen(padding, padded):
    file = pydicom.dcmread(get_testdata_file("waveform_ecg.dcm"))
    group = file.WaveformSequence[0]
    stored = np.frombuffer(group.WaveformData, "<i2").reshape(-1, 12).copy()
    stored[stored == padding] += 1
    stored[padded, 0] = padding
    group.WaveformData = stored.tobytes()
    group.add_new(0x5400100A, "OW", padding.to_bytes(2, "little", signed=True))
    file.save_as("x.dcm")
    lead = pydicom.dcmread("x.dcm").waveform_array(0)[:, 0] / 1000
    return lead, FileParser.parse("x.dcm", units="mV").leads[0].samples


one, other = seen(-32768, np.arange(9900, 10000))
print(
    f"padding -32768 in 100 of 10,000 samples: pydicom minimum {one.min():.2f} mV, "
    f"ecgdatakit {np.isnan(other).sum()} missing"
)
assert one.min() == -40.96 and np.isnan(other).sum() == 100
places = np.random.default_rng(0).choice(10000, 211, replace=False)
one, other = seen(0, places)
print(
    f"padding 0, {(one == 0).sum()} samples of 0 uV in lead I: pydicom {np.isnan(one).sum()} missing, "
    f"ecgdatakit {np.isnan(other).sum()} missing"
)
assert (one == 0).sum() == np.isnan(other).sum() == 211
PYTHON
