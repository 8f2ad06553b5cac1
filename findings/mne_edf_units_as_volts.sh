#!/usr/bin/env bash
# mne 1.13.2: EEG in nV, or in µV written as "UV", is read from EDF as if the numbers were volts.
#
# Guess: read_raw_edf converts prefixes of volt, as read_raw_brainvision does with nV, or warns about a unit that it does
#        not know.
# Seen:  only uV (three spellings) and mV are converted. 50,000 nV become 50,000 V, 50 UV become 50 V, and temperatures in
#        degC become volts. All channels have the type "eeg", and there is no warning. The largest sample of one recording
#        depends on the spelling of its unit by a factor of a billion.
# Means: a file of another recorder has a scale of its own; amplitude tells recorders, or classes, without a network.
#
# Output seen:
#   uV: 50 from the file, 5e-05 V in mne, types ['eeg'], warnings []
#   UV: 50 from the file, 50 V in mne, types ['eeg'], warnings []
#   nV: 50000 from the file, 5e+04 V in mne, types ['eeg'], warnings []
#   degC: 37 from the file, 37 V in mne, types ['eeg'], warnings []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 edfio==0.4.18
env/bin/python - <<'PYTHON'
import warnings

import edfio
import mne
import numpy as np

for unit, largest in (("uV", 50), ("UV", 50), ("nV", 50_000), ("degC", 37)):
    samples = np.linspace(-largest, largest, 1000)
    signal = edfio.EdfSignal(
        samples, 250, label="Cz", physical_dimension=unit, physical_range=(-largest, largest)
    )
    edfio.Edf([signal]).write("one.edf")
    again = edfio.read_edf("one.edf").signals[0]
    assert again.physical_dimension == unit
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raw = mne.io.read_raw_edf("one.edf", verbose="warning")
        volts = float(np.abs(raw.get_data()).max())
    said = [str(each.message) for each in caught if issubclass(each.category, RuntimeWarning)]
    types = raw.get_channel_types()
    print(f"{unit}: {np.abs(again.data).max():.5g} from the file, {volts:.3g} V in mne, types {types}, warnings {said}")
    assert types == ["eeg"]
    assert said == []
    assert np.isclose(volts, 50e-6 if unit == "uV" else largest)
PYTHON
