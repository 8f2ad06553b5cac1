"""What a run consists of, in frames: the model by which costs of runs of one kind are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.errors import BadInput, calling, shown
from clops_sweep.experiment.declarations import Fields, Work
from clops_sweep.experiment.registry import STRATEGIES
from clops_sweep.experiment.values import is_number

Kind = tuple[str, str, str, int, str, str]
"""Data set, scenario, strategy, batch size, network and leads: in all runs of a kind, work costs about the same."""

_RELATIVE_COST = (4.0, 0.7, 0.3)
"""What units of work cost, relative to each other, where nothing has been measured."""


class Load(NamedTuple):
    """What a run computes: how often all frames of a task are trained on, passed through for scores, and evaluated."""

    kind: Kind
    work: tuple[float, ...]

    @classmethod
    def of(cls, fields: Fields, epochs: float = math.inf) -> Self:
        """The load of a run with these config fields, or of its first epochs, counted over all tasks.

        Training and acquisition are what the strategy declares, or else those of plain replay. All tasks are evaluated
        after every epoch, and once more at the end of a task.
        """
        tasks = tasks_of(fields)
        declared = STRATEGIES.declaration(fields["strategy"]).work or STRATEGIES.declaration("replay").work
        assert declared is not None
        trained = scored = evaluated = 0.0
        for task in range(tasks):
            done = min(fields["epochs_per_task"], max(0, epochs - task * fields["epochs_per_task"]))
            work = _work(declared, fields, task, tasks)
            trained += done * work.trained
            scored += done * work.scored
            evaluated += tasks * (done + (done == fields["epochs_per_task"]))
        return cls(kind_of(fields), (trained, scored, evaluated))


def _work(declared: Callable[[Fields, int, int], Work], fields: Fields, task: int, tasks: int) -> Work:
    """What a strategy declares of an epoch.

    Raises:
        BadInput: the function of a user's strategy raises, or returns anything but a `Work` of finite numbers.
    """
    function = f"strategy {fields['strategy']!r}: work"
    with calling(function):
        work = declared(fields, task, tasks)
    if not isinstance(work, Work) or not all(is_number(it) and 0 <= it < math.inf for it in work):
        raise BadInput(f"{function} returns {shown(work)}: expected Work(trained, scored) with numbers from 0")
    return work


class Measured(NamedTuple):
    """What a load took: seconds by phase, on cpu or cuda."""

    load: Load
    seconds: Sequence[float]
    device: str


_USUAL_TASKS = 5
"""Where only the data can tell how many tasks there are; runs of one kind have the same number."""


def tasks_of(fields: Fields) -> int:
    """How many tasks a run with these config fields has, as far as that is known without the data."""
    known = DATASETS[fields["dataset"]].task_count(fields["scenario"], fields["task_classes"], fields["domain"])
    return _USUAL_TASKS if known is None else known


def kind_of(fields: Fields) -> Kind:
    """The kind of a run with these config fields."""
    scenario = fields["scenario"]
    if scenario == "domain_il" and fields["domain"] != LEAD:
        scenario += f" by {fields['domain']}"
    one, other = (fields["dataset"], scenario, fields["strategy"]), (fields["network"], fields["leads"])
    return *one, fields["batch_size"], *other


def modelled(work: Sequence[float], units: Sequence[float] = _RELATIVE_COST) -> float:
    """What some work should take, from what a unit of each phase takes."""
    return sum(amount * unit for amount, unit in zip(work, units, strict=True))


def share_of_work(fields: Fields, epochs: float) -> float:
    """The share of a run's work that lies in a share of its epochs, the first ones: later ones may replay more."""
    first = Load.of(fields, epochs * tasks_of(fields) * fields["epochs_per_task"])
    return modelled(first.work) / modelled(Load.of(fields).work)


def units_of(rows: Sequence[Measured]) -> list[float]:
    """Seconds that a unit of each phase takes, by which the rows together take what they took."""
    taken = [sum(phase) for phase in zip(*(row.seconds for row in rows), strict=True)]
    work = [sum(phase) for phase in zip(*(row.load.work for row in rows), strict=True)]
    usual = sum(taken) / modelled(work)
    units = [s / w if s and w else usual * cost for s, w, cost in zip(taken, work, _RELATIVE_COST, strict=True)]
    return [unit * sum(taken) / modelled(work, units) for unit in units]
