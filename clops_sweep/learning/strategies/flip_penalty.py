"""Flip penalty: positive-congruent training, which preserves correct predictions of the old network."""

from __future__ import annotations

import torch

from clops_sweep.learning import losses
from clops_sweep.learning.method.batch import FrameBatch
from clops_sweep.learning.method.frozen import Frozen
from clops_sweep.learning.method.strategy import Strategy


class FlipPenalty(Strategy):
    """mean_I(l_i + lambda r_i |z_i - z'_i|^2 / C): focal distillation by logits (Yan et al., CVPR 2021).

    z are the logits, z' those of the network before the task, in evaluation mode. r_i is 1 if z'_i predicts the targets
    of instance i (all of them with several labels), else 0. lambda is `flip_strength`. The authors also distil wrong
    predictions, with a smaller weight; this method does not. The first task has no old network. `class_weights`
    multiply l_i only.
    """

    stores = "nothing"

    def setup(self) -> None:
        """Start without an old network."""
        self.old: Frozen | None = None

    def loss(self, batch: FrameBatch) -> torch.Tensor:
        """Return the loss of a step."""
        logits = self.model(batch.x)
        loss = self.criterion(logits, batch.y, batch.weights)
        if self.old is None:
            return loss
        old = self.old(batch.x)
        right = losses.predicted_right(self.learner.kind, old, batch.y)
        pull: torch.Tensor = self.options.flip_strength * (right * (logits - old).square().mean(1)).mean()
        return loss + pull

    def end_task(self, task: int) -> None:
        """Keep a frozen copy of the network."""
        del task
        self.old = self.frozen()
