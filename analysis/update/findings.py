"""What an update report has found, as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .measures import Bin, Change, ClassMeasures, Quantity, Slice


@dataclass(frozen=True)
class Decision:
    """An acceptance criterion with what was measured.

    Attributes:
        criterion: its name in `Criteria`.
        of: the class or subgroup that it is about; empty for all instances.
        limit: what it allows.
        measured: the value and its interval.
        holds: whether the value keeps the limit; an undefined value does not.
        certain: whether the whole interval is on the same side of the limit as the value.
    """

    criterion: str
    of: str
    limit: float
    measured: Quantity
    holds: bool
    certain: bool


@dataclass(frozen=True)
class Findings:
    """A model before and after an update, measured on the same test instances.

    Attributes:
        run_id: the run whose last model is the one after.
        against: the run whose last model is the one before; empty for the same run before its last task.
        description: what changed, as name, before and after.
        data: what the models are measured on, by name.
        instances: how many are compared.
        units: patients among them, or instances where patients are not known.
        unit: "patient" or "instance": what intervals draw.
        resamples: how many draws intervals are made of.
        flips: all instances, then by class, task and subgroup.
        changed_decisions: share of instances that the models decide differently.
        drift: Jensen-Shannon distance of predicted probabilities.
        overall: accuracy, Brier score and expected calibration error.
        reliability: the reliability curves before and after.
        classes: each class against the rest.
        new: the instances that the update was made for; None without any.
        unknown: instances without an entry, by column for subgroups.
        criteria: what was decided.
        limitations: sentences.
    """

    run_id: str
    against: str
    description: tuple[tuple[str, str, str], ...]
    data: Mapping[str, str]
    instances: int
    units: int
    unit: str
    resamples: int
    flips: tuple[Slice, ...]
    changed_decisions: Quantity
    drift: Quantity
    overall: tuple[Change, ...]
    reliability: tuple[tuple[Bin, ...], tuple[Bin, ...]]
    classes: tuple[ClassMeasures, ...]
    new: Slice | None
    unknown: Mapping[str, int]
    criteria: tuple[Decision, ...]
    limitations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every criterion holds; true without any."""
        return all(it.holds for it in self.criteria)

    @property
    def groups(self) -> tuple[Slice, ...]:
        """The subgroups."""
        return tuple(it for it in self.flips if it.column not in ("all", "class", "task"))

    @property
    def worst(self) -> Slice:
        """The subgroup of the lowest accuracy after the update; without subgroups the class."""
        among = self.groups or [it for it in self.flips if it.column == "class"]
        return min(among, key=lambda it: it.accuracy.after.value)

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data, for JSON; what is not finite is NaN."""
        return {**asdict(self), "holds": self.holds, "worst": asdict(self.worst)}
