#!/usr/bin/env bash
# edfio 0.4.18 and mne 1.13.2: an EDF+ annotation whose text has a line break is lost without a word.
#
# Guess: the text is returned with its line break. EDF+ (2.2.2) allows the bytes 9, 10 and 13 in annotations, and
#        edfio writes such a text itself.
# Seen:  edfio and mne return the other annotation of the file alone, and warn of nothing. pyedflib returns both.
#        Other lists that the pattern of edfio does not match go as well, such as a duration of ".5" or an empty one.
# Means: a scorer's comment of two lines is gone, and with it the interval that it labels.
#
# Output seen:
#   written: 'apnea\nsecond line', 'arousal'
#   pyedflib: ['apnea\nsecond line', 'arousal']
#   edfio: ['arousal']; warnings: none
#   mne: ['arousal']; warnings: none
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 edfio==0.4.18 pyedflib==0.1.42
env/bin/python - <<'PYTHON'
import warnings

import edfio
import mne
import numpy as np
import pyedflib

texts = ["apnea\nsecond line", "arousal"]
annotations = [edfio.EdfAnnotation(onset, 1, text) for onset, text in zip((2, 5), texts)]
signal = edfio.EdfSignal(np.arange(1000.0), 100, label="EEG", physical_dimension="uV")
edfio.Edf([signal], annotations=annotations, data_record_duration=1).write("night.edf")
print("written:", ", ".join(map(repr, texts)))

with pyedflib.EdfReader("night.edf") as reader:
    by_pyedflib = list(map(str, reader.readAnnotations()[2]))
print("pyedflib:", by_pyedflib)
assert by_pyedflib == texts


def read(name, texts_of):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read = texts_of()
    said = [str(each.message) for each in caught if not issubclass(each.category, DeprecationWarning)]
    print(f"{name}: {read}; warnings: {' '.join(said) or 'none'}")
    assert read == ["arousal"] and not said


read("edfio", lambda: [annotation.text for annotation in edfio.read_edf("night.edf").annotations])
raw = lambda: mne.io.read_raw_edf("night.edf", verbose="warning")
read("mne", lambda: list(map(str, raw().annotations.description)))
PYTHON
