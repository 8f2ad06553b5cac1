"""Training and evaluating the networks `linear` and `mlp` on features."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import seconds, table
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.testing import of_shape, tiny_frames

FEATURES, CLASSES, BATCH, STEPS, EVALUATED = 512, 10, 32, 50, 1_000


def run() -> str:
    """The section of the results."""
    bank = FrameBank(of_shape(tiny_frames("class_il", tasks=6), 1, FEATURES), torch.device("cpu"))
    bank.stored = torch.from_numpy(np.random.default_rng(0).standard_normal((2_000, FEATURES), np.float32))
    bank.gain = bank.offset = None
    rows = torch.arange(BATCH * STEPS)[None]
    task = Instances(rows, torch.nn.functional.one_hot(rows % CLASSES, CLASSES).float())
    order, keys = streams.permutations([0], BATCH * STEPS, "order"), streams.keys([0], "dropout")
    found = []
    for network, options in (("linear", {}), ("mlp", {"mlp_width": 64}), ("mlp", {"mlp_width": 256})):
        learner = make_learner([0], "softmax", CLASSES, 1e-3, bank, network, options)
        step = seconds(lambda: learner.train_epoch(task, None, order, BATCH, keys), rounds=10) / STEPS  # noqa: B023
        evaluation = seconds(lambda: learner.logits(rows[:, :EVALUATED]), rounds=10)  # noqa: B023
        name = ", ".join([f"`{network}`", *(f"{option} = {value}" for option, value in options.items())])
        found.append([name, f"{1e3 * step:.2f}", f"{1e3 * evaluation:.2f}"])
    return f"## Networks on features\n\n{FEATURES} features, batch {BATCH}, {CLASSES} classes, one core.\n\n" + table(
        ["network", "ms a step", f"ms for {EVALUATED:,} evaluated instances"], found
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run())
