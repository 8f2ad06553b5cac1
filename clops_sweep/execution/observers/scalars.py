"""Names of an event's metrics in the built-in observers."""

from __future__ import annotations

from clops_sweep.experiment.events import EpochEnd, Event, RunEnd, TaskEnd


def scalars(event: Event) -> dict[str, float]:
    """Return an event's metrics as `epoch/auc`, `task/bwt` or `run/test_auc`."""
    match event:
        case EpochEnd():
            kind = "epoch"
        case TaskEnd():
            kind = "task"
        case RunEnd():
            kind = "run"
    return {f"{kind}/{name}": value for name, value in event.metrics.items()}
