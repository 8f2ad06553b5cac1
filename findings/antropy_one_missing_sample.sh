#!/usr/bin/env bash
# antropy 0.2.3: a signal of noise with one missing sample has a sample entropy of 0, that of a perfectly regular signal.
#
# Guess: sample_entropy returns NaN, as perm_entropy does, or raises, as app_entropy does.
# Seen:  one NaN among fewer than 5,000 samples gives -0.0 without a warning: the tolerance is computed from the standard
#        deviation, which is NaN. From 5,000 samples on another algorithm is used, which raises a ValueError.
# Means: a window with a lost sample looks like the most regular window of all, and lowers a mean over windows. Count
#        missing samples before.
#
# Output seen (noise, and the same with one missing sample):
#   4999 samples: 2.21, -0.00
#   5000 samples: 2.21, ValueError: Input contains NaN.
#   sine of 4999 samples: 0.24
#   permutation entropy of 4999 samples: 2.58, nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q antropy==0.2.3 numpy==2.4.6 scipy==1.17.1
env/bin/python - <<'PYTHON'
import math
import warnings

import antropy
import numpy as np

warnings.simplefilter("error", RuntimeWarning)
noise = np.random.default_rng(0).standard_normal(5000)


def with_a_missing_sample(signal):
    changed = signal.copy()
    changed[5] = np.nan
    return changed


short = noise[:4999]
right, found = antropy.sample_entropy(short), antropy.sample_entropy(with_a_missing_sample(short))
print(f"4999 samples: {right:.2f}, {found:.2f}")
assert right > 2 and found == 0, "this has changed"
message = "no error"
try:
    antropy.sample_entropy(with_a_missing_sample(noise))
except ValueError as error:
    message = f"ValueError: {error}"
print(f"5000 samples: {antropy.sample_entropy(noise):.2f}, {message}")
assert message == "ValueError: Input contains NaN.", "this has changed"
print(f"sine of 4999 samples: {antropy.sample_entropy(np.sin(np.arange(4999) / 10)):.2f}")
right, other = antropy.perm_entropy(short), antropy.perm_entropy(with_a_missing_sample(short))
print(f"permutation entropy of 4999 samples: {right:.2f}, {other}")
assert math.isnan(other)
PYTHON
