#!/usr/bin/env bash
# wfdb 4.3.1: start_time and stop_time of ann2rr select intervals by how long they are, not by when they are.
#
# Guess: ann2rr(record, "atr", start_time=60, stop_time=120), "the time to start the intervals in seconds", gives the RR
#        intervals of the second minute, between beats, as the program ann2rr of WFDB does.
# Seen:  intervals longer than 60 s and shorter than 120 s are kept, so there is none. start_time=1 keeps the pauses of
#        more than 1 s of the whole recording, and stop_time=60 keeps all. The result also has the time to the first
#        annotation as an interval, and marks of rhythm and noise end intervals as if they were beats (issue 479 of the
#        project says the latter). No warning.
# Means: "the last hour" of a Holter recording has no beats, "from 1 s on" has only its pauses, and a change of rhythm
#        looks like two premature beats. Take the beats of rdann, and np.diff.
#
# Output seen (ten minutes; a beat every 800 ms, and every 1,200 ms in the second minute; one mark of noise at 90 s):
#   whole recording: 726 intervals; between beats 724
#   start_time=60, stop_time=120: 0 intervals; between beats 50
#   start_time=1: 49 intervals; between beats 724
#   stop_time=60: 726 intervals; between beats 74
#   around the mark of noise: 1.20, 0.58, 0.62, 1.20 s; between beats 1.20, 1.20, 1.20 s
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1 numpy==2.4.6 pandas==3.0.3
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
import wfdb
from wfdb.processing import ann2rr

RATE = 250
beats = np.cumsum([0.4] + [0.8] * 74 + [1.2] * 50 + [0.8] * 600)
mark = beats[99] + 0.58
times = np.sort(np.append(beats, mark))
symbols = ["~" if time == mark else "N" for time in times]
wfdb.wrann("person", "atr", np.round(times * RATE).astype(int), symbol=symbols, fs=RATE)
beats = np.round(beats * RATE) / RATE
lengths, ends = np.diff(beats), beats[1:]


def seen(text, right, **options):
    found = ann2rr("person", "atr", format="s", **options)
    print(f"{text}: {len(found)} intervals; between beats {len(right)}")
    return found


whole = seen("whole recording", lengths)
assert len(whole) == len(lengths) + 2 and whole[0] == beats[0]
second = seen("start_time=60, stop_time=120", lengths[(ends > 60) & (ends <= 120)], start_time=60, stop_time=120)
late = seen("start_time=1", lengths[ends > 1], start_time=1)
early = seen("stop_time=60", lengths[ends <= 60], stop_time=60)
assert len(second) == 0, "this has changed"
assert np.array_equal(late, whole[whole > 1]) and late.min() == 1.2, "this has changed"
assert np.array_equal(early, whole), "this has changed"
place = np.flatnonzero(times == mark)[0]
found = ", ".join(f"{length:.2f}" for length in whole[place - 1 : place + 3])
right = ", ".join(f"{length:.2f}" for length in lengths[98:101])
print(f"around the mark of noise: {found} s; between beats {right} s")
assert found == "1.20, 0.58, 0.62, 1.20", "this has changed"
PYTHON
