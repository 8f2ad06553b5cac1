"""Time-IL and Domain-IL at the paper's size: seconds per epoch, and memory of a worker without the shared frames.

``python -m benchmarks.full_size time_il`` measures one scenario, in a separate process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import torch

from benchmarks import shapes
from benchmarks.timing import table
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.run import ContinualRun

SHAPES = {"time_il": (shapes.time_il, shapes.TIME_IL), "domain_il": (shapes.domain_il, shapes.DOMAIN_IL)}


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    rows = []
    for scenario, (_, counts) in SHAPES.items():
        share = 0.02 if quick else 1.0
        command = [sys.executable, "-m", "benchmarks.full_size", scenario, str(share)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
        found = json.loads(done.stdout)
        seconds = found["seconds"]
        rows.append(
            [
                scenario,
                f"{int(share * sum(counts[0])):,}",
                " ".join(f"{each:.1f}" for each in seconds),
                f"{sum(seconds) / len(seconds):.2f}",
                f"{found['frames'] / 1e9:.2f}",
                f"{found['beyond'] / 1e9:.2f}",
            ]
        )
    header = ["shape", "training frames", "seconds, an epoch on each task", "mean", "frames, GB", "beyond them, GB"]
    return (
        "## The larger shapes at the paper's size\n\n"
        "CLOPS, batch 256, b = 0.25, a = 0.5, T = 20, one epoch on each task with its acquisition, its validation on "
        "all tasks and the test at its end. Memory is the most that the process held at any time; frames, float32 "
        "here, are shared by all workers of a machine.\n\n" + table(header, rows)
    )


def _measure(scenario: str, share: float) -> dict[str, object]:
    torch.set_num_threads(1)
    make, counts = SHAPES[scenario]
    frames = make(shapes.scaled(counts, share))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    run = ContinualRun(RunConfig(dataset="synthetic", scenario=scenario, epochs_per_task=1, batch_size=256), frames)
    seconds = []
    while not run.finished:
        start = time.process_time()
        run.advance()
        seconds.append(time.process_time() - start)
    run.result()
    beyond = _memory("VmHWM") - frames.frames.nbytes
    return {"seconds": seconds, "frames": frames.frames.nbytes, "beyond": beyond}


def _memory(name: str) -> int:
    """Return a memory figure of this process from /proc, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], float(sys.argv[2]))))
