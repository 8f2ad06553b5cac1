"""Joint training by task: for every task a new network is trained on all data so far. An upper bound for any method."""

from __future__ import annotations

import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.method.strategy import Strategy


class JointTraining(Strategy):
    """Task k (from 1) begins with a new network, which is trained on the union of tasks 1 ... k for k tau epochs.

    So the last network is trained like `multitask`: on all data for N tau epochs. Unlike in `multitask`, outputs mean
    the same as in every other method, and every task has its row of R. One epoch of the run consists of k epochs on the
    union. The initial parameters come from the stream "initial parameters" and the task.
    """

    stores = "raw"

    def begin_task(self, task: int) -> None:
        """Start a new network and reset the optimiser."""
        self.learner.begin_anew(task)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train k epochs on the union of the k tasks so far."""
        del order, dropout_keys
        seed = self.training.seed
        size = self.config.batch_size
        k = task + 1
        union = Instances.union(self.training.tasks[:k])
        for number in range(epoch * k, (epoch + 1) * k):
            order = streams.permutation(seed, len(union.rows), "batch order", task, number).to(self.device)
            keys = streams.keys(seed, "training dropout", task, number).to(self.device)
            self.learner.train_epoch(union, replay, order, size, keys)
