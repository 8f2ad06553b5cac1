"""What the layers of a module are given and return, so that a message can name the one that is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Test = Callable[[torch.Tensor], bool]


@dataclass(frozen=True)
class Call:
    """One call of a layer: copies of the tensors that it was given and has returned."""

    layer: str
    given: list[torch.Tensor]
    returned: list[torch.Tensor]


@dataclass
class LayerTrace:
    """The calls of all layers in a pass, in the order in which they ended, and those that have not."""

    calls: list[Call] = field(default_factory=list)
    _under_way: list[tuple[str, list[torch.Tensor]]] = field(default_factory=list)

    @property
    def unfinished(self) -> str | None:
        """The layer that was at work when something was raised; the innermost one."""
        return self._under_way[-1][0] if self._under_way else None

    def first_that(self, test: Callable[[Call], bool]) -> str | None:
        """The first layer whose call passes a test; a layer ends before those that it is part of."""
        return next((call.layer for call in self.calls if test(call)), None)

    def first_difference(self, other: LayerTrace) -> str | None:
        """The first layer that has returned something else in another pass though it was given the same."""
        for one, two in zip(self.calls, other.calls, strict=False):
            if one.layer == two.layer and _same(one.given, two.given) and not _same(one.returned, two.returned):
                return one.layer
        return None


@contextmanager
def traced(module: nn.Module) -> Iterator[LayerTrace]:
    """Takes down what the layers of a module do inside."""
    trace, handles = LayerTrace(), []

    def begin(layer: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: Any, named: Any) -> None:
            trace._under_way.append((layer, _copies([arguments, named])))

        return hook

    def end(layer: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: Any, named: Any, returned: Any) -> None:
            _, given = trace._under_way.pop()
            trace.calls.append(Call(layer, given, _copies(returned)))

        return hook

    try:
        for name, part in module.named_modules():
            layer = f"layer {name!r} ({type(part).__name__})" if name else f"forward of {type(part).__name__}"
            handles.append(part.register_forward_pre_hook(begin(layer), with_kwargs=True))
            handles.append(part.register_forward_hook(end(layer), with_kwargs=True))
        yield trace
    finally:
        for handle in handles:
            handle.remove()


def _copies(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values.detach().clone()]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [copy for value in values for copy in _copies(value)]
    return []


def _same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(same_bits(*pair) for pair in zip(one, other, strict=True))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal in shape and every value, nan being equal to nan."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
