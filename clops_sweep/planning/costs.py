"""Cost of runs: mean seconds per epoch of each kind of run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from clops_sweep.data.catalog import DATASETS, LEAD

Fields = Mapping[str, Any]
"""Values of a config by field name."""

_USUAL_TASKS = 5
"""Assumed number of tasks if only the data determine it. It has no effect: runs of one kind have equally many."""


Settings = tuple[str | int | None, ...]
"""Scenario, data set, strategy, batch size, network, leads, early stopping, adapters and stream of a run."""


class Kind(NamedTuple):
    """Runs of one kind cost the same: equal settings and, without early stopping, equal epochs over all tasks."""

    settings: Settings
    epochs: int


def settings_of(fields: Fields) -> Settings:
    """Return the settings that define the kind of a run with these config fields."""
    scenario = fields["scenario"]
    if scenario == "domain_il" and fields["domain"] != LEAD:
        scenario += f" by {fields['domain']}"
    names = ("dataset", "strategy", "batch_size", "network", "leads", "early_stopping", "lora_rank", "stream")
    return scenario, *(fields[name] for name in names)


def kind_of(fields: Fields) -> Kind:
    """Return the kind of a run with these config fields; epochs are None if only the data can tell them."""
    known = DATASETS[fields["dataset"]].task_count(fields["scenario"], fields["task_classes"], fields["domain"])
    tasks = known or _USUAL_TASKS
    tasks = min(tasks, fields["first_tasks"] or tasks)
    return Kind(settings_of(fields), tasks * epochs_of(fields))


def epochs_of(fields: Fields) -> int:
    """Return the passes over each task: of an online stream, steps on each batch."""
    return int(fields["steps_per_batch" if fields["stream"] == "online" else "epochs_per_task"])


class Costs:
    """Mean seconds per epoch of each kind, over the runs added so far."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Settings | None, float] = defaultdict(float)
        self._epochs: defaultdict[Settings | None, float] = defaultdict(float)

    def add(self, kind: Kind, seconds: float, share: float = 1.0) -> None:
        """Add a run of a kind, or a share of its epochs."""
        for key in (kind.settings, None):
            self._seconds[key] += seconds
            self._epochs[key] += share * kind.epochs

    def seconds(self, kind: Kind, *, any_kind: bool = False) -> float | None:
        """Return the expected seconds of a run; None if no run of its kind was added.

        With `any_kind`, a kind without runs takes the mean of all kinds.
        """
        for key in (kind.settings, *([None] if any_kind else [])):
            if self._epochs[key]:
                return kind.epochs * self._seconds[key] / self._epochs[key]
        return None
