#!/usr/bin/env bash
# sleepecg 0.6.0 and wfdb 4.3.1: a detector that finds each beat twice is perfect for one, and half wrong for the other.
#
# Guess: a beat is found once. A second detection of the same beat is a false positive for both, so that true positives
#        and missed beats add up to the beats, as in the beat-by-beat comparison of ANSI/AAMI EC57.
# Seen:  sleepecg.compare_heartbeats counts each detection near a beat as a "true positive, i.e. actual heartbeats
#        detected": 200 for 100 beats, without a false positive. wfdb.processing.compare_annotations pairs beats and
#        detections: 100 of each kind. There is no warning.
# Means: a detector that takes the T wave, the pacemaker's spike or the S wave for a second beat within the tolerance
#        looks perfect, and sensitivity as TP / beats can exceed 1. Compare detectors with one package only.
#
# Output seen (100 beats; each is detected at its place and 10 samples later; tolerance 25 samples):
#   sleepecg: TP 200, FP 0, FN 0, positive predictivity 1.00
#   wfdb:     TP 100, FP 100, FN 0, positive predictivity 0.50
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q sleepecg==0.6.0 wfdb==4.3.1
env/bin/python - <<'PYTHON'
import numpy as np
import sleepecg
from wfdb.processing import compare_annotations

TOLERANCE = 25
beats = np.arange(1, 101) * 250
detected = np.sort(np.concatenate([beats, beats + 10]))

one = sleepecg.compare_heartbeats(detected, beats, max_distance=TOLERANCE)
true, false, missed = len(one.TP), len(one.FP), len(one.FN)
print(f"sleepecg: TP {true}, FP {false}, FN {missed}, positive predictivity {true / (true + false):.2f}")
assert (true, false, missed) == (200, 0, 0)

other = compare_annotations(beats, detected, TOLERANCE)
print(f"wfdb:     TP {other.tp}, FP {other.fp}, FN {other.fn}, positive predictivity {other.positive_predictivity:.2f}")
assert (other.tp, other.fp, other.fn) == (100, 100, 0)
PYTHON
