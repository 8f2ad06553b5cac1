"""Training steps and a complete run on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks import eager, shapes
from benchmarks.runs import CONFIG
from benchmarks.timing import table
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch, Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.run import ContinualRun

BATCH, STEPS = 16, 100


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    if not torch.cuda.is_available():
        return "## On a GPU\n\nNot measured: this machine has none."
    device = torch.device("cuda")
    frames = shapes.class_il()
    bank = FrameBank(frames, device)
    rows = [
        ["eager PyTorch", _us(_eager(device)), ""],
        ["learner", _us(_single(bank)), _us(_epoch(bank) / STEPS)],
    ]
    config = CONFIG.replace(epochs_per_task=2) if quick else CONFIG
    torch.cuda.reset_peak_memory_stats()
    whole = ContinualRun(config, frames, device)
    start = time.perf_counter()
    whole.run()
    seconds = time.perf_counter() - start
    used = torch.cuda.max_memory_allocated() / 1e9
    steps = table(["step of 16", "us", "in an epoch, us"], rows)
    return (
        f"## On a GPU\n\n{torch.cuda.get_device_name()}, by the clock.\n\n{steps}\n\n"
        f"A whole CLOPS run of the paper's Class-IL shape, {config.epochs_per_task} epochs a task:\n\n"
        + table(["seconds", "memory, GB"], [[f"{seconds:.2f}", f"{used:.2f}"]])
    )


def _clock(work: Callable[[], object], calls: int) -> float:
    """Return the seconds per call, after as many calls that are not counted."""
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def _eager(device: torch.device) -> float:
    return _clock(eager.training_step(BATCH, device), 100)


def _batch(bank: FrameBank) -> tuple[Batch, torch.Tensor]:
    rows = torch.randint(0, 2000, (BATCH,), device=bank.device)
    targets = torch.rand(BATCH, 1, device=bank.device).round()
    weights = torch.full((BATCH,), 1 / BATCH, device=bank.device)
    keys = streams.keys(0, "benchmark").to(bank.device)
    return Batch(rows, targets, weights, torch.arange(BATCH, device=bank.device)), keys


def _single(bank: FrameBank) -> float:
    learner = make_learner(0, "binary", 1, 1e-4, bank)
    batch, keys = _batch(bank)
    return _clock(lambda: learner.train_step(batch, keys), 100)


def _epoch(bank: FrameBank) -> float:
    learner = make_learner(0, "binary", 1, 1e-4, bank)
    size = BATCH * STEPS
    rows = torch.randint(0, 2000, (size,), device=bank.device)
    task = Instances(rows, torch.rand(size, 1, device=bank.device).round())
    order = streams.permutation(0, size, "benchmark").to(bank.device)
    keys = streams.keys(0, "benchmark").to(bank.device)
    beta = TaskInstanceParameters(size, 10.0, 1e-4, bank.device)
    return _clock(lambda: learner.train_epoch(task, None, order, BATCH, keys, beta), 2)


def _us(time: float) -> str:
    return f"{1e6 * time:.0f}"
