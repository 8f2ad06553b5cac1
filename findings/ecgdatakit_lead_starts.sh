#!/usr/bin/env bash
# ecgdatakit 2.0.3: leads that begin later in the recording are returned as if they began at once.
#
# Guess: a lead that SCP-ECG or DICOM says begins later has missing samples before, or another start time, or a warning.
# Seen:  only its samples are returned, without a warning. SCP-ECG: the start is text in Lead.annotations. DICOM: Channel
#        Sample Skew, which counts samples, is kept as "sample_skew_ms"; Channel Time Skew leaves no trace.
# Means: leads of different beats are laid over each other as if they were simultaneous.
#
# Output seen:
#   SCP-ECG, V1 from sample 1,001 on: I has 2000 samples, V1 1000, {'start_sample': '1001'}
#   DICOM, Channel Sample Skew of 250 samples: {'sample_skew_ms': '250.0'}
#   DICOM, Channel Time Skew of 0.25 s: {}
#   warnings: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q 'ecgdatakit[dicom]==2.0.3' pydicom==3.0.2
env/bin/python - <<'PYTHON'
import binascii
import struct
import warnings

import numpy as np
import pydicom
from ecgdatakit import FileParser
from pydicom.data import get_testdata_file


def section(number, body):
    head = struct.pack("<HIBB6s", number, 16 + len(body), 20, 20, b"SCPECG" if number == 0 else b"") + body
    return struct.pack("<H", binascii.crc_hqx(head, 0xFFFF)) + head


data = [np.arange(count, dtype="<i2").tobytes() for count in (2000, 1000)]
leads = section(3, bytes([2, 0]) + struct.pack("<IIB", 1, 2000, 1) + struct.pack("<IIB", 1001, 2000, 3))
rhythm = section(6, struct.pack("<HHBBHH", 2500, 2000, 0, 0, *map(len, data)) + b"".join(data))
places = {0: (136, 7), 3: (len(leads), 143), 6: (len(rhythm), 143 + len(leads))}
pointers = section(0, b"".join(struct.pack("<HII", n, *places.get(n, (0, 0))) for n in range(12)))
whole = struct.pack("<I", 142 + len(leads) + len(rhythm)) + pointers + leads + rhythm
open("x.scp", "wb").write(struct.pack("<H", binascii.crc_hqx(whole, 0xFFFF)) + whole)


def skewed(keyword, value):
    file = pydicom.dcmread(get_testdata_file("waveform_ecg.dcm"))
    channel = file.WaveformSequence[0].ChannelDefinitionSequence[6]
    setattr(channel, keyword, value)
    file.save_as("x.dcm")
    annotations = FileParser.parse("x.dcm").leads[6].annotations
    return {name: text for name, text in annotations.items() if "skew" in name}


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    one, other = FileParser.parse("x.scp").leads
    samples, seconds = skewed("ChannelSampleSkew", "250"), skewed("ChannelTimeSkew", "0.25")
print(
    f"SCP-ECG, V1 from sample 1,001 on: I has {len(one.samples)} samples, V1 {len(other.samples)}, {other.annotations}"
)
print(f"DICOM, Channel Sample Skew of 250 samples: {samples}")
print(f"DICOM, Channel Time Skew of 0.25 s: {seconds}")
print(f"warnings: {len(caught)}")
assert (len(other.samples), other.annotations) == (1000, {"start_sample": "1001"})
assert (samples, seconds, len(caught)) == ({"sample_skew_ms": "250.0"}, {}, 0)
PYTHON
