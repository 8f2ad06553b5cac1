#!/usr/bin/env bash
# pyedflib 0.1.42: crop_edf drops all annotations, and a file that is cut at 2.5 s says that it starts at 2 s.
#
# Guess: highlevel.crop_edf keeps the annotations of the piece, moved to its start, as drop_channels and rename_channels
#        keep all, and the new start time is that of the first sample, also within a second, which EDF+ can express.
# Seen:  the cropped file has no annotation, without a warning. Its samples begin at 2.5 s, its start time at 2 s. The
#        last record is filled with zeros: of 2.5 to 8.25 s, 0.25 s are zeros, and the file says that it lasts 6 s.
# Means: sleep stages and events are gone from the piece, those that are kept elsewhere lie half a second late on it,
#        and its end is a flat line. Cut at whole records, and write the annotations again.
#
# Output seen:
#   whole recording: 2560 samples from 10:00:00 on, annotations [1.5, 4.0, 6.0]
#   2.5 to 8.25 s: 1536 samples from 10:00:02 on, annotations []
#   its first sample is that of 2.50 s, its last 64 samples are zeros
#   drop_channels: annotations [1.5, 4.0, 6.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyedflib==0.1.42 numpy==2.4.6
env/bin/python - <<'PYTHON'
import datetime
import warnings

import numpy as np
from pyedflib import highlevel

RATE, STEP = 256, 0.1  # Hz, uV from sample to sample


def described(path):
    """Return samples, start and onsets of annotations of a file."""
    signals, _, header = highlevel.read_edf(path)
    onsets = [float(onset) for onset, _, _ in header["annotations"]]
    return signals[0], header["startdate"], onsets


def channel(label):
    limits = {"physical_min": -300, "physical_max": 300, "digital_min": -32768, "digital_max": 32767}
    return highlevel.make_signal_header(label, dimension="uV", sample_frequency=RATE, **limits)


ramp = STEP * np.arange(1, 10 * RATE + 1)
header = highlevel.make_header(startdate=datetime.datetime(2020, 1, 1, 10))
header["annotations"] = [[1.5, -1, "lights off"], [4.0, 2.0, "spindle"], [6.0, -1, "N2"]]
highlevel.write_edf("whole.edf", np.stack([ramp, ramp]), [channel("C3"), channel("C4")], header)
with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    span = {"start": 2.5, "stop": 8.25, "start_format": "seconds", "stop_format": "seconds"}
    highlevel.crop_edf("whole.edf", new_file="piece.edf", verbose=False, **span)
assert not raised
highlevel.drop_channels("whole.edf", "one.edf", to_keep=["C3"])

whole, start, onsets = described("whole.edf")
print(f"whole recording: {len(whole)} samples from {start:%H:%M:%S} on, annotations {onsets}")
piece, piece_start, piece_onsets = described("piece.edf")
print(f"2.5 to 8.25 s: {len(piece)} samples from {piece_start:%H:%M:%S} on, annotations {piece_onsets}")
first = round((piece[0] / STEP - 1) / RATE, 2)
zeros = int((np.abs(piece) < STEP / 2).sum())
print(f"its first sample is that of {first:.2f} s, its last {zeros} samples are zeros")
kept = described("one.edf")[2]
print(f"drop_channels: annotations {kept}")
assert len(whole) == 2560 and onsets == kept == [1.5, 4.0, 6.0]
assert first == 2.5 and np.all(np.abs(piece[-zeros:]) < STEP / 2)
assert piece_start == datetime.datetime(2020, 1, 1, 10, 0, 2) and piece_onsets == [], "this has changed"
assert len(piece) == 6 * RATE and zeros == 64, "this has changed"
PYTHON
