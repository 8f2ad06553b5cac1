"""Training steps, whole runs and workers that share a GPU, with and without CUDA graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from benchmarks import eager, packing
from benchmarks.packing import CASES, Case
from benchmarks.timing import table
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners import graphs
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.run import ContinualRun

BATCH, STEPS = 16, 100


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    if not torch.cuda.is_available():
        return "## On a GPU\n\nNot measured: PyTorch can use no GPU here."
    return section(torch.device("cuda"), torch.cuda.get_device_name(), quick=quick)


def section(device: torch.device, name: str, *, quick: bool) -> str:
    """Return the section for a device: steps, and runs a minute by the number of workers."""
    workers, epochs = ((1, 4), 1) if quick else ((1, 2, 4, 8, 16), 10)
    plain = f"{1e6 * _clock(eager.training_step(BATCH, device), device, 100):.0f}"
    steps = [_step(case, device) for case in CASES]
    runs = [_runs(case, device, epochs) for case in CASES]
    together = [_together(case, device, epochs, workers) for case in CASES]
    return (
        f"## On a GPU\n\n{name}, by the clock. The paper's layers in a plain loop of PyTorch: {plain} us a step.\n\n"
        f"A step of {BATCH}, in epochs of {STEPS}:\n\n"
        + table(["network", "kernels one by one, us", "CUDA graphs, us", "times as fast"], steps)
        + f"\n\nA whole CLOPS run of the paper's Class-IL sizes, {epochs} epochs a task:\n\n"
        + table(["network", "kernels one by one, s", "CUDA graphs, s", "memory, GB"], runs)
        + "\n\nRuns a minute by the number of workers that share the GPU:\n\n"
        + table(["network", *map(str, workers)], together)
    )


@contextmanager
def _without_graphs() -> Iterator[None]:
    """Compute passes kernel by kernel in the block."""
    usual = graphs.recorder_of
    graphs.recorder_of = lambda device: None
    try:
        yield
    finally:
        graphs.recorder_of = usual


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _clock(work: Callable[[], object], device: torch.device, calls: int) -> float:
    """Return the seconds per call, after as many calls that are not counted."""
    for _ in range(calls):
        work()
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(calls):
        work()
    _synchronize(device)
    return (time.perf_counter() - start) / calls


def _step(case: Case, device: torch.device) -> list[str]:
    """Return the row of a network: microseconds per step without and with graphs."""
    with _without_graphs():
        computed = _epoch(case, device)
    replayed = _epoch(case, device)
    return [case.name, f"{1e6 * computed:.0f}", f"{1e6 * replayed:.0f}", f"{computed / replayed:.1f}"]


def _epoch(case: Case, device: torch.device) -> float:
    """Return the seconds per step of `train_epoch`."""
    bank = FrameBank(case.frames(), device)
    learner = make_learner(0, "binary", 1, 1e-4, bank, case.network)
    size = BATCH * STEPS
    rows = torch.arange(size, device=device)
    task = Instances(rows, (rows % 2)[:, None].float())
    order = streams.permutation(0, size, "benchmark").to(device)
    keys = streams.keys(0, "benchmark").to(device)
    return _clock(lambda: learner.train_epoch(task, None, order, BATCH, keys), device, 3) / STEPS


def _runs(case: Case, device: torch.device, epochs: int) -> list[str]:
    """Return the row of a network: seconds of a run without and with graphs, and the memory of the latter."""
    with _without_graphs():
        computed = _run(case, device, epochs)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    replayed = _run(case, device, epochs)
    memory = f"{torch.cuda.max_memory_reserved() / 1e9:.2f}" if device.type == "cuda" else ""
    return [case.name, f"{computed:.1f}", f"{replayed:.1f}", memory]


def _run(case: Case, device: torch.device, epochs: int) -> float:
    run = ContinualRun(case.config(epochs), case.frames(), device)
    start = time.perf_counter()
    run.run()
    return time.perf_counter() - start


def _together(case: Case, device: torch.device, epochs: int, workers: tuple[int, ...]) -> list[str]:
    """Return the row of a network: runs a minute by the number of workers."""
    seconds = [packing.together(device.type, count, epochs, case.name) for count in workers]
    return [case.name, *(f"{60 * count / taken:.1f}" for count, taken in zip(workers, seconds, strict=True))]
