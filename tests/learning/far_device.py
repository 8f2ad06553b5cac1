"""A simulated device: its tensors are computed on the CPU, but whatever a GPU cannot do raises an error.

Such an error is an operation that mixes tensors of CPU and device. As a program, which needs its own PyTorch since it
registers a device, it trains runs on device and CPU, and prints how far their numbers differ. An argument is a case.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from clops_sweep import ContinualRun
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.learners import graphs
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import MEASURED, saved_and_loaded
from tests.helpers.documentation import examples
from tests.helpers.repeating import Repeating

DEVICE = "far:0"


class Impossible(Exception):
    """A GPU cannot do this."""


class Far(torch.Tensor):
    """A tensor that claims to be on the device."""

    def __new__(cls, near: torch.Tensor) -> Far:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            near.size(),
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=torch.device(DEVICE),
        )

    def __init__(self, near: torch.Tensor) -> None:
        self.near = near

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})

    # PyTorch does not dispatch these

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.near.__reduce_ex__(protocol)  # a checkpoint is read on the CPU

    @property
    def data(self) -> Far:  # type: ignore[override]
        return Far(self.near)

    @data.setter
    def data(self, other: Far) -> None:
        self.near = other.near

    def tolist(self) -> Any:
        return self.near.tolist()

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(torch.tensor(index) if isinstance(index, list) else index)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(torch.tensor(index) if isinstance(index, list) else index, value)


class Near(TorchDispatchMode):
    """Makes the device known to operations without tensor arguments."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})


def compute(operation: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(tensors_in((args, kwargs)))
    far = [tensor for tensor in tensors if isinstance(tensor, Far)]
    name, device = operation.overloadpacket.__name__, kwargs.get("device")
    there = bool(far) if device is None else torch.device(device).type != "cpu"
    check(operation, name, len(far), [tensor for tensor in tensors if not isinstance(tensor, Far)])
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    result = operation(*near(args), **near(kwargs))
    known = {id(near(tensor)): tensor for tensor in tensors}  # a tensor changed in place stays the same object
    return tree_map(lambda x: known.get(id(x), Far(x)) if there and isinstance(x, torch.Tensor) else x, result)


def near(values: Any) -> Any:
    """Return the values with tensors of the CPU."""
    if isinstance(values, Far):
        return values.near
    if isinstance(values, dict):
        return {name: near(value) for name, value in values.items()}
    return type(values)(map(near, values)) if type(values) in (list, tuple) else values


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict | list | tuple):
        for value in values.values() if isinstance(values, dict) else values:
            yield from tensors_in(value)


def check(operation: Any, name: str, far: int, others: list[torch.Tensor]) -> None:
    """Raise `Impossible` if a GPU cannot compute an operation.

    Args:
        operation: the operation.
        name: its name.
        far: number of its arguments on the device.
        others: its arguments on the CPU.
    """
    numbers = torch.Tag.pointwise in operation.tags and all(tensor.dim() == 0 for tensor in others)
    if far and others and not numbers and name not in ("copy_", "index", "index_put_"):
        raise Impossible(f"{operation} of tensors on different devices")


def register() -> None:
    """Register the device in PyTorch."""
    module = SimpleNamespace(
        is_initialized=lambda: True,
        is_available=lambda: True,
        current_device=lambda: 0,
        device_count=lambda: 1,
        _is_in_bad_fork=lambda: False,
        _lazy_init=lambda: None,
    )
    _setup_privateuseone_for_python_backend("far", module)  # type: ignore[no-untyped-call]
    ordinary = torch.tensor  # PyTorch does not dispatch this one either

    def tensor(*args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        made = ordinary(*args, **kwargs)
        return made if device is None else made.to(device)

    torch.tensor = tensor


def own(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return a user's network."""
    first = [nn.Conv1d(channels, 4, 15, 5, bias=False), nn.BatchNorm1d(4), nn.ReLU()]
    return nn.Sequential(*first, nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(16, outputs))


def distances(strategy: str, acquisition: str, kind: str, network: str) -> dict[str, float]:
    """Return how far each column of numbers differs from the CPU's, if it does."""
    common = {"strategy": strategy, "acquisition": acquisition, "network": network}
    config = tiny_config(kind, **common, epochs_per_task=2)
    frames = tiny_frames(kind, tasks=2)
    expected = ContinualRun(config, frames).run()
    with Near():
        run = ContinualRun(config, frames, DEVICE)
        for _ in range(3):
            run.advance()
        resumed = ContinualRun(config, frames, DEVICE)
        resumed.restore(saved_and_loaded(run.state()))
        found = resumed.run()
    return dict(differing(found, expected))


def differing(found: RunResult, expected: RunResult) -> Iterator[tuple[str, float]]:
    for name, table in expected.tables.items():
        for column in table.columns:
            if column in MEASURED or table[column].isna().all():
                continue
            ours, others = (numbers(each[column]) for each in (getattr(found, name), table))
            if ours.dtype.kind == "f":
                distance = float(np.nanmax(np.abs(ours - others)))
            else:
                distance = 0.0 if pd.Series(ours).equals(pd.Series(others)) else math.inf
            if distance > 0:
                yield f"{name}.{column}", distance


def numbers(column: pd.Series[Any]) -> NDArray[Any]:
    lists = [value for value in column if isinstance(value, list | np.ndarray)]
    return np.concatenate(lists) if lists else column.to_numpy()


if __name__ == "__main__":
    torch.set_num_threads(1)
    register()
    graphs.recorder_of = lambda device: Repeating if device.type == "far" else None
    NETWORKS.register("own", own)
    for page in ("own_method", "method_examples"):
        for block in examples(page):
            if "@strategy" in block:
                exec(block)
    for case in sys.argv[1:]:
        print(json.dumps(distances(*case.split())), flush=True)
    assert graphs.NOT_RECORDED == {}  # every pass from the third on was a replay
