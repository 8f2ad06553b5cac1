"""iCaRL: exemplars by herding, distillation, and the nearest mean of exemplars (Rebuffi et al., 2017)."""

from __future__ import annotations

import torch
from torch.nn.functional import normalize

from clops_sweep.learning.batches import EpochBatch, Instances, Replay
from clops_sweep.learning.replay.division import herding
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class IncrementalClassifier(FixedMemory):
    """The three parts of iCaRL, with f(x) the input of the last layer and phi(x) = f(x) / |f(x)|.

    Representation (algorithm 3): D is the task's instances and all exemplars. With g_c = sigmoid(z_c) each epoch on D
    minimises

        - mean over x in D and c of q_c log g_c(x) + (1 - q_c) log(1 - g_c(x)),

    where q_c is the network's sigmoid before the task for classes of past tasks, and y_c for the others.

    Exemplars (algorithms 4 and 5): at the end of a task each class keeps an equal share of the memory, the first of the
    list p_1, p_2, ... of the class, with mu the mean of phi over the class:

        p_k = argmin_x |mu - (phi(x) + phi(p_1) + ... + phi(p_(k-1))) / k|.

    Prediction (algorithm 1): argmin_c |phi(x) - mu_c|, where mu_c is the mean of phi over the exemplars of class c,
    scaled to length 1. The logit of class c is mu_c . f(x), which ranks the classes alike. Until the exemplars of a
    task are chosen, the means of its classes are over all of its instances.

    The paper sums the loss over D and c, and scales the averages within herding to length 1, too. Mammoth adds weight
    decay, and features of flipped images to the means.
    """

    division = "class_balanced"
    needs_head = "write"

    def setup(self) -> None:
        """Create the memory."""
        super().setup()
        self._trained = self.head.weights()
        """Weight and bias of the trained head; between epochs the network's head holds the means of exemplars."""
        self.q = torch.empty(0)
        """Targets of the task's instances, then of the exemplars: [n + m, C]."""

    def begin_task(self, task: int) -> None:
        """Compute q of the task's instances and the exemplars."""
        learner = self.learner
        tasks = self.training.tasks
        self.head.write(*self._trained)
        current = tasks[task]
        exemplars = self._exemplars()
        self.q = torch.cat([current.targets, exemplars.targets])
        if task:
            g_before = torch.cat([learner.logits(current.rows), learner.logits(exemplars.rows)]).sigmoid()
            is_past = torch.cat([past.targets for past in tasks[:task]]).amax(0) > 0
            self.q = torch.where(is_past, g_before, self.q)

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return all exemplars, once per epoch."""
        del task, epoch
        if not len(self.memory):
            return None
        places = torch.arange(len(self.memory), device=self.memory.index.device)
        return self.drawn_replay(places[None])

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take steps on the task's instances and the exemplars, then replace the trained head by the means."""
        del epoch
        learner = self.learner
        instances = self.training.tasks[task]
        self.head.write(*self._trained)
        current = learner.begin_epoch(instances, replay, order, self.config.batch_size, dropout_keys)
        current.keep("q", self.q[order])  # the order counts the task's instances, then the exemplars, as q does

        def q_of(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            return (current.kept("q").index_select(0, batch.draws),)

        learner.train_by_logits(current, _by_logits, q_of)
        self._trained = self.head.weights()
        self._write_means(task, with_its_instances=True)

    def end_training(self, task: int) -> None:
        """Choose exemplars by herding; later means are over exemplars alone."""
        current = self.training.tasks[task]
        phi = normalize(self.head.features(current.rows), dim=1)
        priorities = herding(phi, current.targets.argmax(1).cpu())
        self.offer(task, priorities.to(self.memory.index.device))
        self._write_means(task)

    def end_task(self, task: int) -> None:
        """Do nothing: `end_training` has offered the task's instances."""

    def _exemplars(self) -> Instances:
        return self.memory.all().instances

    def _write_means(self, task: int, *, with_its_instances: bool = False) -> None:
        """Write mu_c of all classes into the head, over the exemplars and, if asked for, all instances of the task."""
        averaged = [self._exemplars()] if len(self.memory) else []
        if with_its_instances:
            averaged.append(self.training.tasks[task])
        f = torch.cat([self.head.features(instances.rows) for instances in averaged])
        phi = normalize(f, dim=1)
        one_hot = torch.cat([instances.targets for instances in averaged]).double().cpu()
        mu = normalize(one_hot.T @ phi, dim=1)
        bias = torch.where(one_hot.sum(0) > 0, 0.0, self.head.NOT_SEEN)
        device = self.learner.bank.device
        self.head.write(mu.to(device), bias.to(device))


def _by_logits(logits: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return dL / dz, [B, C], for the binary cross-entropy averaged over the batch and its outputs."""
    return (logits.sigmoid() - q) / logits.numel()
