"""Plan: runs asked for, minus runs finished, is what is pending. Needs neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from clops_sweep.config import RunConfig
from clops_sweep.curriculum import BY_DIFFICULTY, orders_by_difficulty, source_config
from clops_sweep.space import RunRequest
from clops_sweep.store import RunStore

State = Literal["finished", "failed", "pending", "waiting"]


@dataclass(frozen=True)
class PlannedRun:
    """One run that is asked for, and how it stands.

    A run is waiting while its data are not prepared, or while its task order depends on a run that is not finished;
    its `run_id` is None then.
    """

    run_id: str | None
    config: RunConfig
    state: State


@dataclass(frozen=True)
class Plan:
    """Every run asked for, once, in the order in which they are to be done.

    Attributes:
        runs: the runs.
        unprepared: data sets that are asked for and not prepared on this machine.
        first: how many of the runs nobody asked for, but others wait for.
    """

    runs: tuple[PlannedRun, ...]
    unprepared: tuple[str, ...]
    first: int

    def of(self, *states: State) -> list[PlannedRun]:
        """The runs in any of the given states."""
        return [run for run in self.runs if run.state in states]


def make_plan(requests: Iterable[RunRequest], store: RunStore, data_hash: Callable[[RunConfig], str | None]) -> Plan:
    """How each run asked for stands in the store; a run that several cells or spaces ask for counts once.

    Args:
        requests: what is asked for, in order.
        store: where finished runs are.
        data_hash: content hash of the data that a config runs on, None where they are not prepared.
    """
    asked = [request.config for request in requests]
    orders = orders_by_difficulty(asked, store, data_hash)
    sources = [source_config(config) for config, resolved in orders.items() if resolved is None]
    statuses = store.statuses()
    runs: dict[RunConfig, PlannedRun] = {}
    unprepared = set()
    for config in (*sources, *(orders.get(config, config) or config for config in asked)):
        content = data_hash(config)
        if content is None:
            unprepared.add(config.dataset)
        if content is None or config.task_order in BY_DIFFICULTY:
            runs[config] = PlannedRun(None, config, "waiting")
        elif config not in runs:
            run_id = config.run_id(content)
            runs[config] = PlannedRun(run_id, config, statuses.get(run_id, "pending"))
    return Plan(tuple(runs.values()), tuple(sorted(unprepared)), len(set(sources) - set(asked)))


@dataclass(frozen=True)
class Estimate:
    """What the pending runs will cost: core- or GPU-hours, where finished runs tell, and how many runs they tell of."""

    hours: float
    known: int
    unknown: int


def estimate(pending: Sequence[PlannedRun], store: RunStore) -> Estimate:
    """What finished runs of the same data set, scenario and strategy took per epoch on average, times the epochs."""
    if not pending:
        return Estimate(0.0, 0, 0)
    columns = ["dataset", "scenario", "strategy", "epochs_per_task", "seconds"]
    finished: dict[tuple[str, str, str], list[float]] = {}
    for row in store.rows("runs", columns):
        if row["seconds"] is not None:
            kind = (row["dataset"], row["scenario"], row["strategy"])
            finished.setdefault(kind, []).append(row["seconds"] / row["epochs_per_task"])
    seconds, known = 0.0, 0
    for run in pending:
        config = run.config
        of_kind = finished.get((config.dataset, config.scenario, config.strategy))
        if of_kind:
            seconds += mean(of_kind) * config.epochs_per_task
            known += 1
    return Estimate(seconds / 3600, known, len(pending) - known)
