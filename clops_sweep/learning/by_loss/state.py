"""Conversion of the attributes of a `Strategy` to checkpoint data and back."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from logging import Logger
from types import MemberDescriptorType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from clops_sweep.learning.by_loss.batch import Steps
from clops_sweep.learning.by_loss.frozen import Frozen
from clops_sweep.learning.by_loss.memory import Memory, Reservoir

_PLACE, _OPEN = "place", -1
"""Key of the place of a value, and the place of one whose parts are not stored yet."""

_OBJECTS: Mapping[str, type[Memory | Frozen]] = {"memory": Memory, "reservoir": Reservoir, "frozen": Frozen}


class Attributes:
    """Attributes for a checkpoint; what has several references stays shared.

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
        self._memory = [("the network's parameters, which change", _laid_out(steps.passes.parameters))]
        self._kept: list[tuple[str, Any]] = []
        self._places: dict[int, int] = {}
        self.values = {name: self._stored(f"self.{name}", value) for name, value in values.items()}
        self._check_memory()

    def state(self) -> dict[str, Any]:
        """Return tensors, numbers, text and containers of them; each value comes after those that it contains."""
        kept = [(kind, it.state() if kind in _OBJECTS else it) for kind, it in self._kept]
        return {"values": self.values, "kinds": [kind for kind, _ in kept], "kept": [it for _, it in kept]}

    def _stored(self, where: str, value: Any) -> Any:
        """Return a constant, or the place of any other value."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) not in self._places:
            self._places[id(value)] = _OPEN
            kept = self._new(where, value)
            self._places[id(value)] = len(self._kept)
            self._kept.append(kept)
        elif self._places[id(value)] == _OPEN:
            raise self._steps.error(f"{where} contains itself, which a checkpoint cannot hold; keep a copy of it")
        return {_PLACE: self._places[id(value)]}

    def _new(self, where: str, value: Any) -> tuple[str, Any]:
        """Return the kind of a value, and the value as tensors, constants and places."""
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            if value.grad_fn is not None:
                raise self._steps.error(f"{where} depends on a pass; detach what is kept")
            self._memory.append((where, _laid_out(value)))
            held = value.detach()
            kind = ("leaf" if value.requires_grad else "tensor") + " parameter" * isinstance(value, torch.nn.Parameter)
            return kind, held if value.grad is None else [held, self._stored(f"{where}.grad", value.grad)]
        if isinstance(value, np.generic) or type(value) is np.ndarray:
            if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
                self._memory.append((where, np.asarray(value)))
                array = np.array(value, dtype=value.dtype.newbyteorder("="))
                return "number" if isinstance(value, np.generic) else "array", torch.from_numpy(array)
        elif type(value) in (list, tuple):
            return type(value).__name__, [self._stored(f"{where}[{place}]", it) for place, it in enumerate(value)]
        elif type(value) is dict and all(type(key) in (int, str) for key in value):
            return "dict", {key: self._stored(f"{where}[{key!r}]", it) for key, it in value.items()}
        for kind, of in _OBJECTS.items():
            if type(value) is of:
                self.objects.append(value)
                self._memory += [
                    (f"{where}.columns[{name!r}]", _laid_out(it)) for name, it in getattr(value, "columns", {}).items()
                ]
                return kind, value
        own = " (a subclass of Memory)" if isinstance(value, Memory) else ""
        raise self._steps.error(
            f"{where} is {type(value).__name__}{own}, which a checkpoint cannot hold; expected dense tensors, "
            "numbers, texts, Memory, Reservoir, frozen networks, or lists, tuples and dicts of them"
        )

    def _check_memory(self) -> None:
        """Check that no two values have an element in common: they would be apart in a resumed run."""
        before: list[tuple[int, int]] = []
        for low, high, place in sorted((*byte_bounds(it), place) for place, (_, it) in enumerate(self._memory)):
            before = [(high, place), *(it for it in before if it[0] > low)]
            for _, other in before[1:]:
                (first, one), (second, two) = (self._memory[it] for it in sorted((place, other)))
                if np.shares_memory(one, two):
                    raise self._steps.error(f"{second} shares memory with {first}; keep a clone() or copy() of it")


def _laid_out(value: torch.Tensor) -> NDArray[Any]:
    """Return an array at the addresses of a tensor, not to be read; an empty one on devices without addresses."""
    if not value.data_ptr():
        return np.empty(0)
    size, strides = value.element_size(), [value.element_size() * step for step in value.stride()]
    facts = {"data": (value.data_ptr(), True), "shape": tuple(value.shape), "strides": tuple(strides)}
    return np.asarray(SimpleNamespace(__array_interface__=facts | {"typestr": f"|V{size}", "version": 3}))


def in_classes(of: type, base: type) -> dict[str, object]:
    """Return the values in a class and its bases, without those that a common base has, by class and name."""
    return {
        f"{each.__name__}.{name}": value
        for each in of.__mro__
        for name, value in vars(each).items()
        if not issubclass(base, each) and not hasattr(base, name) and not name.startswith(("__", "_abc_"))
    }


def check_classes(steps: Steps, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Check that values in classes, given by class and name, did not change and cannot.

    Raises:
        UsageError: one can change.
    """
    for name in {**before, **after}:
        if before.get(name) is not after.get(name) or _can_change(after.get(name)):
            raise steps.error(
                f"{name} can change, but lies in the class or its __slots__, which checkpoints leave out; create it in "
                "setup() as an attribute of self"
            )


def _can_change(value: object) -> bool:
    """Return whether a value in a class can change: most such values have no hash, or that of their address."""
    if isinstance(value, tuple | frozenset):
        return any(map(_can_change, value))
    constant = value is None or callable(value) or hasattr(value, "__get__") or isinstance(value, torch.dtype | Logger)
    return isinstance(value, torch.Tensor | MemberDescriptorType) or (
        not constant and type(value).__hash__ in (None, object.__hash__)
    )


def restored(steps: Steps, state: Mapping[str, Any]) -> dict[str, Any]:
    """Restore attributes from `Attributes.state`."""
    found: list[Any] = []
    storages: dict[int, Any] = {}

    def value_of(stored: Any) -> Any:
        return found[stored[_PLACE]] if isinstance(stored, dict) else stored

    for kind, kept in zip(state["kinds"], state["kept"], strict=True):
        if kind in _OBJECTS:
            found.append(_OBJECTS[kind].restored(kept, steps))
        elif kind.startswith(("tensor", "leaf")):
            tensor, gradient = kept if isinstance(kept, list) else (kept, None)
            tensor = deepcopy(tensor, storages)  # with its strides
            tensor = torch.nn.Parameter(tensor, requires_grad=False) if kind.endswith("parameter") else tensor
            tensor.requires_grad_(kind.startswith("leaf")).grad = value_of(gradient)
            found.append(tensor)
        elif kind in ("array", "number"):
            array = kept.cpu().numpy().copy("K")
            found.append(array[()] if kind == "number" else array)
        elif kind == "dict":
            found.append({key: value_of(it) for key, it in kept.items()})
        else:
            found.append({"list": list, "tuple": tuple}[kind](map(value_of, kept)))
    return {name: value_of(stored) for name, stored in state["values"].items()}
