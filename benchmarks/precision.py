"""Training in bfloat16 compared with float32: time per step, and scores."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import seconds, table
from clops_sweep import ContinualRun
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.testing import of_shape, tiny_config, tiny_frames

NETWORKS = ("resnet1d_wang", "inception_time")
CHANNELS, SAMPLES, BATCH, STEPS = 12, 250, 16, 4


def _step(network: str, precision: str, rounds: int) -> float:
    """Return the processor seconds of a training step."""
    frames = of_shape(tiny_frames("class_il", tasks=6), CHANNELS, SAMPLES)
    bank = FrameBank(frames, torch.device("cpu"))
    learner = make_learner(0, "binary", 1, 1e-4, bank, network, precision=precision)
    rows = torch.arange(BATCH * STEPS) % len(frames)
    task = Instances(rows, (rows % 2)[:, None].float())
    order, keys = streams.permutation(0, BATCH * STEPS, "order"), streams.keys(0, "dropout")
    return seconds(lambda: learner.train_epoch(task, None, order, BATCH, keys), at_least=1, rounds=rounds) / STEPS


def _score(network: str, precision: str, epochs: int, seed: int) -> float:
    """Return the test AUC after all tasks."""
    settings = {"network": network, "strategy": "finetune", "epochs_per_task": epochs, "seed": seed}
    config = tiny_config("class_il", precision=precision, **settings)
    frames = of_shape(tiny_frames("class_il", tasks=3), CHANNELS, SAMPLES)
    return float(ContinualRun(config, frames).run().runs["test_auc"][0])


def run(*, quick: bool = False) -> str:
    """Return the section of results.md."""
    epochs, seeds = (1, 2) if quick else (4, 4)
    rows = []
    for network in NETWORKS:
        plain, half = (_step(network, precision, 1 if quick else 5) for precision in ("float32", "bfloat16"))
        scores, others = (
            np.array([_score(network, precision, epochs, seed) for seed in range(seeds)])
            for precision in ("float32", "bfloat16")
        )
        apart = others - scores
        error = apart.std(ddof=1) / np.sqrt(seeds)
        rows.append(
            [network, f"{1e3 * plain:.1f}", f"{1e3 * half:.1f}", f"{plain / half:.2f}",
             f"{scores.mean():.3f}", f"{apart.mean():+.3f} ({error:.3f})"]
        )  # fmt: skip
    header = ["network", "float32, ms a step", "bfloat16, ms a step", "ratio", "test AUC in float32", "in bfloat16"]
    return (
        f"## Training in bfloat16\n\nBatch {BATCH}, frames of {CHANNELS} x {SAMPLES}, one core. Scores: "
        f"fine-tuning on three tiny tasks, {epochs} epochs each, {seeds} seeds; the difference is the mean over seeds, "
        "with its standard error.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run())
