#!/usr/bin/env bash
# heartpy 1.2.7: a perfectly clean signal of a regular heart raises "Could not determine best fit for given signal".
#
# Guess: a signal without noise whose beats are 800 ms apart, as a pacemaker at a fixed rate makes them, is the easiest
#        one: 75 beats a minute and an SDNN of 0.
# Seen:  process() discards each threshold whose intervals have a standard deviation of 0.1 ms or less, and then says that
#        the signal is noisy or has no heart rate. With intervals that spread by a millisecond it finds all beats.
# Means: recordings of paced hearts, simulators and test signals are refused. A data set that leaves out what raises
#        loses them all.
#
# Output seen (spread of the intervals):
#   100 Hz, 0 ms: BadSignalWarning
#   100 Hz, 1 ms: 75.0 beats a minute
#   250 Hz, 0 ms: BadSignalWarning
#   250 Hz, 1 ms: 75.0 beats a minute
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q heartpy==1.2.7 numpy==2.4.6 scipy==1.17.1 setuptools==68.2.2
env/bin/python -W ignore - <<'PYTHON'
import heartpy
import numpy as np
from heartpy.exceptions import BadSignalWarning


def pulses(rate, spread):
    intervals = 0.8 + spread / 1000 * np.random.default_rng(0).standard_normal(75)
    beats = np.cumsum(intervals)
    seconds = np.arange(0, beats[-1] + 0.5, 1 / rate)
    return 500 + 500 * sum(np.exp(-(((seconds - beat) / 0.05) ** 2)) for beat in beats)


found = {}
for rate in (100, 250):
    for spread in (0, 1):
        try:
            beats = heartpy.process(pulses(rate, spread), rate)[1]["bpm"]
            found[rate, spread] = f"{beats:.1f} beats a minute"
        except BadSignalWarning as error:
            found[rate, spread] = type(error).__name__
        print(f"{rate} Hz, {spread} ms: {found[rate, spread]}")
for (rate, spread), text in found.items():
    assert text == ("75.0 beats a minute" if spread else "BadSignalWarning"), "this has changed"
PYTHON
