#!/usr/bin/env bash
# ishneholterlib 2020.5.29: a Holter file that is loaded and written again has other samples, and the data in memory too.
#
# Guess: load_data() and write_file() with their defaults return each 16-bit sample as it was, and leave the object.
# Seen:  load_data() multiplies by the resolution, write_file() divides and drops the fraction instead of rounding, so
#        some samples are one step nearer to zero. write_file() divides in place: afterwards the data of the object,
#        in mV before, are steps.
# Means: a copy with other names, the usual reason for a copy, is no copy of the signal. Use convert=False for both.
#
# Output seen:
#   first copy: 165 of 10000 samples changed, by 1 step
#   largest value in memory: 7.5 mV before writing, 2999.0 after it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q ishneholterlib==2020.5.29 crccheck==1.3.1 numpy==1.26.4
cat > look.py <<'PYTHON'
import datetime

import numpy as np
from ishneholterlib import Holter, Lead

steps = np.random.default_rng(0).integers(-3000, 3000, 10_000).astype(np.int16)
file = Holter.__new__(Holter)  # the constructor takes a file that is there
lead = Lead(spec=5, qual=1, res=2500)
lead.save_data(steps, convert=False)
facts = {"first_name": "", "last_name": "", "id": "7", "proprietary": "", "copyright": "", "reserved": ""}
vars(file).update(facts, filename="a.ecg", lead=[lead], sr=250, file_version=1, sex=0, race=0, pm=0, var_block=None)
vars(file).update(birth_date=None, record_date=datetime.date(2020, 3, 4), start_time=datetime.time(5, 6, 7))
file.recorder_type = b"digital"
file.write_file(convert_data=False)

loaded = Holter("a.ecg")
loaded.load_data()
np.testing.assert_array_equal(np.rint(loaded.lead[0].data * 400), steps)
before = loaded.lead[0].data.max()
vars(loaded).update(facts, filename="b.ecg")
loaded.write_file()
copy = Holter("b.ecg")
copy.load_data(convert=False)
changed = np.abs(copy.lead[0].data.astype(int) - steps)
print(f"first copy: {(changed > 0).sum()} of 10000 samples changed, by {changed.max()} step")
print(f"largest value in memory: {before:.1f} mV before writing, {loaded.lead[0].data.max():.1f} after it")
assert 0 < (changed > 0).sum() < 1000 and changed.max() == 1 and loaded.lead[0].data.max() > 2900, "this has changed"
PYTHON
env/bin/python look.py
