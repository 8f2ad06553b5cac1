"""How long runs take, found out by training their first epochs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.columns import PHASES
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.run import ContinualRun


def time_epochs(configs: Sequence[RunConfig], frames: FrameSet, device: str, seconds: float) -> tuple[int, list[float]]:
    """Trains a lockstep until its end or for some seconds, but an epoch at least; nothing of it is recorded.

    An epoch that does not count goes before: whatever is done once has been done then. Returns how many epochs were
    trained, over all tasks, and the seconds that they took, by phase and divided by the number of runs.
    """
    deadline = time.monotonic() + seconds
    ContinualRun(configs, frames, device).advance()
    run, epochs = ContinualRun(configs, frames, device), 0
    while not run.finished and (not epochs or time.monotonic() < deadline):
        run.advance()
        epochs += 1
    return epochs, [run.state()["seconds"][phase] / len(configs) for phase in PHASES]
