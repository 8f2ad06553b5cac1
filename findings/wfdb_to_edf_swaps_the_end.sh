#!/usr/bin/env bash
# wfdb 4.3.1: wfdb_to_edf writes the end of one lead into another, and a start time of midnight on 1 January 1985.
#
# Guess: the EDF file has the samples of each lead, padding after its end, and the start of the record.
# Seen:  the file has data records of 10 s. The last one is filled lead by lead, without padding between the leads: what
#        follows the end of the first lead is the second lead, which goes on in its own place, too early, or is a flat
#        line there. Of 24 s, the second lead has 20. Of an ECG of 8 s, it is 2 s earlier than the first. The start is
#        never copied. The first lead is right, and nothing warns.
# Means: leads are no longer simultaneous, with up to 10 s of a voltage that no electrode had. ECGs of 10 s that lack a
#        few samples have them moved against each other. Read the record with rdrecord instead.
#
# Output seen (a sine in I and a cosine in II, 250 Hz, from 10:00):
#   24 s: I as written True; II as written up to 20 s; 4.0 s of II are after the end of I, 0.0 s are 6 s early
#   8 s: I as written True; II as written up to 0 s; 2.0 s of II are after the end of I, 6.0 s are 2 s early
#   the rest of II: [-32.77] mV; start 00:00:00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1 edfio==0.4.18
env/bin/python - <<'PYTHON'
import contextlib
import datetime
import io

import edfio
import numpy as np
import wfdb
from wfdb.io.convert.edf import wfdb_to_edf

RATE, RECORD, LOWEST = 250, 10, -32.77
STORED = {
    "fmt": ["16", "16"],
    "adc_gain": [1000, 1000],
    "baseline": [0, 0],
    "base_datetime": datetime.datetime(2020, 1, 1, 10),
}


def convert(name, seconds):
    """Write a record and convert it; return its samples in mV and the EDF file."""
    times = np.arange(seconds * RATE) / 20
    signal = np.stack([np.sin(times), 2 * np.cos(times)], axis=1)
    wfdb.wrsamp(name, RATE, ["mV", "mV"], ["I", "II"], p_signal=signal, **STORED)
    with contextlib.redirect_stdout(io.StringIO()):
        wfdb_to_edf(name)
    return signal, edfio.read_edf(f"{name}.edf")


def near(read, written):
    """Return whether samples are equal, apart from rounding to steps of 1 uV."""
    return bool(np.abs(read - written).max() < 2e-3)


for seconds in (24, 8):
    signal, file = convert(f"of{seconds}", seconds)
    first, second = (lead.data for lead in file.signals)
    length = len(signal)
    full = seconds // RECORD * RECORD * RATE
    padding = full + RECORD * RATE - length
    after_first, early = np.split(signal[full:, 1], [padding])
    assert near(first[:length], signal[:, 0])
    assert full == 0 or near(second[:full], signal[:full, 1])
    assert near(first[length:][: len(after_first)], after_first)
    assert len(early) == 0 or near(second[full:][: len(early)], early)
    rest = np.unique(second[full + len(early) :].round(2)).tolist()
    assert rest == [LOWEST]
    print(
        f"{seconds} s: I as written True; II as written up to {full // RATE} s; {len(after_first) / RATE} s of II are"
        f" after the end of I, {len(early) / RATE} s are {padding // RATE} s early"
    )
print(f"the rest of II: {rest} mV; start {file.starttime}")
assert file.starttime == datetime.time(0)
PYTHON
