#!/usr/bin/env bash
# mne 1.13.2: the zeros between two epochs of an MFF file are annotated half a sample early, so one of them can stay.
#
# Guess: BAD_ACQ_SKIP covers the samples that read_raw_egi invents, so that get_data(reject_by_annotation="omit")
#        returns what was recorded, each sample once.
# Seen:  the annotation begins half a sample before the pause, and halves are rounded to even numbers. After an even
#        number of samples, the last zero of the pause is returned as part of the signal; after an odd number, the last
#        sample before the pause is left out.
# Means: a value of exactly 0 V in all channels appears in the data, or a sample disappears, without a warning. Cut at
#        raw.first_time and the times of the epochs, or compare the zeros with the annotation.
#
# Output seen:
#   500 samples before the pause: 1001 samples are kept of 1000, 1 of them invented
#   501 samples before the pause: 1000 samples are kept of 1001, 0 of them invented
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 mffpy==0.11.0 defusedxml==0.7.1 numpy==2.4.6
cat > look.py <<'PYTHON'
from datetime import UTC, datetime

import mne
import numpy as np
from mffpy.bin_writer import BinWriter
from mffpy.writer import Writer

mne.set_log_level("error")
for before in (500, 501):
    signal = np.random.default_rng(0).uniform(5, 20, (33, before + 500)).astype("<f4")
    samples = BinWriter(sampling_rate=250, data_type="EEG")
    samples.add_block(signal[:, :before])
    samples.add_block(signal[:, before:], offset_us=500_000)
    file = Writer(f"{before}.mff")
    file.addxml("fileInfo", recordTime=datetime(2020, 3, 4, 5, 6, 7, tzinfo=UTC))
    file.add_coordinates_and_sensor_layout("HydroCel GSN 32 1.0")
    file.addbin(samples)
    file.write()
    raw = mne.io.read_raw_egi(f"{before}.mff", preload=True)
    assert raw.n_times == before + 125 + 500
    assert [each["description"] for each in raw.annotations] == ["BAD_ACQ_SKIP"]
    kept = raw.get_data(picks="eeg", reject_by_annotation="omit")
    invented = int((kept == 0).all(axis=0).sum())
    print(f"{before} samples before the pause: {kept.shape[1]} samples are kept of {before + 500}, {invented} of them invented")
    expected = (before + 501, 1) if before == 500 else (before + 499, 0)
    assert (kept.shape[1], invented) == expected, "this has changed"
PYTHON
env/bin/python look.py
