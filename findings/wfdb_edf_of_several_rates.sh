#!/usr/bin/env bash
# wfdb 4.3.1: read_edf returns wrong values for the faster channels of an EDF file with several rates.
#
# Guess: wfdb.io.convert.edf.read_edf gives a ramp from 0 to 1 mV as 0 to 1 mV, perhaps at the lowest rate.
# Seen:  with channels of 200 and 100 Hz the record has 100 Hz. The slower channel is right. The faster one, a ramp
#        from 0 to 1 mV, runs from -32751 to 32751 mV. With equal rates both are right. No warning.
# Means: a converted polysomnogram has values 30,000 times too large in each channel but the slowest.
#
# Output seen:
#   equal rates: 0.00 to 1.00 mV and 0.00 to 5.00 mV at 100 Hz
#   200 and 100 Hz: -32751.00 to 32751.00 mV and 0.00 to 5.00 mV at 100 Hz
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1 edfio==0.4.18
env/bin/python - <<'PYTHON'
import edfio
import numpy as np
from wfdb.io.convert.edf import read_edf


def seen(rate):
    fast = edfio.EdfSignal(np.linspace(0, 1, 10 * rate), rate, label="fast", physical_dimension="mV")
    slow = edfio.EdfSignal(np.linspace(0, 5, 1000), 100, label="slow", physical_dimension="mV")
    edfio.Edf([fast, slow]).write("rates.edf")
    record = read_edf("rates.edf")
    (low_fast, low_slow), (high_fast, high_slow) = record.p_signal.min(axis=0), record.p_signal.max(axis=0)
    name = "equal rates" if rate == 100 else f"{rate} and 100 Hz"
    print(
        f"{name}: {abs(low_fast) if rate == 100 else low_fast:.2f} to {high_fast:.2f} mV and {abs(low_slow):.2f} to "
        f"{high_slow:.2f} mV at {record.fs} Hz"
    )
    return round(float(low_fast)), round(float(high_fast)), round(float(high_slow)), record.fs


assert seen(100) == (0, 1, 5, 100)
assert seen(200) == (-32751, 32751, 5, 100)
PYTHON
