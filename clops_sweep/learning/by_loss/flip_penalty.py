"""Flip penalty: positive-congruent training, which holds the network to its former answers where they were right."""

from __future__ import annotations

import torch

from clops_sweep.learning import losses
from clops_sweep.learning.by_loss.batch import FrameBatch
from clops_sweep.learning.by_loss.frozen import Frozen
from clops_sweep.learning.by_loss.strategy import Strategy


class FlipPenalty(Strategy):
    """mean_I(l_i + lambda r_i |z_i - z'_i|^2 / C): focal distillation by logits (Yan et al., CVPR 2021).

    z are the logits, z' those of the network as it was when the task began, in evaluation mode, and r_i is 1 where z'_i
    predicts the targets of instance i (with several labels all of them), else 0. lambda is `flip_strength`. The authors
    also pull instances on which the old network was wrong, with a smaller weight; here nothing does. The first task has
    no old network. With `class_weights` the weight of the class multiplies l_i alone.
    """

    stores = "nothing"

    def setup(self) -> None:
        """No old network yet."""
        self.old: Frozen | None = None

    def loss(self, batch: FrameBatch) -> torch.Tensor:
        """The loss of a step."""
        logits = self.model(batch.x)
        loss = self.criterion(logits, batch.y, batch.weights)
        if self.old is None:
            return loss
        old = self.old(batch.x)
        right = losses.predicted_right(self.training.learner.kind, old, batch.y)
        pull: torch.Tensor = self.options.flip_strength * (right * (logits - old).square().mean(1)).mean()
        return loss + pull

    def end_task(self, task: int) -> None:
        """Keeps the network as it is now."""
        del task
        self.old = self.frozen()
