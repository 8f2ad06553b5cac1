"""LwF: on the current task's frames the network keeps its earlier predictions (Li and Hoiem, 2017)."""

from __future__ import annotations

from functools import partial

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.method.strategy import Strategy


class LearningWithoutForgetting(Strategy):
    """mean_I(l_i + lambda H(p(z'_i / T), p(z_i / T))): the loss plus distillation of the network before the task.

    z are the logits, z' those of the network at the start of the task, in evaluation mode. p is softmax or sigmoid.
    H(q, p) is the cross-entropy, -sum_c q_c log p_c for a softmax, and its mean over the labels for sigmoids. lambda is
    `lwf_strength` and T is `lwf_temperature`. `class_weights` multiply l_i only.

    The authors' network has separate outputs for each task, and distils those of past tasks. Here tasks share the
    outputs. Distilled are the outputs of classes of past tasks, with a softmax over these alone (in `class_il_union`;
    elsewhere these are all classes). Sigmoids of labels are all distilled. The authors, and Mammoth, first train the
    outputs of a new task alone; here all parameters are trained from the start.
    """

    stores = "nothing"

    def setup(self) -> None:
        """Read the options."""
        self._strength = torch.tensor(self.options.lwf_strength, device=self.device)
        self._temperature = torch.tensor(self.options.lwf_temperature, device=self.device)
        self._p_before = torch.empty(0)
        """p(z' / T) of the task's instances and the distilled outputs, [n, c]."""

    def begin_task(self, task: int) -> None:
        """Compute the network's predictions on the task's frames before training."""
        if not task:
            return
        learner = self.learner
        logits = learner.logits(self.training.tasks[task].rows)
        z_before = logits[:, self._distilled(task)]
        self._p_before = losses.probabilities(learner.kind, z_before / self._temperature)

    def _distilled(self, task: int) -> torch.Tensor | slice:
        """Return the indices of the distilled outputs, int64 [c], or all."""
        past_targets = torch.cat([past.targets for past in self.training.tasks[:task]])
        is_known = past_targets.amax(0) > 0
        of_labels = self.learner.kind != "softmax" and self.config.head != "per_class"
        if of_labels or bool(is_known.all()):
            return slice(None)
        return is_known.nonzero()[:, 0]

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take plain steps in the first task, which has no earlier network; then steps on loss and distillation."""
        if not task:
            super().train_epoch(task, epoch, replay, order, dropout_keys)
            return
        learner = self.learner
        instances = self.training.tasks[task]
        current = learner.begin_epoch(instances, replay, order, self.config.batch_size, dropout_keys)
        current.keep("p before", self._p_before[order])

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            p_before = current.kept("p before").index_select(0, batch.draws)
            return batch.targets, batch.factors, batch.current_count.reciprocal(), p_before

        pull = self._strength / self._temperature  # the temperature divides logits and therefore slopes
        by_logits = partial(_by_logits, learner.kind, self._distilled(task), self._temperature, pull)
        learner.train_by_logits(current, by_logits, given)


def _by_logits(
    kind: LossKind,
    outputs: torch.Tensor | slice,
    temperature: torch.Tensor,
    pull: torch.Tensor,
    logits: torch.Tensor,
    targets: torch.Tensor,
    factors: torch.Tensor,
    shares: torch.Tensor,
    p_before: torch.Tensor,
) -> torch.Tensor:
    """Return dL / dz, [B, C]."""
    gradient = losses.loss_gradient(kind, logits, targets).mul_(factors[:, None])
    distillation = losses.loss_gradient(kind, logits[:, outputs] / temperature, p_before)
    gradient[:, outputs] += distillation.mul_(pull)
    return gradient.mul_(shares[:, None])
