"""Attributes of a `Strategy` in a checkpoint: what they may be, and how they come back.

`torch.save` and `torch.load(weights_only=True)` keep strides and types, and what is shared stays shared. They load no
other class than those below; nothing in a checkpoint is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from logging import Logger
from random import Random
from types import MemberDescriptorType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.method.batch import Steps
from clops_sweep.learning.method.frozen import Frozen
from clops_sweep.learning.method.memory import Memory, Reservoir
from clops_sweep.learning.method.training import InstanceRecord

_OF_RUNS = (Memory, Reservoir, Frozen)
"""Classes whose objects join a run after they were loaded."""

_OF_TENSORS = (InstanceRecord, TaskInstanceParameters, Adam, Penalty)
"""Classes that hold tensors, numbers and each other."""


_GENERATORS = (np.random.Generator, np.random.RandomState, Random, torch.Generator)


class StoredArray:
    """A NumPy array or number as a tensor, which `torch.save` writes ten times as fast."""

    def __init__(self, array: NDArray[Any] | np.generic) -> None:
        self.number = isinstance(array, np.generic)
        self.tensor = torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("=")))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a new array or number."""
        array = self.tensor.cpu().numpy().copy("K")
        return array[()] if self.number else array


STORED = (*_OF_RUNS, *_OF_TENSORS, StoredArray)
"""Classes of the product whose objects a checkpoint may hold."""

torch.serialization.add_safe_globals(list(STORED))


class Attributes:
    """Attributes of a strategy, checked: a checkpoint can hold them.

    Args:
        steps: the steps of their strategy.
        values: attributes by name.

    Attributes:
        tensors: all tensors among them.

    Raises:
        UsageError: a value cannot be stored, or two share memory and would not in a resumed run.
    """

    def __init__(self, steps: Steps, values: Mapping[str, object]) -> None:
        self._steps = steps
        self._values = dict(values)
        self.tensors: list[torch.Tensor] = []
        self._arrays: list[NDArray[Any] | np.generic] = []
        self._objects: list[Any] = []
        self._memory: list[tuple[str, torch.Tensor | None, NDArray[Any]]] = []
        self._seen: dict[int, bool] = {}
        """Values by id, and whether all parts of each have been seen."""
        for name, value in self._values.items():
            self._see(f"self.{name}", value)
        self._check_memory()

    def _check_memory(self) -> None:
        """Check that what shares memory stays shared: views of one tensor do, others would part in a resumed run."""
        parameters = self._steps.training.learner.parameters.flat
        memory = [("the network's parameters, which change", None, _laid_out(parameters)), *self._memory]
        ranges = [(*byte_bounds(array), index) for index, (_, _, array) in enumerate(memory)]
        overlapping: list[tuple[int, int]] = []
        for low, high, index in sorted(ranges):
            overlapping = [(end, earlier) for end, earlier in overlapping if end > low]
            for _, earlier in overlapping:
                first, second = sorted((index, earlier))
                self._check_pair(memory[first], memory[second])
            overlapping.append((high, index))

    def _check_pair(self, first: _Memory, second: _Memory) -> None:
        first_name, first_tensor, first_array = first
        second_name, second_tensor, second_array = second
        if first_tensor is not None and second_tensor is not None and _are_views(first_tensor, second_tensor):
            return
        if np.shares_memory(first_array, second_array):
            raise self._steps.error(f"{second_name} shares memory with {first_name}; keep a clone() or copy() of it")

    def state(self) -> dict[str, Any]:
        """Return the attributes for `torch.save`: tensors are those of the strategy, arrays are copies."""
        gradients = [[tensor, tensor.grad] for tensor in self.tensors if tensor.is_leaf and tensor.grad is not None]
        stored: dict[int, Any] = {id(tensor): tensor for tensor in self.tensors}
        for array in self._arrays:
            stored[id(array)] = StoredArray(array)
        return deepcopy({"values": self._values, "gradients": gradients}, stored)

    def join(self) -> None:
        """Make memories and frozen networks part of the run."""
        for value in self._objects:
            value.join(self._steps.training.learner if isinstance(value, Frozen) else self._steps)

    def _see(self, where: str, value: Any) -> None:
        """Check a value and its parts."""
        if value is None or type(value) in (bool, int, float, str):
            return
        if self._seen.get(id(value)):
            return
        if id(value) in self._seen:
            raise self._steps.error(f"{where} contains itself, which a checkpoint cannot hold; keep a copy of it")
        self._seen[id(value)] = False
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            self._see_tensor(where, value)
        elif _is_array(value):
            self._arrays.append(value)
            self._memory.append((where, None, np.asarray(value)))
        elif (parts := _parts(where, value)) is not None:
            for part in parts:
                self._see(*part)
        elif type(value) is not StoredArray:
            own = " (a subclass of Memory)" if isinstance(value, Memory) else ""
            if isinstance(value, _GENERATORS):
                raise self._steps.error(
                    f"{where} is a random generator, which a checkpoint cannot hold; draw from self.rng, whose numbers "
                    "are the same in a run that is resumed"
                )
            raise self._steps.error(
                f"{where} is {type(value).__name__}{own}, which a checkpoint cannot hold; expected dense tensors, "
                "numbers, texts, Memory, Reservoir, frozen networks, or lists, tuples and dicts of them"
            )
        if type(value) in _OF_RUNS:
            self._objects.append(value)
        self._seen[id(value)] = True

    def _see_tensor(self, where: str, tensor: torch.Tensor) -> None:
        if tensor.grad_fn is not None:
            raise self._steps.error(f"{where} depends on a pass; detach what is kept")
        self.tensors.append(tensor)
        self._memory.append((where, tensor, _laid_out(tensor)))
        if tensor.grad is not None:
            self._see(f"{where}.grad", tensor.grad)


