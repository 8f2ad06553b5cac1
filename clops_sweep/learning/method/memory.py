"""Memory and Reservoir: stored training instances, with named columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, shown
from clops_sweep.learning.method.batch import FrameBatch, Steps
from clops_sweep.learning.replay.division import herding, kept

Policy = Literal["reservoir", "ring", "class_balanced", "task_balanced", "herding", "score"]
"""Policies that decide which instances to keep; see `Memory`."""

_RESERVED = frozenset({"x", "y", "weights", "index", "task", "instances", "at", "priority", "steps", "columns"})
"""Names that no column may have: a batch or an offer has them."""

_KEPT = ("size", "policy", "index", "columns", "priority", "_offered")
"""Attributes of a memory that a checkpoint holds."""


@dataclass
class _Offer:
    """Instances that wait for the end of a step, with their columns and priorities."""

    batch: FrameBatch
    columns: dict[str, torch.Tensor]
    priority: torch.Tensor | None = None


@arguments_of_class
class Memory:
    """At most `size` training instances, with tensors that have one row per instance; not for subclassing.

    Instances offered in a step are stored after it. The policy decides which instances are kept:

    - ``reservoir``: a uniform sample of all offers (Vitter, 1985).
    - ``ring``: the latest.
    - ``class_balanced``, ``task_balanced``: equally many per class or task, each a uniform sample of its offers.
    - ``herding``: equally many per class, chosen one by one so that their mean of `features` is closest to that of all
      instances of the class in the offer (Rebuffi et al., 2017, algorithm 4). Offer a whole task at once.
    - ``score``: those with the highest `score`.

    An instance that is offered twice may be stored twice. A method may decide by itself, too: `add` stores instances at
    once, whatever the size, and `keep` evicts others.

    Args:
        size: maximum number of instances; None without a limit.
        policy: the policy.

    Attributes:
        index: int64 [m], positions of the stored instances among the training instances of all tasks.
        columns: offered columns by name, [m, ...] each.
        priority: float64 [m], priorities of the stored instances; None if the policy has none.

    Raises:
        UsageError: a size below 1, or an unknown policy.
    """

    # no attributes beside them
    __slots__ = ("__weakref__", "_offered", "_steps", "_waiting", "columns", "index", "policy", "priority", "size")

    def __init__(self, size: int | None, policy: Policy = "reservoir") -> None:
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
            raise UsageError(f"{type(self).__name__}: size = {shown(size)}: expected a whole number, at least 1")
        if policy not in get_args(Policy):
            raise UsageError(f"Memory: policy = {shown(policy)}: expected one of {', '.join(get_args(Policy))}")
        self.size = size
        self.policy = policy
        self.index = torch.zeros(0, dtype=torch.int64)
        self.columns: dict[str, torch.Tensor] = {}
        self.priority: torch.Tensor | None = None
        self._offered = 0
        self._waiting: list[_Offer] = []
        self._steps: Steps | None = None

    if not TYPE_CHECKING:  # a type checker finds names that are not there by itself

        def __getattr__(self, name: str) -> Any:
            hint = f"; self.memory.all().{name} is that of the stored instances" if hasattr(FrameBatch, name) else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __len__(self) -> int:
        """Return m, the number of stored instances."""
        return self.index.shape[0]

    def join(self, steps: Steps) -> None:
        """Become part of a run."""
        if self._steps is not steps:
            self._steps = steps
            self.index = self.index.to(steps.device)
            steps.memories.add(self)

    def offer(self, batch: FrameBatch, *, priority: torch.Tensor | None = None, **columns: torch.Tensor) -> None:
        """Offer the instances of a batch; they are stored after the step.

        Args:
            batch: the instances.
            priority: [n]. If given, it decides which instances of a class, a task or all stay: those with the highest
                ones.
            columns: values to keep per instance, [n, ...], with the same names in every offer. ``herding`` needs
                `features`, [n, d], which it does not keep; ``score`` needs `score`, [n].

        Raises:
            UsageError: the columns differ from those of earlier offers, or their length from that of the batch; or
                priorities for a policy that has no use for them.
        """
        steps = batch.steps
        self.join(steps)
        offer = _Offer(batch, self._checked(batch, columns))
        needed = {"herding": "features", "score": "score"}.get(self.policy)
        if needed is not None and needed not in columns:
            raise steps.error(f"memory: policy {self.policy!r} needs {needed}=..., one row for each instance")
        if priority is not None:
            offer.priority = self._rows("priority", priority, batch).to(torch.float64)
            has_no_use = needed is not None or self.policy == "ring" or self.size is None
            earlier_had_none = len(self) > 0 and self.priority is None
            if has_no_use or earlier_had_none:
                raise steps.error(
                    "memory: priority=... is for every offer to a memory with a size, and for the policies reservoir, "
                    "class_balanced and task_balanced"
                )
        self._waiting.append(offer)
        if steps.waiting is None:
            self.store_offers()
        else:
            steps.waiting.append(self)

    def add(self, batch: FrameBatch, **columns: torch.Tensor) -> None:
        """Store the instances of a batch at once, behind the others, whatever size and policy.

        Args:
            batch: the instances.
            columns: as in `offer`.
        """
        self.join(batch.steps)
        self._append(batch.index, self._checked(batch, columns))

    def keep(self, places: torch.Tensor) -> None:
        """Evict all instances but those in some slots, int64 [k], which come in this order."""
        self.index = self.index[places]
        self.columns = {name: values[places] for name, values in self.columns.items()}
        if self.priority is not None:
            self.priority = self.priority[places]

    def _checked(self, batch: FrameBatch, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the columns of offered instances."""
        checked: dict[str, torch.Tensor] = {}
        for name, values in columns.items():
            if name in _RESERVED:
                raise batch.steps.error(f"memory: {name}=... is a reserved name; give the column another one")
            checked[name] = self._rows(name, values, batch)
        names = self._names()
        if names is not None and names != checked.keys():
            raise batch.steps.error(f"memory: offered {_listed(checked)}; expected {_listed(names)}, as before")
        return checked

    def _names(self) -> set[str] | None:
        """Return the column names of earlier offers."""
        if self._waiting:
            return set(self._waiting[0].columns)
        if not len(self):
            return None
        return set(self.columns) | ({"features"} if self.policy == "herding" else set())

    def _rows(self, name: str, values: object, batch: FrameBatch) -> torch.Tensor:
        if not isinstance(values, torch.Tensor) or not values.dim() or values.shape[0] != len(batch):
            what = f"a tensor {list(values.shape)}" if isinstance(values, torch.Tensor) else type(values).__name__
            raise batch.steps.error(f"memory: {name} is {what}; expected a row for each of {len(batch)} instances")
        return values.detach()

    def store_offers(self) -> None:
        """Store the offers so far, as the policy decides."""
        offers = self._waiting
        self._waiting = []
        for offer in offers:
            if self.size is None:
                self._append(offer.batch.index, offer.columns)
            elif self.policy in ("reservoir", "ring") and offer.priority is None:
                self._replace(offer, self.size)
            else:
                self._choose(offer, self.size)

    def _replace(self, offer: _Offer, size: int) -> None:
        """Put each offered instance into a free slot, in place of an instance, or nowhere."""
        batch = offer.batch
        offers = self._offered + np.arange(len(batch))
        self._offered += len(batch)
        if self.policy == "ring":
            places = offers % size
        else:
            places = np.where(offers < size, offers, batch.steps.rng.integers(0, offers + 1))
        last = {int(slot): number for number, slot in enumerate(places) if slot < size}
        if not last:
            return
        free = min(self._offered, size) - len(self)
        if free:  # any instances, until the next lines
            self._append(batch.index[:free], {name: values[:free] for name, values in offer.columns.items()})
        slots, offered = torch.tensor(list(last.items()), device=batch.index.device).T
        self.index[slots] = batch.index[offered]
        for name, values in offer.columns.items():
            self.columns[name][slots] = values[offered]

    def _append(self, index: torch.Tensor, columns: Mapping[str, torch.Tensor]) -> None:
        if not len(self):
            self.index = index.clone()
            self.columns = {name: values.clone() for name, values in columns.items()}
            return
        self.index = torch.cat([self.index, index])
        self.columns = {name: torch.cat([values, columns[name]]) for name, values in self.columns.items()}

    def _choose(self, offer: _Offer, size: int) -> None:
        """Keep the highest priorities among old and new instances, equally many per group."""
        batch = offer.batch
        columns = dict(offer.columns)
        if self.policy == "herding":
            columns.pop("features", None)
        priority = self._priority(offer)
        index = batch.index
        if self.priority is not None:
            priority = torch.cat([self.priority, priority])
            index = torch.cat([self.index, index])
        self._offered += len(batch)
        places = kept(priority, self._groups(batch.steps, index), size)
        if len(places) == len(self) and places[-1] < len(self):
            return  # all offered instances are evicted
        self._append(batch.index, columns)
        self.priority = priority
        self.keep(places)

    def _priority(self, offer: _Offer) -> torch.Tensor:
        """Return the priorities of offered instances, float64 [n]."""
        batch = offer.batch
        if offer.priority is not None:
            return offer.priority
        if self.policy == "herding":
            return herding(offer.columns["features"], self._groups(batch.steps, batch.index))
        if self.policy == "score":
            return offer.columns["score"].to(torch.float64)
        return torch.from_numpy(batch.steps.rng.random(len(batch))).to(batch.index.device)

    def _groups(self, steps: Steps, index: torch.Tensor) -> torch.Tensor:
        return steps.ledger.groups(self.policy, index, by_position=steps.training.by_position)

    def sample(self, count: int, *, replacement: bool = False, weights: torch.Tensor | str | None = None) -> FrameBatch:
        """Return stored instances drawn from the run's stream; each is counted as replayed.

        Args:
            count: number of instances; without replacement at most m.
            replacement: whether an instance may be drawn more than once.
            weights: unnormalised probabilities, [m], or the name of a column that has them; uniform by default.

        Returns:
            A batch with the columns of the memory.

        Raises:
            UsageError: the memory is empty, the weights are not m finite numbers of at least 0, or fewer weights are
                above 0 than instances are drawn.
        """
        if self._steps is None or not len(self):
            raise UsageError("memory: sampled while it is empty; check `if self.memory:` first")
        rng = self._steps.rng
        available = len(self)
        if not replacement:
            count = min(count, available)
        if weights is None:
            places = rng.choice(available, count, replace=replacement)
        elif replacement:
            # The numbers of rng.choice, which checks its arguments for as long as it draws.
            ends = self._shares(weights, self._steps, 1).cumsum()
            places = (ends / ends[-1]).searchsorted(rng.random(count), side="right")
        else:
            places = rng.choice(available, count, replace=False, p=self._shares(weights, self._steps, count))
        return self.replay(torch.from_numpy(places).to(self.index.device))

    def _shares(self, weights: torch.Tensor | str, steps: Steps, least: int) -> NDArray[np.float64]:
        """Return probabilities of all instances, [m], at least `least` of them above 0."""
        values = self.columns.get(weights) if isinstance(weights, str) else weights
        if not isinstance(values, torch.Tensor) or values.shape != (len(self),):
            raise steps.error(f"memory: weights: expected a column or a tensor [{len(self)}]")
        shares: NDArray[np.float64] = values.detach().cpu().to(torch.float64).numpy()
        total = float(np.add.reduce(shares))
        if not (math.isfinite(total) and np.minimum.reduce(shares) >= 0 and np.count_nonzero(shares) >= least):
            raise steps.error(f"memory: weights: expected finite numbers from 0, {least} of them above 0")
        return shares / total

    def at(self, places: torch.Tensor) -> FrameBatch:
        """Return the instances in some slots, int64 [k]; not counted as replayed."""
        if self._steps is None:
            raise UsageError("memory: nothing has been offered to it")
        columns = {name: values[places] for name, values in self.columns.items()}
        return FrameBatch(self._steps, self.index[places], columns)

    def all(self) -> FrameBatch:
        """Return all stored instances; not counted as replayed."""
        return self.at(torch.arange(len(self), device=self.index.device))

    def replay(self, places: torch.Tensor) -> FrameBatch:
        """Return the instances in some slots, int64 [k]; each occurrence is counted as replayed."""
        batch = self.at(places)
        batch.steps.ledger.count(batch.index)
        return batch

    def places_by_task(self) -> dict[int, torch.Tensor]:
        """Return the slots of each task's instances, int64 [k], by task."""
        if self._steps is None:
            return {}
        tasks = self._steps.ledger.task_of(self.index)
        return {task: (tasks == task).nonzero()[:, 0] for task in tasks.unique().tolist()}

    def update(self, places: torch.Tensor, **columns: torch.Tensor) -> None:
        """Replace values of columns in some slots, int64 [k]."""
        for name, values in columns.items():
            self.columns[name][places] = values.detach()

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns and priorities of all instances."""
        priorities = 0 if self.priority is None else self.priority.nbytes
        return priorities + sum(values.nbytes for values in self.columns.values())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a checkpoint holds: all but the run."""
        return {name: getattr(self, name) for name in _KEPT}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set what a checkpoint holds; `join` makes the memory part of a run."""
        for name in _KEPT:
            setattr(self, name, state[name])
        self._waiting = []
        self._steps = None


@arguments_of_class
class Reservoir(Memory):
    """A `Memory` with the policy ``reservoir``: a uniform sample of all offers (Vitter, 1985).

    Args:
        size: maximum number of instances.

    Raises:
        UsageError: a size below 1.
    """

    __slots__ = ()

    def __init__(self, size: int) -> None:
        super().__init__(size, "reservoir")


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "no columns"
