"""Training step and Monte-Carlo pass of every backend, compared with eager PyTorch in the same process."""

from __future__ import annotations

import torch

from benchmarks import eager, shapes
from benchmarks.timing import seconds, table
from clops_sweep import native
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.learning.batches import Batch, Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner

BATCH, FRAMES, SAMPLES, STEPS = 16, 256, 20, 100


def run() -> str:
    """Return the section of results.md."""
    cpu = torch.device("cpu")
    bank = FrameBank(shapes.class_il(shapes.scaled(shapes.CLASS_IL, 0.5)), cpu)
    eager_step = seconds(eager.training_step(BATCH))
    eager_pass = seconds(eager.dropout_passes(FRAMES, SAMPLES)) / (FRAMES * SAMPLES)
    rows = [["eager PyTorch", _us(eager_step), "1", "", _us(eager_pass), "1", ""]]
    for name in ("torch", *native.available()):
        arguments = ([0], "binary", 1, 1e-4, bank)
        of_module = name == "torch"
        learner = ModuleLearner(*arguments, PAPER_NETWORK) if of_module else NativeLearner(*arguments, name)
        step, epoch_step, one_pass, evaluation = _measure(learner)
        rows.append(
            [
                "PyTorch module" if of_module else f"native {name}",
                _us(step),
                f"{eager_step / step:.1f}",
                _us(epoch_step),
                _us(one_pass),
                f"{eager_pass / one_pass:.1f}",
                _us(evaluation),
            ]
        )
    header = [
        "backend",
        "step, us",
        "times eager",
        "step in an epoch, us",
        "pass a frame, us",
        "times eager",
        "evaluation a frame, us",
    ]
    return (
        f"## Training step (batch of {BATCH}) and Monte-Carlo pass\n\n"
        f"A step is forward, backward and Adam; in an epoch, the step of beta as well. A pass is one of T = "
        f"{SAMPLES} of one of {FRAMES} frames.\n\n" + table(header, rows)
    )


def _measure(learner: Learner) -> tuple[float, float, float, float]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 2000, (1, BATCH * STEPS), generator=generator)
    targets = torch.rand(1, BATCH * STEPS, 1, generator=generator).round()
    keys = torch.zeros(1, 2, dtype=torch.int32)
    batch = Batch(rows[:, :BATCH], targets[:, :BATCH], torch.full((1, BATCH), 1 / BATCH), torch.arange(BATCH))
    order = torch.randperm(BATCH * STEPS, generator=generator)[None]
    beta = TaskInstanceParameters(BATCH * STEPS, [10.0], [1e-4], learner.bank.device)
    task = Instances(rows, targets)
    chosen = rows[:, :FRAMES]

    return (
        seconds(lambda: learner.train_step(batch, keys)),
        seconds(lambda: learner.train_epoch(task, None, order, BATCH, keys, beta)) / STEPS,
        seconds(lambda: learner.dropout_probabilities(chosen, SAMPLES, keys)) / (FRAMES * SAMPLES),
        seconds(lambda: learner.logits(chosen)) / FRAMES,
    )


def _us(time: float) -> str:
    return f"{1e6 * time:.2f}" if time < 1e-4 else f"{1e6 * time:.0f}"
