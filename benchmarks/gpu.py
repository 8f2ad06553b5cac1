"""Training steps and complete runs on a GPU, by the number of runs in lockstep."""

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

BATCH, STEPS, STACKS = 16, 100, (1, 5, 20, 40)


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    if not torch.cuda.is_available():
        return "## On a GPU\n\nNot measured: this machine has none."
    device = torch.device("cuda")
    frames = shapes.class_il()
    bank = FrameBank(frames, device)
    rows = [["eager PyTorch", "1", _us(_eager(device)), ""]]
    first = 0.0
    for stack in STACKS:
        step = _epoch(bank, stack) / STEPS
        first = first or step
        rows.append(["learner", str(stack), _us(_single(bank, stack)), f"{_us(step)} ({step / first:.2f} x)"])
    config = CONFIG.replace(epochs_per_task=2) if quick else CONFIG
    runs = []
    for stack in STACKS:
        torch.cuda.reset_peak_memory_stats()
        whole = ContinualRun([config.replace(seed=seed) for seed in range(stack)], frames, device)
        start = time.perf_counter()
        whole.run()
        seconds = time.perf_counter() - start
        used = torch.cuda.max_memory_allocated() / 1e9
        runs.append([str(stack), f"{seconds:.2f}", f"{60 * stack / seconds:.0f}", f"{used:.2f}"])
    steps = table(["step of 16", "S", "us", "in an epoch, us"], rows)
    return (
        f"## On a GPU\n\n{torch.cuda.get_device_name()}, by the clock.\n\n{steps}\n\n"
        f"A whole CLOPS run of the paper's Class-IL shape, {config.epochs_per_task} epochs a task:\n\n"
        + table(["S", "seconds", "runs a minute", "memory, GB"], runs)
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


def _batch(bank: FrameBank, stack: int) -> tuple[Batch, torch.Tensor]:
    rows = torch.randint(0, 2000, (stack, BATCH), device=bank.device)
    targets = torch.rand(stack, BATCH, 1, device=bank.device).round()
    weights = torch.full((stack, BATCH), 1 / BATCH, device=bank.device)
    keys = streams.keys(range(stack), "benchmark").to(bank.device)
    return Batch(rows, targets, weights, torch.arange(BATCH, device=bank.device)), keys


def _single(bank: FrameBank, stack: int) -> float:
    learner = make_learner(list(range(stack)), "binary", 1, 1e-4, bank)
    batch, keys = _batch(bank, stack)
    return _clock(lambda: learner.train_step(batch, keys), 100)


def _epoch(bank: FrameBank, stack: int) -> float:
    learner = make_learner(list(range(stack)), "binary", 1, 1e-4, bank)
    size = BATCH * STEPS
    rows = torch.randint(0, 2000, (stack, size), device=bank.device)
    task = Instances(rows, torch.rand(stack, size, 1, device=bank.device).round())
    order = streams.permutations(range(stack), size, "benchmark").to(bank.device)
    keys = streams.keys(range(stack), "benchmark").to(bank.device)
    beta = TaskInstanceParameters(size, [10.0] * stack, [1e-4] * stack, bank.device)
    return _clock(lambda: learner.train_epoch(task, None, order, BATCH, keys, beta), 2)


def _us(time: float) -> str:
    return f"{1e6 * time:.0f}"
