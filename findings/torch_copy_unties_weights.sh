#!/usr/bin/env bash
# torch 2.13.0: copy.deepcopy and pickle untie weights that share memory, which torch.save keeps tied.
#
# Guess: copy.deepcopy(module) keeps what two parameters share, as copy.deepcopy of a dict of tensors does, and so do
#        pickle and torch.save.
# Seen:  of an autoencoder whose decoder was tied by `decoder.weight.data = encoder.weight.data.t()`, deepcopy, pickle,
#        .double() and swa_utils.AveragedModel return a network of two free matrices, without a warning. deepcopy of the
#        same two tensors, torch.save with torch.load, and steps of an optimizer keep them tied.
# Means: a copy that is trained further, an average of weights, or a model that another process received is another
#        network than the one that was tied, with twice the parameters. Tie by `decoder.weight = encoder.weight`, or
#        compute one from the other in forward.
#
# Output seen:
#   made: tied
#   deepcopy of the tensors: tied
#   torch.save and torch.load: tied
#   a step of Adam: tied
#   deepcopy of the module: free
#   pickle: free
#   double(): free
#   AveragedModel: free
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import copy
import io
import pickle

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4, bias=False), nn.Linear(4, 3, bias=False)
        self.decoder.weight.data = self.encoder.weight.data.t()


def is_tied(one, other):
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def weights(module):
    return module.encoder.weight, module.decoder.weight


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def stepped(module):
    optimizer = torch.optim.Adam(module.parameters())
    module.decoder(module.encoder(torch.ones(2, 3))).sum().backward()
    optimizer.step()
    return module


tensors = [weight.detach() for weight in weights(Autoencoder())]
for name, pair, expected in (
    ("made", weights(Autoencoder()), True),
    ("deepcopy of the tensors", copy.deepcopy(tensors), True),
    ("torch.save and torch.load", weights(saved_and_loaded(Autoencoder())), True),
    ("a step of Adam", weights(stepped(Autoencoder())), True),
    ("deepcopy of the module", weights(copy.deepcopy(Autoencoder())), False),
    ("pickle", weights(pickle.loads(pickle.dumps(Autoencoder()))), False),
    ("double()", weights(Autoencoder().double()), False),
    ("AveragedModel", weights(AveragedModel(Autoencoder()).module), False),
):
    tied = is_tied(*pair)
    print(f"{name}: {'tied' if tied else 'free'}")
    assert tied == expected, "this has changed"
PYTHON
env/bin/python -W ignore look.py
