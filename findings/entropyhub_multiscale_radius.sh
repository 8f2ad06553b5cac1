#!/usr/bin/env bash
# EntropyHub 2.0: the multiscale sample entropy of white noise does not fall, because each scale has a radius of its own.
#
# Guess: MSEn with the default object, "based on that originally proposed by Costa et al.", has the radius 0.2 * SD(Sig)
#        of the whole signal at all scales; RadNew, whose default is 0, rescales it. White noise then falls from scale to
#        scale, and 1/f noise does not (Costa et al., 2002).
# Seen:  without a radius in the object each coarse-grained series gets 0.2 of its own standard deviation, with RadNew=0
#        as with RadNew=1. White noise stays flat. There is no warning.
# Means: the difference between white noise and 1/f noise, for which the method exists, is gone, and values do not compare
#        with those of papers or other software. Give the radius: MSobject("SampEn", r=0.2 * signal.std()).
#
# Output seen (2,000 samples; scales 1 to 6):
#   white noise, default: 2.2 2.1 2.2 2.1 2.1 2.3
#   white noise, RadNew=1: 2.2 2.1 2.2 2.1 2.1 2.3
#   white noise, radius given: 2.2 1.8 1.7 1.5 1.4 1.3
#   white noise, by hand: 2.2 1.8 1.7 1.5 1.4 1.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q EntropyHub==2.0 EMD-signal==1.10.0 numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2
env/bin/python -W ignore - <<'PYTHON'
import contextlib
import io

import EntropyHub
import numpy as np

SCALES = 6
signal = np.random.default_rng(0).normal(size=2000)
radius = 0.2 * signal.std()


def matches(series, length, count):
    vectors = np.lib.stride_tricks.sliding_window_view(series, length)[:count]
    distances = np.max(np.abs(vectors[:, None] - vectors[None]), axis=2)
    return np.sum(distances <= radius) - count


def by_hand(scale):
    pieces = signal[: len(signal) // scale * scale].reshape(-1, scale)
    series = pieces.mean(axis=1)
    count = len(series) - 2
    return -np.log(matches(series, 3, count) / matches(series, 2, count))


def library(radius=None, **options):
    parameters = {} if radius is None else {"r": radius}
    with contextlib.redirect_stdout(io.StringIO()):
        entropy = EntropyHub.MSobject("SampEn", **parameters)
        return EntropyHub.MSEn(signal, entropy, Scales=SCALES, **options)[0]


rows = {
    "default": library(),
    "RadNew=1": library(0.2, RadNew=1),
    "radius given": library(radius),
    "by hand": np.array([by_hand(scale) for scale in range(1, SCALES + 1)]),
}
for name, row in rows.items():
    print(f"white noise, {name}: {' '.join(f'{value:.1f}' for value in row)}")
assert np.allclose(rows["radius given"], rows["by hand"], rtol=0.01)
assert rows["by hand"][-1] < 0.7 * rows["by hand"][0]
assert np.allclose(rows["default"], rows["RadNew=1"]), "this has changed"
assert rows["default"][-1] > 0.9 * rows["default"][0], "this has changed"
PYTHON
