#!/usr/bin/env bash
# torch 2.13.0: torch.export.export keeps the forward pass of a gradient reversal layer and loses its backward pass.
#
# Guess: a module in training mode with an own autograd.Function, or with backward hooks, is exported with its gradients,
#        or the export raises.
# Seen:  the export succeeds without a warning, and the exported module gives the same outputs. Its gradients are those
#        of the operations in the forward pass: with a gradient reversal layer they have the opposite sign, and hooks of
#        tensors and layers are gone.
# Means: a domain-adversarial network that is trained after its export learns the opposite, and no comparison of outputs
#        shows it. Compare gradients, or look for functions and hooks before the export.
#
# Output seen:
#   gradient reversal: outputs equal, gradient of the export is -1 times that of the module
#   hook of a tensor: outputs equal, gradient of the export is 0.1 times that of the module
#   hook of a layer: outputs equal, gradient of the export is 0.1 times that of the module
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 numpy==2.4.6
cat > export.py <<'PYTHON'
import warnings

import torch
from torch import nn

warnings.simplefilter("error", UserWarning)


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 1)

    def between(self, hidden):
        return hidden

    def forward(self, x):
        return self.head(self.between(self.body(x)))


class Reversed(Network):
    def between(self, hidden):
        return Reversal.apply(hidden)


class TensorHook(Network):
    def between(self, hidden):
        hidden.register_hook(lambda gradient: 10 * gradient)
        return hidden


class LayerHook(Network):
    def __init__(self):
        super().__init__()
        self.head.register_full_backward_hook(lambda layer, inputs, outputs: tuple(10 * it for it in inputs))


def gradient(module, x):
    module.zero_grad()
    output = module(x)
    output.sum().backward()
    return output.detach(), module.get_parameter("body.weight").grad.clone()


x = torch.randn(4, 8)
found = {}
for name, kind in (("gradient reversal", Reversed), ("hook of a tensor", TensorHook), ("hook of a layer", LayerHook)):
    torch.manual_seed(0)
    module = kind().train()
    exported = torch.export.export(module, (x,)).module()
    (output, expected), (again, seen) = gradient(module, x), gradient(exported, x)
    assert torch.equal(output, again)
    found[name] = round(float((seen / expected).nanmedian()), 3)
    print(f"{name}: outputs equal, gradient of the export is {found[name]:g} times that of the module")
assert list(found.values()) == [-1, 0.1, 0.1]
PYTHON
env/bin/python export.py
