#!/usr/bin/env bash
# braindecode 1.8.1: ShallowFBCSPNet and Deep4Net take no single channel, and never split_first_layer=False.
#
# Guess: both take any number of channels from 1; split_first_layer=False gives one convolution over time and channels.
# Seen:  with one channel both raise "self must be a matrix": the bias of their first two layers is computed from weights
#        after a squeeze(), which removes the axis of channels. With split_first_layer=False the constructor raises for
#        any number of channels, because it initialises a layer that it has not made.
# Means: a single lead needs another network, or a second channel; the argument cannot be used as a way round.
#
# Output seen:
#   ShallowFBCSPNet, 1 channel: RuntimeError: self must be a matrix
#   ShallowFBCSPNet, 2 channels: (3, 4)
#   ShallowFBCSPNet, 2 channels, split_first_layer=False: AttributeError: no attribute 'conv_time_spat'
#   and the same for Deep4Net
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import torch
from braindecode.models import Deep4Net, ShallowFBCSPNet


def answer(model, channels, **more):
    try:
        made = model(n_chans=channels, n_outputs=4, n_times=1000, **more)
        return tuple(made(torch.zeros(3, channels, 1000)).shape)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:70]}"


for model in (ShallowFBCSPNet, Deep4Net):
    one, two, joined = answer(model, 1), answer(model, 2), answer(model, 2, split_first_layer=False)
    print(model.__name__, "|", one, "|", two, "|", joined)
    assert two == (3, 4) and one.startswith("RuntimeError") and joined.startswith("AttributeError"), "this has changed"
PYTHON
env/bin/python -W ignore look.py
