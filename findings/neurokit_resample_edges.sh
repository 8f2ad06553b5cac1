#!/usr/bin/env bash
# neurokit2 0.2.13: signal_resample bends a constant at its ends, or stretches time, depending on the method.
#
# Guess: a constant 95 stays 95 with each method, and sample n of a ramp at 100 Hz is found at 2.5 n at 250 Hz.
# Seen:  method="poly" takes the signal as zero outside: a constant 95 becomes 36 to 108 at the ends. The default,
#        method="interpolation", puts the first and last samples of input and output on each other: time runs 0.06 %
#        too slowly, and in the middle of ten seconds the ramp is late by 0.3 samples of the input.
# Means: saturation, temperature or any signal with an offset gets artefacts of its own size at each end of a window.
#
# Output seen:
#   poly: a constant 95 becomes 36.44 to 108.13
#   interpolation: the ramp is 499.700 where 500 is right, and 999.000 at its end where 999.6 is right
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q neurokit2==0.2.13 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import neurokit2
import numpy as np


def resampled(samples, method):
    return np.asarray(neurokit2.signal_resample(samples, sampling_rate=100, desired_sampling_rate=250, method=method))


constant = resampled(np.full(1000, 95.0), "poly")
ramp = resampled(np.arange(1000.0), "interpolation")
print(f"poly: a constant 95 becomes {constant.min():.2f} to {constant.max():.2f}")
print(
    f"interpolation: the ramp is {ramp[1250]:.3f} where 500 is right, and {ramp[-1]:.3f} at its end where 999.6 is right"
)
assert (round(constant.min()), round(constant.max())) == (36, 108)
assert (round(float(ramp[1250]), 1), round(float(ramp[-1]), 1)) == (499.7, 999.0)
PYTHON
