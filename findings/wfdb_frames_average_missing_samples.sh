#!/usr/bin/env bash
# wfdb 4.3.1: in a record with several samples a frame, a missing sample is averaged with its neighbours as a voltage.
#
# Guess: -32768 marks a missing sample in format 16. rdrecord returns NaN for a frame that has one, or the mean of the
#        other samples, as it returns NaN where a frame has one sample, and in each case with smooth_frames=False.
# Seen:  smooth_frames=True, the default, averages first and compares with -32768 afterwards. A frame of one missing
#        sample and one of 0.5 mV becomes -81.67 mV, without a warning. Only a frame that lacks all its samples is NaN.
# Means: an electrode that falls off ends each gap of a faster channel in a spike of tens of millivolts, which no search
#        for NaN finds. Read with smooth_frames=False.
#
# Output seen:
#   one sample a frame: [0.5, nan, nan, nan, 0.5, 0.5]
#   two samples a frame, smooth_frames=False: [0.5, 0.5, 0.5, nan, nan, nan, nan, 0.5, 0.5, 0.5, 0.5, 0.5]
#   two samples a frame, default: [0.5, -81.67, nan, -81.67, 0.5, 0.5]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1 numpy==2.4.6 pandas==3.1.1
env/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

import numpy as np
import wfdb

MISSING = -32768


def written(name, fast, per_frame):
    """Write a record of frames with `per_frame` samples of a fast channel and one of a slow channel, 200 steps a mV."""
    slow = np.arange(len(fast) // per_frame)
    frames = np.column_stack([fast.reshape(-1, per_frame), slow]).astype("<i2")
    frames.tofile(f"{name}.dat")
    lines = [
        f"{name} 2 250 {len(slow)}",
        f"{name}.dat 16x{per_frame} 200(0)/mV 16 0 {fast[0]} {fast.sum() % 65536} 0 ECG",
        f"{name}.dat 16 200(0)/mV 16 0 {slow[0]} {slow.sum() % 65536} 0 SpO2",
    ]
    Path(f"{name}.hea").write_text("\n".join(lines) + "\n")


def shown(values):
    return str([round(float(value), 2) for value in values])


gap = np.full(12, 100)
gap[3:7] = MISSING
written("fast", gap, 2)
written("slow", np.array([100, MISSING, MISSING, MISSING, 100, 100]), 1)
with warnings.catch_warnings(record=True) as raised:
    plain = shown(wfdb.rdrecord("slow").p_signal[:, 0])
    expanded = shown(wfdb.rdrecord("fast", smooth_frames=False).e_p_signal[0])
    smoothed = shown(wfdb.rdrecord("fast").p_signal[:, 0])
assert not [warning for warning in raised if issubclass(warning.category, UserWarning)]
print(f"one sample a frame: {plain}")
print(f"two samples a frame, smooth_frames=False: {expanded}")
print(f"two samples a frame, default: {smoothed}")
assert plain == "[0.5, nan, nan, nan, 0.5, 0.5]"
assert expanded == "[0.5, 0.5, 0.5, nan, nan, nan, nan, 0.5, 0.5, 0.5, 0.5, 0.5]"
assert smoothed == "[0.5, -81.67, nan, -81.67, 0.5, 0.5]", "this has changed"
PYTHON
