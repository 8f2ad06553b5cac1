#!/usr/bin/env bash
# wfdb 4.3.1: rdann(sampfrom=...) without an end returns all annotations, those before the begin with negative samples.
#
# Guess: rdann(record, "atr", sampfrom=400) returns the annotations from sample 400 on, as rdrecord returns the samples
#        from 400 on, and as rdann(sampfrom=400, sampto=...) does.
# Seen:  sampfrom is applied only if sampto is given, too. Without it, the annotations before sample 400 are returned,
#        without a warning; with shift_samps=True they have negative sample numbers.
# Means: beats are counted that are not in the signal that was read, and a negative number as an index in Python takes a
#        sample from the end of the signal. Give sampto as well.
#
# Output seen:
#   sampfrom=400: signal of 600 samples, annotations at [100, 300, 500, 700]
#   sampfrom=400, shift_samps=True: annotations at [-300, -100, 100, 300]
#   sampfrom=400, sampto=1000, shift_samps=True: annotations at [100, 300]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1 numpy==2.4.6 pandas==3.1.1
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
import wfdb

signal = np.sin(np.arange(1000) / 20)[:, None]
wfdb.wrsamp("beats", fs=250, units=["mV"], sig_name=["II"], p_signal=signal, fmt=["16"])
wfdb.wrann("beats", "atr", np.array([100, 300, 500, 700]), symbol=["N", "V", "N", "N"], fs=250)


def seen(**options):
    with warnings.catch_warnings(record=True) as raised:
        samples = wfdb.rdann("beats", "atr", **options).sample.tolist()
    assert not [warning for warning in raised if issubclass(warning.category, UserWarning)]
    return samples


length = wfdb.rdrecord("beats", sampfrom=400).sig_len
whole, shifted = seen(sampfrom=400), seen(sampfrom=400, shift_samps=True)
bounded = seen(sampfrom=400, sampto=1000, shift_samps=True)
print(f"sampfrom=400: signal of {length} samples, annotations at {whole}")
print(f"sampfrom=400, shift_samps=True: annotations at {shifted}")
print(f"sampfrom=400, sampto=1000, shift_samps=True: annotations at {bounded}")
assert length == 600
assert whole == [100, 300, 500, 700], "this has changed"
assert shifted == [-300, -100, 100, 300], "this has changed"
assert bounded == [100, 300]
PYTHON
