#!/usr/bin/env bash
# mne 1.13.2: an interrupted recording (EDF+D) is read as if it had no interruption.
#
# Guess: read_raw_edf refuses EDF+D, or marks the interruption, or fills it.
# Seen:  records 0 to 4 begin at 0 to 4 s, records 5 to 9 at 25 to 29 s. mne returns 10 s without a pause. The sample
#        of 25 s is that of 5 s. An annotation at 27.5 s, inside the file's last records, is dropped as "outside data
#        range": this is the only warning. pyedflib refuses the same file as discontinuous.
# Means: each annotation after the pause is lost, or lies on other samples, and frames run across the pause.
#
# Output seen:
#   pyedflib: pause.edf: The file is discontinuous and cannot be read
#   mne: 1000 samples, last at 9.99 s; annotations ['early'] at [1.5]; warnings: Omitted 1 annotation(s) that were outside data range.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2 edfio==0.4.18 pyedflib==0.1.42
env/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

import edfio
import mne
import numpy as np
import pyedflib

# A continuous EDF+ file, whose records 5 to 9 then get other start times, as EDF+D has them.
signal = edfio.EdfSignal(np.repeat(np.arange(10.0), 100), 100, label="EEG", physical_dimension="uV")
early = edfio.EdfAnnotation(1.5, None, "early")
edfio.Edf([signal], annotations=[early], data_record_duration=1).write("continuous.edf")
data = bytearray(Path("continuous.edf").read_bytes())
data[192:197] = b"EDF+D"
header = int(data[184:192])
record = (len(data) - header) // 10
for number in range(5, 10):
    begin = data.index(b"+%d\x14\x14" % number, header + number * record)
    end = header + (number + 1) * record
    texts = b"+%d\x14\x14\x00" % (number + 20)
    if number == 7:
        texts += b"+27.5\x14late\x14\x00"
    data[begin:end] = texts.ljust(end - begin, b"\x00")
Path("pause.edf").write_bytes(data)

try:
    pyedflib.EdfReader("pause.edf")
except OSError as error:
    print("pyedflib:", error)
    assert "discontinuous" in str(error)
else:
    raise SystemExit("pyedflib reads the file")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    raw = mne.io.read_raw_edf("pause.edf", verbose="warning")
said = [str(each.message) for each in caught if issubclass(each.category, RuntimeWarning)]
texts, onsets = list(map(str, raw.annotations.description)), raw.annotations.onset.tolist()
values = np.round(raw.get_data()[0, [499, 500]] * 1e6).tolist()
print(f"mne: {raw.n_times} samples, last at {raw.times[-1]:.2f} s; annotations {texts} at {onsets}; warnings: {' '.join(said)}")
assert (raw.n_times, texts, onsets) == (1000, ["early"], [1.5])
assert said == ["Omitted 1 annotation(s) that were outside data range."]
assert values == [4.0, 5.0]
PYTHON
