#!/usr/bin/env bash
# ecgdatakit 2.0.3: the sampling rate of a lead is a whole number; only for HL7 aECG does a warning say so.
#
# Guess: an SCP-ECG file with a sample interval of 3,900 us has 256.41 Hz, and a DICOM file of 499.5 Hz has 499.5 Hz.
# Seen:  256 and 500 Hz, without a warning. The exact values stand in raw_metadata only.
# Means: in a recording of a day the last beat is off by 138 s at 256 Hz and by 86 s at 500 Hz.
#
# Output seen:
#   SCP-ECG: 256 Hz; raw_metadata: 3900 us; warnings: 0
#   DICOM: 500 Hz; raw_metadata: 499.5 Hz; warnings: 0
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


data = np.arange(1000, dtype="<i2").tobytes()
leads = section(3, bytes([1, 0]) + struct.pack("<IIB", 1, 1000, 1))
rhythm = section(6, struct.pack("<HHBBH", 2500, 3900, 0, 0, len(data)) + data)
places = {0: (136, 7), 3: (len(leads), 143), 6: (len(rhythm), 143 + len(leads))}
pointers = section(0, b"".join(struct.pack("<HII", n, *places.get(n, (0, 0))) for n in range(12)))
whole = struct.pack("<I", 142 + len(leads) + len(rhythm)) + pointers + leads + rhythm
open("x.scp", "wb").write(struct.pack("<H", binascii.crc_hqx(whole, 0xFFFF)) + whole)

file = pydicom.dcmread(get_testdata_file("waveform_ecg.dcm"))
file.WaveformSequence[0].SamplingFrequency = "499.5"
file.save_as("x.dcm")


def seen(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record = FileParser.parse(name)
    return record.leads[0].sampling_rate, record.raw_metadata, len(caught)


rate, metadata, count = seen("x.scp")
exact = metadata["rhythm_sample_interval_us"]
print(f"SCP-ECG: {rate} Hz; raw_metadata: {exact} us; warnings: {count}")
assert (rate, exact, count) == (256, 3900, 0)
rate, metadata, count = seen("x.dcm")
exact = metadata["multiplex_groups"][0]["sampling_frequency"]
print(f"DICOM: {rate} Hz; raw_metadata: {exact} Hz; warnings: {count}")
assert (rate, exact, count) == (500, 499.5, 0)
PYTHON
