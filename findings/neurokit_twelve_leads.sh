#!/usr/bin/env bash
# neurokit2 0.2.13: the simulated twelve leads do not obey the definition of the limb leads.
#
# Guess: in ecg_simulate(method="multileads"), III = II - I and aVR = -(I + II) / 2, as in each real 12-lead ECG.
# Seen:  without noise, both differ by about as much as the largest signal in I itself.
# Means: a reader or network that derives III, aVR, aVL and aVF from I and II cannot be tested on these signals, and
#        "redundant" leads carry information of their own.
#
# Output seen (columns I, II, III, aVR, ...):
#   largest |III - (II - I)| 1.09, largest |aVR + (I + II) / 2| 1.56, largest |I| 1.20
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q neurokit2==0.2.13 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import neurokit2
import numpy as np

leads = neurokit2.ecg_simulate(duration=10, sampling_rate=250, method="multileads", noise=0, random_state=1)
one, two, three, avr = (leads[name].to_numpy() for name in ("I", "II", "III", "aVR"))
first = np.abs(three - (two - one)).max()
second = np.abs(avr + (one + two) / 2).max()
print(f"largest |III - (II - I)| {first:.2f}, largest |aVR + (I + II) / 2| {second:.2f}, largest |I| {np.abs(one).max():.2f}")
assert first > 1
assert second > 1
PYTHON
