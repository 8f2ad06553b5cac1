"""The events of a run. Imports neither torch nor Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import EpochEnd, Event, Progress, RunEnd, TaskEnd
from clops_sweep.experiment.metrics import METRICS

if TYPE_CHECKING:
    from clops_sweep.learning.result import RunResult
    from clops_sweep.learning.run import ContinualRun

_MEASURED = (*METRICS, *(f"test_{name}" for name in METRICS))


def after_epoch(run_id: str, run: ContinualRun, progress: Progress) -> list[Event]:
    """Return the events of a run after `run.advance()`, which has returned `progress`."""
    events: list[Event] = [EpochEnd(run_id, run.config, progress, run.epoch_metrics())]
    if run.at_task_end:
        events.append(TaskEnd(run_id, run.config, progress, run.task_metrics()))
    return events


def after_run(run_id: str, config: RunConfig, result: RunResult) -> Event:
    """Return the event of a run that has been computed."""
    row = result.columns["runs"]
    metrics = {}
    for name in _MEASURED:
        value = float(row[name][0])
        if np.isfinite(value):
            metrics[name] = value
    return RunEnd(run_id, config, "finished", metrics)


def after_failure(run_id: str, config: RunConfig, error: str) -> Event:
    """Return the event of a run that has failed."""
    return RunEnd(run_id, config, "failed", {}, error)
