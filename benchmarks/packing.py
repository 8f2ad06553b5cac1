"""Runs per minute by the number of trials that share a device, each in a process, started together.

``python -m benchmarks.packing DEVICE EPOCHS CASE`` runs one trial: it waits for a line and prints its seconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import shapes
from benchmarks.runs import CONFIG
from benchmarks.timing import table
from clops_sweep import RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.learning.run import ContinualRun
from clops_sweep.machine import available_cores
from clops_sweep.testing import of_shape


@dataclass(frozen=True)
class Case:
    """A network on frames of a shape, in runs of the paper's Class-IL sizes.

    Attributes:
        network: its name.
        channels: channels of a frame.
        samples: samples of a channel.
    """

    network: str
    channels: int
    samples: int

    @property
    def name(self) -> str:
        """The network and its shape."""
        return f"{self.network} {self.channels} x {self.samples:,}"

    def frames(self) -> FrameSet:
        """Return frames of the shape."""
        frames = shapes.class_il()
        return frames if self.channels == 1 else of_shape(frames, self.channels, self.samples)

    def config(self, epochs: int) -> RunConfig:
        """Return a config of CLOPS with a number of epochs per task."""
        return CONFIG.replace(epochs_per_task=epochs, network=self.network)


PAPER = Case("clops_cnn", 1, 2500)
CASES = (PAPER, Case("small_cnn", 12, 1000), Case("resnet1d_wang", 12, 250))


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    epochs = 1 if quick else 10
    device = "cuda" if torch.cuda.is_available() else "cpu"
    packings = [1, 2, 4, 8]
    if device == "cpu":
        packings = sorted({1, 2, available_cores(), 2 * available_cores()})
    rows, alone = [], 0.0
    for trials in packings:
        seconds = together(device, trials, epochs)
        rate = 60 * trials / seconds
        alone = alone or rate
        rows.append([str(trials), f"{seconds:.1f}", f"{rate:.1f}", f"{rate / alone:.2f}"])
    name = torch.cuda.get_device_name() if device == "cuda" else f"{available_cores()} cores, one thread a trial"
    header = ["trials at once", "seconds", "runs a minute", "times one alone"]
    return (
        f"## Packing trials on a device\n\n"
        f"{name}; CLOPS runs of the paper's Class-IL shape with {epochs} epochs a task, by the clock.\n\n"
        + table(header, rows)
    )


def together(device: str, trials: int, epochs: int, case: str = PAPER.name) -> float:
    """Return the seconds of runs that start together, each in a process."""
    command = [sys.executable, "-m", "benchmarks.packing", device, str(epochs), case]
    started = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )
        for _ in range(trials)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    seconds = [float(process.communicate()[0]) for process in started]
    return max(seconds)


def _trial(device: str, epochs: int, name: str) -> None:
    torch.set_num_threads(1)
    (case,) = (case for case in CASES if case.name == name)
    frames, config = case.frames(), case.config(epochs)
    # Compilation and kernel selection on first use are not part of a sweep's speed.
    ContinualRun(config.replace(epochs_per_task=1, acquisition="random"), frames, device).advance()
    run = ContinualRun(config, frames, device)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    run.run()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    _trial(sys.argv[1], int(sys.argv[2]), sys.argv[3])
