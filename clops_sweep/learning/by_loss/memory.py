"""Memory and Reservoir: stored training instances, with named columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import torch

from clops_sweep.errors import UsageError, shown
from clops_sweep.learning.by_loss.batch import FrameBatch, Steps
from clops_sweep.learning.replay.division import groups_of, herding, kept

Policy = Literal["reservoir", "ring", "class_balanced", "task_balanced", "herding", "score"]
"""Policies that decide which instances to keep; see `Memory`."""

_PRIORITY = "priority"


class Memory:
    """At most `size` training instances, with tensors that have one row per instance; not for subclassing.

    Instances offered in a step are stored after it. The policy decides which instances are kept:

    - ``reservoir``: a uniform sample of all offers (Vitter, 1985).
    - ``ring``: the latest.
    - ``class_balanced``, ``task_balanced``: equally many per class or task, each a uniform sample of its offers.
    - ``herding``: equally many per class, chosen one by one so that their mean of `features` is closest to that of all
      instances of the class in the offer (Rebuffi et al., 2017, algorithm 4). Offer a whole task at once.
    - ``score``: those with the highest `score`.

    An instance that is offered twice may be stored twice.

    Args:
        size: maximum number of instances.
        policy: the policy.

    Attributes:
        index: int64 [m], positions of the stored instances among the training instances of all tasks.
        columns: offered columns by name, [m, ...] each.

    Raises:
        UsageError: a size below 1, or an unknown policy.
    """

    __slots__ = ("_offered", "_steps", "_waiting", "columns", "index", "policy", "size")  # no attributes beside them

    def __init__(self, size: int, policy: Policy = "reservoir") -> None:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UsageError(f"{type(self).__name__}: size = {shown(size)}: expected a whole number, at least 1")
        if policy not in get_args(Policy):
            raise UsageError(f"Memory: policy = {shown(policy)}: expected one of {', '.join(get_args(Policy))}")
        self.size, self.policy = size, policy
        self.index = torch.zeros(0, dtype=torch.int64)
        self.columns: dict[str, torch.Tensor] = {}
        self._offered = 0
        self._waiting: list[tuple[FrameBatch, dict[str, torch.Tensor]]] = []
        self._steps: Steps | None = None

    def __len__(self) -> int:
        """Return m, the number of stored instances."""
        return len(self.index)

    def offer(self, batch: FrameBatch, **columns: torch.Tensor) -> None:
        """Offer the instances of a batch; they are stored after the step.

        Args:
            batch: the instances.
            columns: values to keep per instance, [n, ...], with the same names in every offer. ``herding`` needs
                `features`, [n, d], which it does not keep; ``score`` needs `score`, [n].

        Raises:
            UsageError: the columns differ from those of earlier offers, or their length from that of the batch.
        """
        steps = self._steps = batch.steps
        given = {name: self._column(name, values, batch) for name, values in columns.items()}
        names = self._names()
        if names is not None and names != given.keys():
            raise steps.error(f"memory: offered {_listed(given)}; expected {_listed(names)}, as before")
        needed = {"herding": "features", "score": "score"}.get(self.policy)
        if needed is not None and needed not in given:
            raise steps.error(f"memory: policy {self.policy!r} needs {needed}=..., one row for each instance")
        self._waiting.append((batch, given))
        if steps.waiting is None:
            self.take_up()
        else:
            steps.waiting.append(self)

    def _names(self) -> set[str] | None:
        """Return the column names of earlier offers."""
        if self._waiting:
            return set(self._waiting[0][1])
        if not len(self):
            return None
        return set(self.columns) - {_PRIORITY} | ({"features"} if self.policy == "herding" else set())

    def _column(self, name: str, values: object, batch: FrameBatch) -> torch.Tensor:
        if name in ("x", "y", "weights", "index", "task", _PRIORITY, "steps", "columns"):
            raise batch.steps.error(f"memory: {name}=... is a reserved name; give the column another one")
        if not isinstance(values, torch.Tensor) or not values.dim() or len(values) != len(batch):
            what = f"a tensor {list(values.shape)}" if isinstance(values, torch.Tensor) else type(values).__name__
            raise batch.steps.error(f"memory: {name} is {what}; expected a row for each of {len(batch)} instances")
        return values.detach()

    def take_up(self) -> None:
        """Store the offers so far, as the policy decides."""
        waiting, self._waiting = self._waiting, []
        for batch, columns in waiting:
            if self.policy in ("reservoir", "ring"):
                self._replace(batch, columns)
            else:
                self._choose(batch, dict(columns))

    def _replace(self, batch: FrameBatch, columns: Mapping[str, torch.Tensor]) -> None:
        """Put each offer into a free slot, in place of an instance, or nowhere."""
        offers = self._offered + np.arange(len(batch))
        self._offered += len(batch)
        if self.policy == "ring":
            places = offers % self.size
        else:
            places = np.where(offers < self.size, offers, batch.steps.rng.integers(0, offers + 1))
        last = {int(place): number for number, place in enumerate(places) if place < self.size}
        if not last:
            return
        free = min(self._offered, self.size) - len(self)
        if free:  # any instances, until the next lines
            self._append(batch.index[:free], {name: values[:free] for name, values in columns.items()})
        at, of = torch.tensor(list(last.items()), device=batch.index.device).T
        self.index[at] = batch.index[of]
        for name, values in columns.items():
            self.columns[name][at] = values[of]

    def _append(self, index: torch.Tensor, columns: Mapping[str, torch.Tensor]) -> None:
        if not len(self):
            self.index, self.columns = index.clone(), {name: values.clone() for name, values in columns.items()}
            return
        self.index = torch.cat([self.index, index])
        self.columns = {name: torch.cat([values, columns[name]]) for name, values in self.columns.items()}

    def _choose(self, batch: FrameBatch, columns: dict[str, torch.Tensor]) -> None:
        """Keep the highest priorities among old and new instances, equally many per group."""
        steps, device = batch.steps, batch.index.device
        if self.policy == "herding":
            priorities = herding(columns.pop("features"), self._groups(steps, batch.index))
        elif self.policy == "score":
            priorities = columns["score"].to(torch.float64)
        else:
            priorities = torch.from_numpy(steps.rng.random(len(batch))).to(device)
        self._offered += len(batch)
        self._append(batch.index, columns | {_PRIORITY: priorities})
        stay = kept(self.columns[_PRIORITY], self._groups(steps, self.index), self.size)
        self.index = self.index[stay]
        self.columns = {name: values[stay] for name, values in self.columns.items()}

    def _groups(self, steps: Steps, index: torch.Tensor) -> torch.Tensor:
        targets, by_position = steps.ledger.looked_up(index).targets, steps.training.by_position
        return groups_of(self.policy, steps.ledger.task_of(index), targets, by_position=by_position)

    def sample(self, count: int, *, replacement: bool = False, weights: torch.Tensor | str | None = None) -> FrameBatch:
        """Draw stored instances from the run's stream; each is counted as replayed.

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
        rng, available = self._steps.rng, len(self)
        count = count if replacement else min(count, available)
        shares = None if weights is None else self._shares(weights, self._steps, 1 if replacement else count)
        places = rng.choice(available, count, replace=replacement, p=shares)
        found = self.at(torch.from_numpy(places).to(self.index.device))
        self._steps.ledger.count(found.index)
        return found

    def _shares(self, weights: torch.Tensor | str, steps: Steps, least: int) -> Any:
        values = self.columns.get(weights) if isinstance(weights, str) else weights
        if not isinstance(values, torch.Tensor) or values.shape != (len(self),):
            raise steps.error(f"memory: weights: expected a column or a tensor [{len(self)}]")
        shares = values.detach().to("cpu", torch.float64).numpy()
        if not np.isfinite(shares).all() or (shares < 0).any() or (shares > 0).sum() < least:
            raise steps.error(f"memory: weights: expected finite numbers from 0, {least} of them above 0")
        return shares / shares.sum()

    def at(self, places: torch.Tensor) -> FrameBatch:
        """Return the instances in some slots, int64 [k]; not counted as replayed."""
        if self._steps is None:
            raise UsageError("memory: nothing has been offered to it")
        columns = {name: values[places] for name, values in self.columns.items() if name != _PRIORITY}
        return FrameBatch(self._steps, self.index[places], columns)

    def all(self) -> FrameBatch:
        """Return all stored instances; not counted as replayed."""
        return self.at(torch.arange(len(self), device=self.index.device))

    def update(self, places: torch.Tensor, **columns: torch.Tensor) -> None:
        """Replace values of columns in some slots, int64 [k]."""
        for name, values in columns.items():
            self.columns[name][places] = values.detach()

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns of all instances."""
        return sum(values.nbytes for values in self.columns.values())

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {
            "size": self.size, "policy": self.policy, "index": self.index.clone(), "offered": self._offered,
            "columns": {name: values.clone() for name, values in self.columns.items()},
        }  # fmt: skip

    @classmethod
    def restored(cls, state: Mapping[str, Any], steps: Steps) -> Memory:
        """Restore a memory from `state`."""
        found = cls.__new__(cls)
        Memory.__init__(found, state["size"], state["policy"])
        found.index, found.columns = state["index"].clone(), {k: v.clone() for k, v in state["columns"].items()}
        found._offered, found._steps = state["offered"], steps
        return found


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
