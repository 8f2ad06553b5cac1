"""What the built-in observers call the numbers of an event."""

from __future__ import annotations

from clops_sweep.experiment.events import EpochEnd, Event, RunEnd, TaskEnd


def scalars(event: Event) -> dict[str, float]:
    """Its metrics as `epoch/auc`, `task/bwt` or `run/test_auc`: after what they were measured, and their name."""
    match event:
        case EpochEnd():
            kind = "epoch"
        case TaskEnd():
            kind = "task"
        case RunEnd():
            kind = "run"
    return {f"{kind}/{name}": value for name, value in event.metrics.items()}
