#!/usr/bin/env bash
# braindecode 1.8.1: a prediction with SSTDPN in evaluation mode changes its trained weights.
#
# Guess: a max-norm constraint acts on the weight that a layer uses (as in EEGNet, whose stored tensor is untouched), or
#        after a step of the optimiser.
# Seen:  forward() of SSTDPN renormalises the parameter of its prototypes in place, in evaluation mode and under
#        torch.no_grad(), too. The first prediction after a step changes the state dict; the stored tensor of EEGNet may
#        leave the ball and stays as it is.
# Means: a model that is saved before its evaluation is not the one that is saved after it, momentum of an optimiser
#        belongs to other weights, and models that are shared between threads are written to by readers.
#
# Output seen:
#   SSTDPN: a prediction changes ['proto_sep']
#   EEGNet: a prediction changes []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import torch
from braindecode.models import SSTDPN, EEGNet


def changed(model):
    torch.manual_seed(0)
    module = model(n_chans=22, n_outputs=4, n_times=1000, sfreq=250.0).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3)  # as a step of an optimiser may
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():
        module(torch.randn(2, 22, 1000))
    return [name for name, value in module.state_dict().items() if not torch.equal(value, before[name])]


for model, expected in ((SSTDPN, ["proto_sep"]), (EEGNet, [])):
    names = changed(model)
    print(f"{model.__name__}: a prediction changes {names}")
    assert names == expected, "this has changed"
PYTHON
env/bin/python -W ignore look.py
