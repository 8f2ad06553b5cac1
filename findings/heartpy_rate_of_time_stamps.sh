#!/usr/bin/env bash
# heartpy 1.2.7: a sampling rate from time stamps is too high by one sample, so it depends on the length of the recording.
#
# Guess: get_samplerate_mstimer of stamps that are exactly 10 ms apart is 100 Hz for any number of samples, and so is
#        get_samplerate_datetime.
# Seen:  the number of samples is divided by the time from the first to the last, which has one interval less. One second
#        has 101 Hz, two samples have 200 Hz. The rate is never 100 Hz.
# Means: heart rates of short windows are too high and intervals too short by up to a few percent, and windows of one
#        recording have different rates. Take 1000 / np.median(np.diff(stamps)).
#
# Output seen (samples, 10 ms apart):
#   2: 200.00 Hz, from dates 200.00 Hz
#   20: 105.26 Hz, from dates 105.26 Hz
#   100: 101.01 Hz, from dates 101.01 Hz
#   1000: 100.10 Hz, from dates 100.10 Hz
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q heartpy==1.2.7 numpy==2.4.6 scipy==1.17.1 setuptools==68.2.2
env/bin/python -W ignore - <<'PYTHON'
import datetime

import heartpy
import numpy as np

FORM = "%Y-%m-%d %H:%M:%S.%f"
start = datetime.datetime(2024, 5, 1, 10)
for count in (2, 20, 100, 1000):
    stamps = 10.0 * np.arange(count)
    dates = [(start + datetime.timedelta(milliseconds=stamp)).strftime(FORM) for stamp in stamps]
    rate = heartpy.get_samplerate_mstimer(stamps)
    other = heartpy.get_samplerate_datetime(dates, timeformat=FORM)
    print(f"{count}: {rate:.2f} Hz, from dates {other:.2f} Hz")
    assert np.isclose(rate, 100 * count / (count - 1)), "this has changed"
    assert np.isclose(other, rate), "this has changed"
PYTHON