_Memory = tuple[str, torch.Tensor | None, NDArray[Any]]
"""Name of a value; the value, if it is a tensor; and an array at its addresses."""


def restored(steps: Steps, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of the attributes in `Attributes.state`, with tensors on the device of the run."""
    moved = _moved(Attributes(steps, state).tensors, steps.device)
    copy = deepcopy(dict(state), moved)
    for tensor, gradient in copy["gradients"]:
        tensor.grad = gradient
    values: dict[str, Any] = copy["values"]
    Attributes(steps, values).join()
    return values


def _moved(tensors: Sequence[torch.Tensor], device: torch.device) -> dict[int, torch.Tensor]:
    """Return the tensors that are on another device, moved, by id; views of one tensor stay views."""
    moved: dict[int, torch.Tensor] = {}
    wholes: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    for tensor in tensors:
        if tensor.device.type == device.type:
            continue
        storage = tensor.untyped_storage()
        key = storage.data_ptr(), tensor.dtype
        if key not in wholes:
            wholes[key] = tensor.new_empty(0).set_(storage).to(device)
        copy = wholes[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if isinstance(tensor, torch.nn.Parameter):
            copy = torch.nn.Parameter(copy, requires_grad=False)
        moved[id(tensor)] = copy.requires_grad_(tensor.requires_grad)
    return moved


def _is_array(value: object) -> bool:
    """Return whether a value is an array or number of NumPy that has a tensor."""
    if not isinstance(value, np.generic) and type(value) is not np.ndarray:
        return False
    return value.dtype.kind in "biuf" and value.dtype.itemsize <= 8


def _parts(where: str, value: Any) -> Iterator[tuple[str, Any]] | None:
    """Return the parts of a value with their names; None if a checkpoint cannot hold it."""
    if type(value) in (list, tuple):
        return ((f"{where}[{index}]", part) for index, part in enumerate(value))
    if type(value) is dict and all(type(key) in (int, str) for key in value):
        return ((f"{where}[{key!r}]", part) for key, part in value.items())
    if type(value) is Frozen:
        return iter(())
    if type(value) in (*_OF_RUNS, *_OF_TENSORS):
        return ((f"{where}.{name}", part) for name, part in value.__getstate__().items())
    return None


def in_classes(method: type, base: type) -> dict[str, object]:
    """Return the values in a class and its bases, without those that a common base has, by class and name."""
    values = {}
    for class_ in method.__mro__:
        if issubclass(base, class_):
            continue
        for name, value in vars(class_).items():
            if not hasattr(base, name) and not name.startswith(("__", "_abc_")):
                values[f"{class_.__name__}.{name}"] = value
    return values


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


def check_code(steps: Steps, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Check that no number in the closures, globals and defaults of a method's code changed, given by name.

    Raises:
        UsageError: one changed.
    """
    for name, number in after.items():
        if name in before and before[name] != number:
            raise steps.error(
                f"changes {name} in a closure, global or default, which checkpoints leave out; keep it as an attribute "
                "of self"
            )


def _can_change(value: object) -> bool:
    """Return whether a value in a class can change: most such values have no hash, or that of their address."""
    if isinstance(value, tuple | frozenset):
        return any(map(_can_change, value))
    if isinstance(value, torch.Tensor | MemberDescriptorType):
        return True
    if value is None or callable(value) or hasattr(value, "__get__") or isinstance(value, torch.dtype | Logger):
        return False
    return type(value).__hash__ in (None, object.__hash__)


def _laid_out(value: torch.Tensor) -> NDArray[Any]:
    """Return an array at the addresses of a tensor, not to be read; an empty one on devices without addresses."""
    if not value.data_ptr():
        return np.empty(0)
    size = value.element_size()
    interface = {
        "data": (value.data_ptr(), True),
        "shape": tuple(value.shape),
        "strides": tuple(size * step for step in value.stride()),
        "typestr": f"|V{size}",
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def _are_views(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors are views of the same memory with the same type, as `torch.save` keeps them."""
    return first.dtype == second.dtype and _at_beginning(first).is_set_to(_at_beginning(second))


def _at_beginning(tensor: torch.Tensor) -> torch.Tensor:
    """Return an empty view at the beginning of a tensor's memory."""
    view: torch.Tensor = tensor.new_empty(0).set_(tensor.untyped_storage(), 0, (0,))  # type: ignore[call-overload]
    return view
