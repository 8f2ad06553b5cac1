#!/usr/bin/env bash
# pyhrv 0.5.0: the LF and HF powers of lomb_psd and ar_psd hardly depend on the rhythm of the heart rate.
#
# Guess: the three spectra, welch_psd, lomb_psd and ar_psd, find the same rhythm: intervals that vary by 40 ms at 0.1 Hz
#        have 40^2 / 2 = 800 ms^2 in LF and nothing in HF; at 0.25 Hz it is the other way round.
# Seen:  welch_psd does. lomb_psd asks scipy.signal.lombscargle for the angular frequencies 2 pi / f instead of 2 pi f,
#        and for a normalised result, which it multiplies by 10^6. ar_psd multiplies decibels by 10^3 and adds them up.
#        Both report 2 to 3 times as much HF as LF, whatever the rhythm, and the same for a tenth of the amplitude.
#        There is no warning. Users have asked about differences from other software in an open issue.
# Means: LF, HF and LF / HF of these two functions say nothing about the person. Use welch_psd.
#
# Output seen (LF and HF in ms^2):
#   40 ms at 0.1 Hz: right 800 and 0, welch_psd 800 and 0, lomb_psd 578 and 1291, ar_psd 4991 and 8738
#   4 ms at 0.1 Hz: right 8 and 0, welch_psd 8 and 0, lomb_psd 531 and 1199, ar_psd 4900 and 8738
#   40 ms at 0.25 Hz: right 0 and 800, welch_psd 0 and 792, lomb_psd 581 and 1309, ar_psd 4889 and 9343
#   4 ms at 0.25 Hz: right 0 and 8, welch_psd 0 and 8, lomb_psd 426 and 995, ar_psd 4900 and 8747
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
# biosppy imports peakutils, and nolds imports pkg_resources of setuptools, without declaring them.
env/bin/pip install -q pyhrv==0.5.0 biosppy==2.2.4 nolds==0.5.2 spectrum==0.10.0 peakutils==1.3.5 setuptools==79.0.1 \
    numpy==2.4.6 scipy==1.17.1
MPLBACKEND=agg env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from pyhrv.frequency_domain import ar_psd, lomb_psd, welch_psd
from scipy.signal import lombscargle


def intervals(frequency, amplitude):
    found, time = [], 0
    while time < 300_000:
        found.append(800 + amplitude * np.sin(2 * np.pi * frequency * time / 1000))
        time += found[-1]
    return np.array(found)


def peak(values):
    times = np.cumsum(values) / 1000
    frequencies = np.linspace(0.04, 0.4, 1000)
    return frequencies[lombscargle(times, values - values.mean(), 2 * np.pi * frequencies).argmax()]


for frequency in (0.1, 0.25):
    for amplitude in (40, 4):
        values = intervals(frequency, amplitude)
        assert abs(peak(values) - frequency) < 0.005
        power = amplitude**2 / 2
        right = np.array([power, 0] if frequency == 0.1 else [0, power])
        text = f"{amplitude} ms at {frequency} Hz: right {right[0]:.0f} and {right[1]:.0f}"
        for method, name in ((welch_psd, "fft"), (lomb_psd, "lomb"), (ar_psd, "ar")):
            found = np.array(method(nni=values, nfft=4096, show=False)[f"{name}_abs"][1:])
            text += f", {method.__name__} {found[0]:.0f} and {found[1]:.0f}"
            if method is welch_psd:
                assert np.abs(found - right).max() < 0.05 * power
            else:
                assert 1.5 < found[1] / found[0] < 3 and found.max() > 900, "this has changed"
        print(text)

        _, frequencies, powers = lomb_psd(nni=values, nfft=4096, mode="dev")
        times = np.cumsum(values) - values[0]
        inverse = 2 * np.pi / frequencies[1:]
        assert np.allclose(powers[1:], lombscargle(times, values, inverse, normalize=True)), "this has changed"
PYTHON
