#!/usr/bin/env bash
# pyedflib 0.1.42: a rate that is no whole number makes long data records, and zeros fill the last one.
#
# Guess: 2,564 samples at 256.4103 Hz are written as 10 s, with at most one second of padding.
# Seen:  EdfWriter chooses records of 9.55109 s. The file has 2 records, 4,898 samples, 19.1 s. The second half of the
#        recording is zeros. Neither a warning nor an annotation says so. The rate in the file is 256.41052 Hz.
# Means: half of each "recording" is a flat line whose length depends on the rate.
#
# Output seen:
#   wrote 2564 samples at 256.4103 Hz; the file has 4898 samples at 256.41052 Hz in records of 9.55109 s
#   the last 2334 samples lie between 0.0002 and 0.0002
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyedflib==0.1.42
env/bin/python - <<'PYTHON'
import numpy as np
import pyedflib

header = {
    "label": "ECG", "dimension": "uV", "sample_frequency": 256.4103, "physical_min": -10.0, "physical_max": 30.0,
    "digital_min": -32768, "digital_max": 32767, "transducer": "", "prefilter": "",
}
with pyedflib.EdfWriter("rate.edf", 1, file_type=pyedflib.FILETYPE_EDFPLUS) as writer:
    writer.setSignalHeader(0, header)
    writer.writeSamples([np.full(2564, 20.0)])
with pyedflib.EdfReader("rate.edf") as reader:
    samples, rate, seconds = reader.readSignal(0), reader.getSampleFrequency(0), reader.datarecord_duration
tail = samples[2564:]
print(f"wrote 2564 samples at 256.4103 Hz; the file has {len(samples)} samples at {rate:.5f} Hz in records of {seconds} s")
print(f"the last {len(tail)} samples lie between {tail.min():.4f} and {tail.max():.4f}")
assert (len(samples), round(rate, 5), seconds) == (4898, 256.41052, 9.55109)
assert np.abs(samples[:2564] - 20).max() < 0.001
assert np.abs(tail).max() < 0.001
PYTHON
