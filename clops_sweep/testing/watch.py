"""Tools of the contract suites: recording of frame accesses, exact comparison, and guards of global generators."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from clops_sweep.learning.batches import Batch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.method.batch import FrameBatch
from clops_sweep.learning.method.state import STORED
from clops_sweep.learning.networks.module_probe import same_bits
from clops_sweep.learning.result import RunResult

MEASURED = frozenset({"seconds", "seconds_train", "seconds_acquire", "seconds_evaluate", "cpu_seconds", "started_at"})
"""Columns that may differ between two executions of a run."""


class ContractViolation(AssertionError):
    """A plug-in breaks its contract; the message says how."""


class NotRepeated(ContractViolation):
    """Numbers of a run differ when it is repeated, or trained beside another."""


class NotResumed(ContractViolation):
    """Numbers of a run differ when it is resumed from a checkpoint."""


def require(condition: object, message: str) -> None:
    """Raise ContractViolation unless the condition holds."""
    if not condition:
        raise ContractViolation(message)


class RecordingBank(FrameBank):
    """A frame bank that shares the frames of another bank and records the requested rows."""

    def __init__(self, bank: FrameBank) -> None:
        vars(self).update(vars(bank))
        self.asked: set[int] = set()

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Record the rows, and return their frames."""
        self.asked.update(rows.flatten().tolist())
        return super().gather(rows)


class Looks:
    """Records the frames that a learner reads, whichever backend computes it.

    Args:
        learner: the learner; its methods are replaced by recording ones, which compute the same numbers.
    """

    def __init__(self, learner: Learner) -> None:
        self._bank = RecordingBank(learner.bank)
        self._trained: set[int] = set()
        learner.bank = self._bank
        names = ("gradient", "backpropagate", "logits", "losses", "probabilities", "dropout_probabilities")
        for name in names:
            setattr(learner, name, self._noting(getattr(learner, name)))
        for name in ("train_by_logits", "train_along"):  # the base class calls the recording methods
            setattr(learner, name, partial(getattr(Learner, name), learner))
        learner.train_epoch = self._noting_epoch(learner.train_epoch)  # type: ignore[method-assign]

    def take(self) -> set[int]:
        """Return the distinct rows read since the last call."""
        asked, self._bank.asked = self._bank.asked, set()
        return asked

    def take_trained(self) -> set[int]:
        """Return the distinct rows of gradients computed in training mode since the last call."""
        trained, self._trained = self._trained, set()
        return trained

    def trained_on(self, batch: FrameBatch) -> None:
        """Record the rows of a batch whose loss is differentiated."""
        self._trained |= set(batch.instances.rows.tolist())

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def noting(what: Batch | torch.Tensor, *arguments: Any, **options: Any) -> Any:
            rows = set((what if isinstance(what, torch.Tensor) else what.rows).flatten().tolist())
            self._bank.asked |= rows
            if method.__name__ in ("gradient", "backpropagate") and options.get("batch_statistics", True):
                self._trained |= rows
            return method(what, *arguments, **options)

        return noting

    def _noting_epoch(self, method: Callable[..., None]) -> Callable[..., None]:
        def noting(
            task: Instances, replay: Replay | None, order: torch.Tensor, *arguments: Any, **options: Any
        ) -> None:
            union = task if replay is None else Instances.union([task, replay.instances])
            rows = set(union.rows[order].tolist())
            self._bank.asked |= rows
            self._trained |= rows
            method(task, replay, order, *arguments, **options)

        return noting


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return the path of the first difference between two nested states; None if bit-equal. `MEASURED` is ignored."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return f"{path}: keys {sorted(map(str, one.keys() ^ other.keys()))}"
        parts = [(f"{path}/{key}", one[key], other[key]) for key in one if key not in MEASURED]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{path}: lengths {len(one)} and {len(other)}"
        parts = [(f"{path}/{place}", *pair) for place, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return None if same_bits(one, other) else path
    elif type(one) is type(other) and isinstance(one, STORED):
        return difference(one.__getstate__(), other.__getstate__(), path)
    else:
        return None if type(one) is type(other) and (one == other or one != one) else path
    return next((found for part in parts if (found := difference(part[1], part[2], part[0]))), None)


def result_difference(one: RunResult, other: RunResult, ignore: Sequence[str] = ()) -> str | None:
    """Return the first table and column in which two results differ, or None. `MEASURED` is ignored."""
    for name, columns in one.columns.items():
        others = other.columns[name]
        for column in dict.fromkeys([*columns, *others]):
            if column in MEASURED or column in ignore:
                continue
            if not _same_values(columns.get(column), others.get(column)):
                return f"{name}.{column}"
    return None


def _same_values(one: Any, other: Any) -> bool:
    """Return whether columns are equal in type, length and values; nan equals nan."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.dtype == other.dtype or one.dtype.kind == other.dtype.kind == "U"
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return type(one) is type(other) and repr(one) == repr(other)


def saved(state: Any) -> bytes:
    """Return a state as the bytes of a file."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def loaded(content: bytes) -> Any:
    """Return the state in the bytes of a file, which may contain only data, no code."""
    return torch.load(io.BytesIO(content), weights_only=True)


def saved_and_loaded(state: Any) -> Any:
    """Return a state after saving and loading it."""
    return loaded(saved(state))


@contextmanager
def global_randomness(seed: int, who: str) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and PyTorch, and require that the block does not draw from them."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    seeded = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
        after = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        same = (
            seeded[0] == after[0]
            and all(np.array_equal(one, other) for one, other in zip(seeded[1], after[1], strict=True))
            and torch.equal(seeded[2], after[2])
        )
        require(same, f"{who} draws from a global generator; draw from clops_sweep.learning.streams instead")
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])
