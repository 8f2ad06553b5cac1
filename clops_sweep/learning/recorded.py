"""Training steps that are recorded once on a CPU and repeated without the Python between their operations.

At batch 16 a third of a step of so small a network is views, allocations and the Python that asks for them, and all of
that is the same each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})


class RecordedSteps:
    """What `CapturedSteps` is on a GPU, for functions that are PyTorch operations on a CPU and nothing else.

    The first call under a key is an ordinary one, the second is recorded, all others repeat what was recorded: the same
    operations on the same memory, so the same numbers bit for bit. What they allocated stays allocated.
    """

    captures = True

    def __init__(self) -> None:
        self._calls: Counter[Hashable] = Counter()
        self._recorded: dict[Hashable, Sequence[Callable[[], object]]] = {}

    def __call__(self, key: Hashable, function: Callable[[], None]) -> None:
        """Does what the function does."""
        if key in self._recorded:
            for operation in self._recorded[key]:
                operation()
            return
        self._calls[key] += 1
        if self._calls[key] == 1:
            function()
            return
        with _Recorder() as recorder:
            function()
        self._recorded[key] = recorder.operations


class _Recorder(TorchDispatchMode):
    """Takes down every operation that is computed meanwhile, in a form that computes it again into the same memory."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Callable[[], object]] = []

    def __torch_dispatch__(
        self,
        operation: torch._ops.OpOverload,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        named = kwargs or {}
        result = operation(*args, **named)
        again = _again(operation, args, named, result)
        if again is not None:
            self.operations.append(again)
        return result


def _again(
    operation: torch._ops.OpOverload, args: Sequence[Any], named: Mapping[str, Any], result: Any
) -> Callable[[], object] | None:
    """The operation once more, its result to where it was the first time; None where nothing is to be computed."""
    if operation.is_view:
        return None
    if operation._schema.is_mutable:
        return partial(operation, *args, **named)
    results = list(_tensors(result))
    memory = {_address(argument) for argument in _tensors([args, list(named.values())])}
    name = operation.overloadpacket.__name__
    if name in _EMPTY or all(_address(tensor) in memory for tensor in results):
        return None
    if name in _ZEROS:
        return results[0].zero_
    form = _form_with_out(operation)
    if form is not None:
        into, names = form
        return partial(into, *args, **named, **dict(zip(names, results, strict=True)))

    def compute_and_copy() -> None:
        for kept, new in zip(results, _tensors(operation(*args, **named)), strict=True):
            kept.copy_(new)

    return compute_and_copy


@cache
def _form_with_out(operation: torch._ops.OpOverload) -> tuple[torch._ops.OpOverload, list[str]] | None:
    """The overload that takes the same arguments and, by these names, where its results are to go."""
    wanted = [(argument.name, str(argument.type)) for argument in operation._schema.arguments]
    packet = operation.overloadpacket
    for name in packet.overloads():
        overload: torch._ops.OpOverload = getattr(packet, name)
        arguments = overload._schema.arguments
        outs = [argument.name for argument in arguments if argument.is_out]
        if outs and [(a.name, str(a.type)) for a in arguments if not a.is_out] == wanted:
            return overload, outs
    return None


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
