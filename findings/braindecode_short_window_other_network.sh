#!/usr/bin/env bash
# braindecode 1.8.1: Deep4Net shrinks its kernels for a window below 441 samples instead of raising.
#
# Guess: a window that is too short for four blocks is refused, as ShallowFBCSPNet refuses one.
# Seen:  a RuntimeWarning, and a network of other kernels and pools than its arguments and attributes of the same names in
#        a configuration say: with 440 samples kernels of 9 and pools of 2 instead of 10 and 3, and 6 % fewer parameters;
#        with 50 samples kernels of 1 and no pools, which see no time at all.
# Means: two windows that differ by one sample are two architectures. Compare kernels, or turn the warning into an error.
#
# Output seen:
#   441 samples: kernel 10, pool 3, 266628 parameters, 0 warnings
#   440 samples: kernel 9, pool 2, 251178 parameters, 1 warnings
#   50 samples: kernel 1, pool 1, 54378 parameters, 1 warnings
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import warnings

import torch
from braindecode.models import Deep4Net

for samples, kernel, pool in ((441, 10, 3), (440, 9, 2), (50, 1, 1)):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = Deep4Net(n_chans=4, n_outputs=3, n_times=samples)
    seen = [warning for warning in seen if "smaller than the minimum" in str(warning.message)]
    kernels = model.conv_4.kernel_size[0], model.pool_4.kernel_size[0]
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{samples} samples: kernel {kernels[0]}, pool {kernels[1]}, {count} parameters, {len(seen)} warnings")
    assert kernels == (kernel, pool) and len(seen) == (samples < 441), "this has changed"
PYTHON
env/bin/python -W ignore look.py
