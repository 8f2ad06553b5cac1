#!/usr/bin/env bash
# vitaldb 1.7.2: cropping a file to its middle removes every wave, and the cropped file can be saved without an ECG.
#
# Guess: crop(60, 120) keeps the second minute of each track, from any file.
# Seen:  crop keeps the blocks of samples that begin or end inside of the piece. A block that begins before and ends
#        after it is dropped. to_vital writes each wave as one block by default (packed=True), so the ECG of a file that
#        vitaldb wrote is gone, while the heart rates beside it stay. From 60 s to the end it is kept. No warning; the
#        same recording in blocks of one second is cropped rightly.
# Means: to_numpy gives NaN for the whole piece, as if the lead had been off, and to_vital saves the loss. Crop the
#        array of to_numpy instead, or write with packed=False.
#
# Output seen (ten minutes of ECG in mV at 250 Hz and a heart rate every 2 s, cropped from 60 to 120 s):
#   packed=True, 1 block: ECG in 0 of 15000 samples, 31 heart rates
#   packed=False, 600 blocks: ECG in 15000 of 15000 samples, 31 heart rates
#   packed=True, from 60 s to the end: ECG in 135000 of 135000 samples
#   packed=True, cropped and saved: ECG in 0 of 15000 samples
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q vitaldb==1.7.2 numpy==2.4.6 pandas==3.0.3 wfdb==4.3.1
env/bin/python -W ignore - <<'PYTHON'
import warnings

import numpy as np
import vitaldb

RATE, START, SECONDS = 250, 1_700_000_000, 600
ecg = np.arange(SECONDS * RATE, dtype=np.float32) / 1000
recording = vitaldb.VitalFile()
blocks = [{"dt": START + second, "val": ecg[second * RATE : (second + 1) * RATE]} for second in range(SECONDS)]
recording.add_track("Monitor/ECG", blocks, srate=RATE, unit="mV")
recording.add_track("Monitor/HR", [{"dt": START + second, "val": 60.0} for second in range(0, SECONDS, 2)])
recording.dtstart, recording.dtend = START, START + SECONDS


def values(file):
    return file.to_numpy(["Monitor/ECG", "Monitor/HR"], 1 / RATE).astype(float).T


counts = {}
for packed in (True, False):
    name = f"{packed}.vital"
    assert recording.to_vital(name, packed=packed)
    file = vitaldb.VitalFile(name)
    assert np.array_equal(values(file)[0], ecg)
    number = len(file.trks["Monitor/ECG"].recs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        file.crop(60, 120)
    lead, rates = values(file)
    counts[packed] = np.isfinite(lead).sum()
    print(
        f"packed={packed}, {number} block{'s' * (number > 1)}: ECG in {counts[packed]} of {len(lead)} samples, "
        f"{np.isfinite(rates).sum()} heart rates"
    )
    assert np.isfinite(rates).sum() == 31
assert np.array_equal(lead, ecg[60 * RATE : 120 * RATE])
assert counts == {True: 0, False: 15000}, "this has changed"
lead, _ = values(vitaldb.VitalFile("True.vital").crop(60))
print(f"packed=True, from 60 s to the end: ECG in {np.isfinite(lead).sum()} of {len(lead)} samples")
assert np.array_equal(lead, ecg[60 * RATE :])
vitaldb.VitalFile("True.vital").crop(60, 120).to_vital("cropped.vital")
lead, _ = values(vitaldb.VitalFile("cropped.vital"))
print(f"packed=True, cropped and saved: ECG in {np.isfinite(lead).sum()} of {len(lead)} samples")
assert np.isnan(lead).all(), "this has changed"
PYTHON
