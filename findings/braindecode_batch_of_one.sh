#!/usr/bin/env bash
# braindecode 1.8.1: EEGTCNet in training mode computes a batch of one instance in evaluation mode of batch norm.
#
# Guess: batch norm over maps has many values per channel, so a batch of one instance is normalised by its own mean and
#        variance in training mode, and moves the running statistics, as in any other network of convolutions.
# Seen:  forward() of EEGTCNet, EEGSym, EEGMiner and DANCE switches all layers of batch norm to evaluation mode for that
#        call, without a warning: the running statistics are used, and do not move.
# Means: the last batch of an epoch, if it has one instance, is trained by other rules than the rest; an online learner
#        with batches of one never learns statistics. Use batches of two, or join the last batch with the one before.
#
# Output seen:
#   EEGTCNet: batch of 1 moves 0 buffers, batch of 2 moves 21
#   EEGNet: batch of 1 moves 9 buffers, batch of 2 moves 9
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import torch
from braindecode.models import EEGNet, EEGTCNet


def moved(model, instances):
    torch.manual_seed(0)
    module = model(n_chans=22, n_outputs=4, n_times=1000).train()
    before = {name: value.clone() for name, value in module.named_buffers()}
    module(torch.randn(instances, 22, 1000))
    return sum(not torch.equal(value, before[name]) for name, value in module.named_buffers())


for model in (EEGTCNet, EEGNet):
    one, two = moved(model, 1), moved(model, 2)
    print(f"{model.__name__}: batch of 1 moves {one} buffers, batch of 2 moves {two}")
    assert two > 0 and one == (0 if model is EEGTCNet else two), "this has changed"
PYTHON
env/bin/python -W ignore look.py
