"""The last linear layer of a network, and the features that it sees."""

from __future__ import annotations

import torch
from torch import nn

from clops_sweep.errors import UsageError


def head_of(network: str, module: nn.Module, outputs: int) -> tuple[str, nn.Linear]:
    """Return the name and the module of the last `nn.Linear` of a network, which must compute its logits.

    Raises:
        UsageError: no such layer has a bias and one output per class.
    """
    layers = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    if not layers or layers[-1][1].out_features != outputs or layers[-1][1].bias is None:
        raise UsageError(
            f"network {network!r}: has no last nn.Linear with {outputs} outputs and a bias, which methods with a "
            "closed-form head replace"
        )
    return layers[-1]


def features_of(head: nn.Linear, module: nn.Module, frames: torch.Tensor) -> torch.Tensor:
    """What the head of a module sees of frames [B, channels, samples]: float32 [B, features]."""
    seen: list[torch.Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        with torch.no_grad():
            module(frames)
    finally:
        handle.remove()
    if len(seen) != 1 or seen[0].shape != (len(frames), head.in_features):
        raise UsageError("the network's last nn.Linear is not called once with [instances, features]")
    return seen[0]


def add_projection(network: str, module: nn.Module, outputs: int, size: int) -> None:
    """Put a fixed random projection before the head of a module, in place.

    h(x) = relu(P f(x)) with P [size, features], P_ij ~ N(0, 1), is what the new head sees. P is not trained.

    Raises:
        UsageError: the module has no head.
    """
    name, head = head_of(network, module, outputs)
    projection = nn.Linear(head.in_features, size, bias=False).requires_grad_(False)
    nn.init.normal_(projection.weight)
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, nn.Sequential(projection, nn.ReLU(), nn.Linear(size, outputs)))
