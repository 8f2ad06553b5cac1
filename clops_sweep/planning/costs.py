"""What runs cost: mean seconds per epoch, by cell and by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from clops_sweep.data.catalog import DATASETS, LEAD

Fields = Mapping[str, Any]
"""A config by field names, as JSON has its values."""

Kind = tuple[str, str, str, int, str, str]
"""Data set, scenario, strategy, batch size, network and leads."""

SEEDS = ("seed", "split_seed", "weight_seed")
_USUAL_TASKS = 5
"""Where only the data can tell how many tasks there are; runs of one kind have the same number."""


def kind_of(fields: Fields) -> Kind:
    """Return the kind of a run with these config fields."""
    scenario = fields["scenario"]
    if scenario == "domain_il" and fields["domain"] != LEAD:
        scenario += f" by {fields['domain']}"
    one, other = (fields["dataset"], scenario, fields["strategy"]), (fields["network"], fields["leads"])
    return *one, fields["batch_size"], *other


def epochs_of(fields: Fields) -> int:
    """Return the number of epochs of a run over all its tasks, as far as it is known without the data."""
    tasks = DATASETS[fields["dataset"]].task_count(fields["scenario"], fields["task_classes"], fields["domain"])
    return (_USUAL_TASKS if tasks is None else tasks) * int(fields["epochs_per_task"])


class Cell(NamedTuple):
    """A config without its seeds: what it is, its kind, and the epochs of a run over all its tasks."""

    settings: frozenset[tuple[str, Hashable]]
    kind: Kind
    epochs: int


def cell_of(fields: Fields) -> Cell:
    """Return the cell of a run with these config fields, given as JSON has their values."""
    settings = ((name, str(it) if isinstance(it, list) else it) for name, it in fields.items() if name not in SEEDS)
    return Cell(frozenset(settings), kind_of(fields), epochs_of(fields))


class Costs:
    """Mean seconds per epoch of the runs added so far: of a cell if it has any, else of its kind."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Cell | Kind | None, float] = defaultdict(float)
        self._epochs: defaultdict[Cell | Kind | None, float] = defaultdict(float)

    def add(self, cell: Cell, seconds: float, share: float = 1.0) -> None:
        """Add a run of a cell, or that share of its epochs."""
        for key in (cell, cell.kind, None):
            self._seconds[key] += seconds
            self._epochs[key] += share * cell.epochs

    def seconds(self, cell: Cell, *, any_kind: bool = False) -> float | None:
        """Return the expected seconds of a run; None if no run of its kind was added.

        With `any_kind`, a kind without runs takes the mean of all kinds.
        """
        for key in (cell, cell.kind, *([None] if any_kind else [])):
            if self._epochs[key]:
                return cell.epochs * self._seconds[key] / self._epochs[key]
        return None
