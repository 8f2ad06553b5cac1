"""Runs on cached features: training step, evaluation and complete runs, compared with a plain PyTorch loop."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from benchmarks.timing import seconds, table
from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.testing import tiny_frames

FEATURES, BATCH, STEPS, EVALUATED = 512, 32, 100, 1000
STEP_MS, EVALUATION_MS = 0.25, 2.0
"""Goals, in milliseconds of processor time."""

METHODS = ("finetune", "er", "clops", "ncm", "slda", "ranpac")


def _features(instances: int, people: int = 300) -> FrameSet:
    """Return features of instances of four classes, with each person in one split."""
    stream = np.random.default_rng(0)
    labels = stream.integers(0, 4, instances)
    patients = stream.integers(0, people, instances).astype(np.int32)
    rows = (stream.standard_normal((instances, FEATURES)) + labels[:, None] * 0.05).astype(np.float32)
    rows.flags.writeable = False
    return replace(
        tiny_frames("class_il_union", tasks=2),
        frames=rows,
        gain=np.ones(instances, np.float32),
        offset=np.zeros(instances, np.float32),
        patients=patients,
        patient_names=tuple(map(str, range(people))),
        labels=labels,
        classes=("a", "b", "c", "d"),
        split=(patients % 5).clip(2).astype(np.int8) - 2,
        leads=np.zeros(instances, np.int16),
        domains={},
        unit="features",
    )


def _step_and_evaluation() -> tuple[float, float]:
    """Return the milliseconds of a training step, including all overhead, and of an evaluation."""
    bank = FrameBank(_features(BATCH * STEPS), torch.device("cpu"))
    learner = make_learner(0, "softmax", 4, 1e-3, bank, "linear")
    rows = torch.arange(BATCH * STEPS)
    task = Instances(rows, nn.functional.one_hot(rows % 4, 4).float())
    order, keys = streams.permutation(0, BATCH * STEPS, "order"), streams.keys(0, "dropout")
    step = seconds(lambda: learner.train_epoch(task, None, order, BATCH, keys), at_least=4) / STEPS
    evaluated = rows[:EVALUATED]
    return 1000 * step, 1000 * seconds(lambda: learner.probabilities(evaluated), at_least=4)


def _bare_step() -> float:
    """Return the milliseconds of a hand-written training step."""
    inputs = torch.from_numpy(_features(BATCH * STEPS).frames.copy())
    targets = torch.arange(BATCH * STEPS) % 4
    module = nn.Linear(FEATURES, 4)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)

    def epoch() -> None:
        for places in torch.randperm(len(inputs)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(inputs[places]), targets[places]).backward()
            optimizer.step()

    return 1000 * seconds(epoch, at_least=4) / STEPS


def _whole_run(strategy: str, frames: FrameSet) -> float:
    """Return the processor seconds of a run with the usual number of epochs and one task order."""
    config = RunConfig(
        dataset="synthetic", scenario="class_il_union", network="linear", strategy=strategy, batch_size=BATCH
    )
    ContinualRun(config.replace(epochs_per_task=1), frames).run()
    began = time.process_time()
    ContinualRun(config, frames).run()
    return time.process_time() - began


def run(*, quick: bool = False) -> str:
    """Return the section of results.md."""
    step, evaluation = _step_and_evaluation()
    rows = [
        [f"training step, batch {BATCH}", f"{step:.3f} ms", f"{STEP_MS} ms"],
        ["the same by hand", f"{_bare_step():.3f} ms", ""],
        [f"evaluation of {EVALUATED:,} instances", f"{evaluation:.2f} ms", f"{EVALUATION_MS} ms"],
    ]
    frames = _features(500 if quick else 5000)
    rows += [[f"whole run of {name}", f"{_whole_run(name, frames):.2f} s", ""] for name in METHODS]
    size = f"{len(frames):,} instances in two tasks of 20 epochs"
    return f"## Runs on cached features\n\n{FEATURES} features, network `linear`; whole runs: {size}.\n\n" + table(
        ["what", "took", "goal"], rows
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run())
