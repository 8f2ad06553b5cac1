"""Conversion of the attributes of a `Strategy` to checkpoint data and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from clops_sweep.learning.by_loss.batch import Steps
from clops_sweep.learning.by_loss.frozen import Frozen
from clops_sweep.learning.by_loss.memory import Memory, Reservoir

_OBJECT, _ARRAY = "__object__", "__array__"


class Attributes:
    """Attributes for a checkpoint; objects with several references stay shared.

    Args:
        steps: the steps of their strategy.
        values: attributes by name.

    Attributes:
        objects: the memories and frozen networks among them.

    Raises:
        UsageError: a value cannot be stored.
    """

    def __init__(self, steps: Steps, values: Mapping[str, object]) -> None:
        self.objects: list[Memory | Frozen] = []
        self._steps = steps
        self._live = _memory_of(steps.passes.parameters)
        self.values = {name: self._stored(f"self.{name}", value) for name, value in values.items()}

    def state(self) -> dict[str, Any]:
        """Return tensors, numbers, text and containers of them."""
        kinds = ["memory" if isinstance(it, Memory) else "frozen" for it in self.objects]
        return {"values": self.values, "objects": [it.state() for it in self.objects], "kinds": kinds}

    def _stored(self, where: str, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(where, value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return {_ARRAY: torch.from_numpy(value.copy())}
        if type(value) in (Memory, Reservoir, Frozen):  # a subclass would be restored as its base class
            same = [number for number, it in enumerate(self.objects) if it is value]
            if not same:
                self.objects.append(value)
            return {_OBJECT: same[0] if same else len(self.objects) - 1}
        if type(value) in (list, tuple):
            return type(value)(self._stored(f"{where}[{place}]", it) for place, it in enumerate(value))
        if type(value) is dict and all(type(key) in (int, str) for key in value):
            return {key: self._stored(f"{where}[{key!r}]", it) for key, it in value.items()}
        raise self._steps.error(
            f"{where} is {type(value).__name__}, which a checkpoint cannot hold; expected tensors, numbers, texts, "
            "memories, frozen networks, or lists, tuples and dicts of them"
        )

    def _tensor(self, where: str, value: torch.Tensor) -> torch.Tensor:
        if value.grad_fn is not None:
            raise self._steps.error(f"{where} depends on a pass; detach what is kept")
        if self._live is not None and _memory_of(value) == self._live:
            raise self._steps.error(f"{where} is the network's own memory, which changes; keep a clone() of it")
        return value.detach()


def _memory_of(value: torch.Tensor) -> int | None:
    """Return the address of a tensor's storage; None on devices without addresses."""
    return value.untyped_storage().data_ptr() if value.device.type in ("cpu", "cuda") else None


def restored(steps: Steps, state: Mapping[str, Any]) -> dict[str, Any]:
    """Restore attributes from `Attributes.state`."""
    objects = [
        Memory.restored(of, steps) if kind == "memory" else Frozen.restored(of, steps)
        for kind, of in zip(state["kinds"], state["objects"], strict=True)
    ]

    def value_of(stored: Any) -> Any:
        if isinstance(stored, dict):
            if stored.keys() == {_OBJECT}:
                return objects[stored[_OBJECT]]
            if stored.keys() == {_ARRAY}:
                return stored[_ARRAY].cpu().numpy()
            return {key: value_of(it) for key, it in stored.items()}
        if isinstance(stored, list | tuple):
            return type(stored)(value_of(it) for it in stored)
        return stored.clone() if isinstance(stored, torch.Tensor) else stored

    return {name: value_of(stored) for name, stored in state["values"].items()}
