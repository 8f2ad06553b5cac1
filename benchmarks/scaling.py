"""Seconds per epoch by the number of training frames, for the paper's three data-set shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import shapes
from benchmarks.runs import timed_run
from benchmarks.timing import table
from clops_sweep import native
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig

SHAPES: tuple[tuple[str, Callable[[shapes.Counts], FrameSet], shapes.Counts, int, tuple[float, ...]], ...] = (
    ("class_il", shapes.class_il, shapes.CLASS_IL, 16, (0.25, 0.5, 1.0)),
    ("time_il", shapes.time_il, shapes.TIME_IL, 256, (0.025, 0.05, 0.1)),
    ("domain_il", shapes.domain_il, shapes.DOMAIN_IL, 256, (0.0125, 0.025, 0.05)),
)


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    rows = []
    backend = (native.available() or ("off",))[0]
    for scenario, make, counts, batch_size, shares in SHAPES:
        measured = []
        for share in shares[: 2 if quick else 3]:
            part = shapes.scaled(counts, share)
            config = RunConfig(dataset="synthetic", scenario=scenario, epochs_per_task=2, batch_size=batch_size)
            taken, _ = timed_run(make(part), config, backend)
            epochs = 2 * len(part[0])
            measured.append((sum(part[0]), taken / epochs))
        sizes, times = np.log(np.array(measured)).T
        exponent = np.polyfit(sizes, times, 1)[0]
        full = sum(counts[0])
        expected = measured[-1][1] * (full / measured[-1][0]) ** exponent
        points = ", ".join(f"{size:,}: {1e3 * time:.0f} ms" for size, time in measured)
        rows.append([scenario, str(batch_size), points, f"{exponent:.2f}", f"{full:,}", f"{expected:.2f}"])
    header = [
        "shape",
        "batch",
        "training frames of all tasks: an epoch",
        "exponent",
        "the paper's frames",
        "seconds an epoch there",
    ]
    return (
        "## Scaling with the size of the tasks\n\n"
        "An epoch of a CLOPS run with its acquisition and validation, the mean over all tasks and two epochs of each; "
        "the exponent is that of a power law through the points.\n\n" + table(header, rows)
    )
