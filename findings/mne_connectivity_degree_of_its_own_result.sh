#!/usr/bin/env bash
# mne-connectivity 0.9.0: degree of a spectral connectivity depends on the order of the channels.
#
# Guess: degree, the "undirected degree", accepts the object that spectral_connectivity_epochs returns, and counts the
#        kept edges of each channel. The same recording with its channels in another order has the same degrees.
# Seen:  the dense matrix of that object has each pair once, in the lower triangle, and zeros above. degree() detects
#        no symmetry, keeps twice as many pairs as asked, and counts each for the earlier of its two channels only. The
#        last channel always has degree 0. There is no warning.
# Means: maps of hubs show the montage: the first channels of the file are hubs. Pass the symmetric matrix:
#        dense = connectivity.get_data("dense")[..., 0]; degree(dense + dense.T, share).
#
# Output seen (coherence of 6 channels, hub is Cz, strongest 5 of 15 pairs kept):
#   channels   Fz C3 Cz C4 Pz Oz
#   own count   1  1  5  1  1  1
#   symmetric   1  1  5  1  1  1
#   object      4  1  3  2  0  0
#   reversed    0  0  2  2  3  3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne-connectivity==0.9.0 mne==1.13.2 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3
env/bin/python -W ignore - <<'PYTHON'
import mne
import numpy as np
from mne_connectivity import degree, spectral_connectivity_epochs
from scipy.signal import coherence

mne.set_log_level("ERROR")
NAMES = ["Fz", "C3", "Cz", "C4", "Pz", "Oz"]
KEPT = 5
# Cz is the mean of the six channels; the others are independent of each other.
generator = np.random.default_rng(0)
signals = generator.normal(size=(40, 6, 512))
signals[:, 2] = signals.mean(axis=1) + 0.1 * signals[:, 2]


def connectivity(epochs):
    return spectral_connectivity_epochs(epochs, method="coh", sfreq=256, fmin=8, fmax=13, faverage=True)


def row(name, values):
    print(f"{name:<10}", *(f"{value:>2}" for value in values))


pairs = {}
for one in range(6):
    for other in range(one):
        frequencies, values = coherence(signals[:, one].ravel(), signals[:, other].ravel(), fs=256, nperseg=512)
        pairs[one, other] = values[(frequencies >= 8) & (frequencies <= 13)].mean()
strongest = sorted(pairs, key=pairs.get)[-KEPT:]
right = np.bincount(np.ravel(strongest), minlength=6)

found = connectivity(signals)
dense = found.get_data("dense")[..., 0]
share = KEPT / len(pairs)
symmetric = degree(dense + dense.T, share)
of_the_object = degree(found, share)
reversed_back = degree(connectivity(signals[:, ::-1]), share)[::-1]
row("channels", NAMES)
row("own count", right)
row("symmetric", symmetric)
row("object", of_the_object)
row("reversed", reversed_back)
assert np.array_equal(symmetric, right) and right[2] == KEPT
assert not np.array_equal(of_the_object, right), "this has changed"
assert of_the_object[-1] == 0 and reversed_back[0] == 0, "this has changed"
assert not np.array_equal(of_the_object, reversed_back), "this has changed"
assert of_the_object.sum() == 2 * KEPT, "this has changed"
PYTHON
