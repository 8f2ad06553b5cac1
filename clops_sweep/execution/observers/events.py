"""The events of a job's runs. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import EpochEnd, Event, Place, RunEnd, TaskEnd
from clops_sweep.experiment.metrics import METRICS

if TYPE_CHECKING:
    from clops_sweep.learning.result import RunResult
    from clops_sweep.learning.run import ContinualRun, Progress

_MEASURED = (*METRICS, *(f"test_{name}" for name in METRICS))


def after_epoch(run_ids: Sequence[str], run: ContinualRun, progress: Progress) -> list[Event]:
    """Return the events of each run of a lockstep after `run.advance()`."""
    name = run.task_names[progress.task - 1]
    place = Place(progress.task, name, progress.tasks, progress.epoch, progress.epochs)
    runs = list(zip(run_ids, run.configs, strict=True))
    events: list[Event] = [
        EpochEnd(run_id, config, place, metrics)
        for (run_id, config), metrics in zip(runs, run.epoch_metrics(), strict=True)
    ]
    if run.at_task_end:
        ended = zip(runs, run.task_metrics(), strict=True)
        events += [TaskEnd(run_id, config, place, metrics) for (run_id, config), metrics in ended]
    return events


def after_run(runs: Mapping[str, RunConfig], result: RunResult) -> list[Event]:
    """Return the events of runs that are in the store."""
    events: list[Event] = []
    for run_id, config in runs.items():
        row = result.columns[run_id]["runs"]
        found = {name: float(row[name][0]) for name in _MEASURED}
        events.append(RunEnd(run_id, config, "finished", {name: v for name, v in found.items() if np.isfinite(v)}))
    return events


def after_failure(runs: Mapping[str, RunConfig], error: str) -> list[Event]:
    """Return the events of runs that have failed."""
    return [RunEnd(run_id, config, "failed", {}, error) for run_id, config in runs.items()]
