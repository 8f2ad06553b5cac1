#!/usr/bin/env bash
# pyedflib 0.1.42: a start time of .250 s is returned as .025 s.
#
# Guess: EdfReader.getStartdatetime() returns the fraction of a second that the first time-keeping annotation states.
# Seen:  it returns a tenth of it. starttime_subsecond, in units of 100 ns, is right: 2,500,000.
# Means: two files of one night, aligned by getStartdatetime(), are apart by up to 0.9 s.
#
# Output seen:
#   the file starts at 10:00:00.250000; getStartdatetime() returns 10:00:00.025000; starttime_subsecond 2500000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyedflib==0.1.42 edfio==0.4.18
env/bin/python - <<'PYTHON'
import datetime

import edfio
import numpy as np
import pyedflib

start = datetime.time(10, 0, 0, 250_000)
mark = edfio.EdfAnnotation(1.5, None, "a")
edfio.Edf([edfio.EdfSignal(np.arange(100.0), 10)], starttime=start, annotations=[mark]).write("start.edf")
with pyedflib.EdfReader("start.edf") as reader:
    read, fraction = reader.getStartdatetime().time(), reader.starttime_subsecond
print(f"the file starts at {start}; getStartdatetime() returns {read}; starttime_subsecond {fraction}")
assert edfio.read_edf("start.edf").starttime == start
assert (read.microsecond, fraction) == (25_000, 2_500_000)
PYTHON
