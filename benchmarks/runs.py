"""Complete CLOPS runs of the paper's Class-IL shape: seconds by phase, for each backend and five seeds."""

from __future__ import annotations

import os
import time

from benchmarks import eager, shapes
from benchmarks.timing import seconds, table
from clops_sweep import native
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.columns import PHASES
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.run import ContinualRun

CONFIG = RunConfig(dataset="synthetic", scenario="class_il", epochs_per_task=20, batch_size=16, learning_rate=1e-4)


def timed_run(frames: FrameSet, config: RunConfig, backend: str) -> tuple[float, dict[str, float]]:
    """Return the processor time of a complete run with a backend, and the share of wall-clock time of each phase."""
    before = os.environ.get(native.ENVIRONMENT)
    os.environ[native.ENVIRONMENT] = backend
    try:
        run = ContinualRun(config, frames)
        start = time.process_time()
        result = run.run()
        taken = time.process_time() - start
    finally:
        if before is None:
            del os.environ[native.ENVIRONMENT]
        else:
            os.environ[native.ENVIRONMENT] = before
    clock = result.runs[list(PHASES)].sum()
    return taken, dict(clock / clock.sum())


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    frames = shapes.class_il()
    config = CONFIG.replace(epochs_per_task=2) if quick else CONFIG
    eager_step = seconds(eager.training_step())
    rows = []
    for backend in (*native.available(), "off"):
        taken, shares = timed_run(frames, config, backend)
        rows.append(
            [
                "PyTorch" if backend == "off" else f"native {backend}",
                f"{taken:.2f}",
                *(f"{taken * shares[phase]:.2f}" for phase in PHASES),
                f"{taken / eager_step:,.0f}",
            ]
        )
    header = ["backend", "seconds", *(phase.removeprefix("seconds_") for phase in PHASES), "eager steps"]
    return (
        f"## A whole CLOPS run of the paper's Class-IL shape\n\n"
        f"4077 training frames in six tasks, batch 16, {config.epochs_per_task} epochs a task, b = 0.25, a = 0.5, "
        f"T = 20, validation after each epoch, one core. An eager step took "
        f"{1e3 * eager_step:.2f} ms in this process.\n\n" + table(header, rows)
    )
