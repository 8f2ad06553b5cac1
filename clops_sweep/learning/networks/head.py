"""Last linear layer of a network, its input features, and its replacements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from clops_sweep.errors import UsageError

_FIRST_SCALE = 10.0
"""Scale of a cosine head before training (Gidaris and Komodakis, 2018); Hou et al. give none."""


def head_of(network: str, module: nn.Module, outputs: int, *, bias: bool = True) -> tuple[str, nn.Linear]:
    """Return the name and the module of the last `nn.Linear` of a network, which must compute its logits.

    Args:
        network: name of the network, for messages.
        module: the network.
        outputs: C.
        bias: whether the layer must have a bias.

    Raises:
        UsageError: the last such layer has another number of outputs, or lacks a bias.
    """
    name = ""
    head: nn.Linear | None = None
    for layer_name, layer in module.named_modules():
        if isinstance(layer, nn.Linear):
            name, head = layer_name, layer
    if head is None or head.out_features != outputs or (bias and head.bias is None):
        raise UsageError(
            f"network {network!r}: has no last nn.Linear with {outputs} outputs{' and a bias' * bias}, which its head "
            "or strategy needs"
        )
    return name, head


def features_of(head: nn.Linear, module: nn.Module, frames: torch.Tensor) -> torch.Tensor:
    """Return the input of a module's head for frames [B, channels, samples]: float32 [B, features]."""
    inputs_of_calls: list[torch.Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, inputs: inputs_of_calls.append(inputs[0]))
    try:
        with torch.no_grad():
            module(frames)
    finally:
        handle.remove()
    if len(inputs_of_calls) != 1 or inputs_of_calls[0].shape != (len(frames), head.in_features):
        raise UsageError("the network's last nn.Linear is not called once with [instances, features]")
    return inputs_of_calls[0]


def add_projection(network: str, module: nn.Module, outputs: int, size: int, *, uniform: bool = False) -> None:
    """Put a fixed random projection before the head of a module, in place.

    h(x) = relu(P f(x)) with P [size, F] is the input of the new head. P_ij ~ N(0, 1), or uniform on +-1 / sqrt(F). P is
    not trained.

    Raises:
        UsageError: the module has no head.
    """
    name, head = head_of(network, module, outputs)
    _replace(module, name, _projected(head.in_features, size, outputs, uniform=uniform))


def add_cosine_head(network: str, module: nn.Module, outputs: int) -> None:
    """Replace the head of a module by a `CosineHead` with the same weights, in place.

    Raises:
        UsageError: the module has no head.
    """
    name, head = head_of(network, module, outputs, bias=False)
    _replace(module, name, CosineHead(head))


class CosineHead(nn.Linear):
    """z_c = s cos(f, w_c), with features f, class vectors w_c and a scale s > 0, the latter two trained.

    The head of LUCIR (Hou et al., "Learning a unified classifier incrementally via rebalancing", CVPR 2019), in which
    old and new classes have equal norms. LUCIR's other two parts, feature distillation and margin loss, are left out.
    There is no bias. s starts at 10.

    Args:
        linear: the layer to replace; its weights are kept.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=False)
        self.weight = linear.weight
        self.scale = nn.Parameter(torch.full((1,), _FIRST_SCALE))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of features, float32 [B, features]."""
        f = F.normalize(features, dim=-1)
        w = F.normalize(self.weight, dim=-1)
        return self.scale * F.linear(f, w)


class MultiScale(nn.Module):
    """Network whose head sees a random projection of its inner maps and its features.

    The head sees relu(P m) with P [size, M] fixed and random, as in `add_projection`, and m(x) [M] the means over time
    of the inputs of each convolution after the first, followed by the network's features f(x).

    Args:
        body: maps frames to f.
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head: nn.Module = nn.Identity()

    @classmethod
    def of(
        cls, network: str, module: nn.Module, shape: tuple[int, int], outputs: int, size: int, *, uniform: bool = False
    ) -> Self:
        """Return a network with this head, made from one without it, which is modified.

        Args:
            network: name of the network, for messages.
            module: the network.
            shape: channels and samples of a frame.
            outputs: C.
            size: size of the projection.
            uniform: how the projection is drawn, as in `add_projection`.

        Raises:
            UsageError: the module has no head.
        """
        name, _ = head_of(network, module, outputs)
        _replace(module, name, nn.Identity())
        with_head = cls(module).eval()
        with torch.no_grad():
            features = with_head(torch.zeros(2, *shape)).shape[1]
        with_head.head = _projected(features, size, outputs, uniform=uniform)
        return with_head

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of frames, float32 [B, channels, samples]."""
        maps = _Maps()
        with maps:
            features = self.body(frames)
        means = [inner.flatten(2).mean(2) for inner in maps.inputs[1:]]
        m = torch.cat([*means, features], dim=1)
        logits: torch.Tensor = self.head(m)
        return logits


class _Maps(TorchFunctionMode):
    """Context in which `inputs` collects the inputs of convolutions, each tensor once."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[torch.Tensor] = []

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if function in (F.conv1d, F.conv2d):
            hidden = args[0] if args else named["input"]
            if all(hidden is not earlier for earlier in self.inputs):
                self.inputs.append(hidden)
        return function(*args, **named)


def _projected(features: int, size: int, outputs: int, *, uniform: bool) -> nn.Sequential:
    projection = nn.Linear(features, size, bias=False).requires_grad_(False)
    if uniform:
        bound = features**-0.5
        nn.init.uniform_(projection.weight, -bound, bound)
    else:
        nn.init.normal_(projection.weight)
    return nn.Sequential(projection, nn.ReLU(), nn.Linear(size, outputs))


def _replace(module: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, layer)
