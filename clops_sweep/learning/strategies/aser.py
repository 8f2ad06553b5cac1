"""ASER: Shapley values choose the instances to replay and to keep (Shim et al., AAAI 2021).

The value s_j(i) of a candidate i for a query j is its Shapley value in a game whose players are all candidates. The
worth of a coalition is the share of j's label among its K members nearest to j, by the features of the last layer (Jia
et al., 2019; see `shapley_values`). The value is high if i helps to classify j correctly, and negative if i is close to
j but has another label.

From the second task on each step minimises

    L = mean_I(l_i) + mean_J(l_j),

where I is a batch of the task and J the `replay_ratio` |I| candidates with the highest

    ASV_mu(i) = mean over j in E of s_j(i) - mean over b in I of s_b(i).

Candidates are `aser_candidates` random stored instances; E holds `aser_per_class` random ones of each stored class. So
J supports the classes in the memory and interferes with the current batch. In the first epoch of a task its instances
enter the memory batch by batch, after the step. If the memory is full, as many instances are evicted: those candidates
or instances of the batch that have the lowest mean value over E, where E is drawn from memory and batch. No instance is
its own neighbour.

This is the authors' ASER_mu. Their ASER, with max over E and min over I, is not implemented. They see every instance
once. They compute the values for the memory after the step; here one pass before the step serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.learning import streams
from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.replay.mini_batches import joined, replay_batch_size
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class AdversarialShapley(FixedMemory):
    """Experience replay by Shapley values of nearest neighbours."""

    needs_head = "read"

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take steps with replayed instances chosen for each batch; a task's first epoch also updates the memory."""
        learner = self.learner
        instances = self.training.tasks[task]
        current = learner.begin_epoch(instances, replay, order, self.config.batch_size, dropout_keys)
        generator = streams.generator(self.training.seed, "shapley", task, epoch)
        learner.run_epoch(current, lambda batch: self._step(batch, task, epoch, dropout_keys, generator))

    def _step(
        self,
        batch: EpochBatch,
        task: int,
        epoch: int,
        dropout_keys: torch.Tensor,
        generator: np.random.Generator,
    ) -> None:
        """Choose J for a batch I, take the step, and store I in a task's first epoch."""
        device = self.memory.index.device
        new = self.ledger.of_task(task, batch.positions)
        count = self._replay_count() if task else 0
        leaving = 0 if epoch else max(0, len(self.memory) + len(new) - self.capacity)
        step_on = batch.plain()
        replayed = staying = torch.empty(0)
        if count or leaving:
            replayed, staying = self.choose(new, count, leaving, generator)
        if count:
            step_on = joined(step_on, self.memory.replay(replayed.to(device)).instances, batch.number * count)
        self.learner.train_step(step_on, dropout_keys)
        if not epoch:
            self.memory.add(self.batch(new))
        if leaving:
            self.memory.keep(staying.to(device))

    def _replay_count(self) -> int:
        """Return |J|: at most the number of candidates."""
        config = self.config
        count = replay_batch_size(config.replay_ratio, config.batch_size, len(self.memory))
        candidates: int = self.options.aser_candidates
        return min(count, candidates)

    def choose(
        self, new: torch.Tensor, count: int, leaving: int, generator: np.random.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return indices to replay, int64 [count], and to keep, into the memory followed by the batch.

        Args:
            new: int64 [B], the batch's instances as the memory counts them.
            count: number of instances to replay.
            leaving: number of instances to evict.
            generator: draws candidates and queries.
        """
        stored = len(self.memory)
        pool = torch.cat([self.memory.index, new])
        instances = self.ledger.at(pool)
        labels = instances.targets.argmax(1).cpu()
        batch = torch.arange(stored, len(pool))

        # Random draws: candidates, E of the memory, and E of memory and batch.
        candidates = torch.from_numpy(generator.permutation(stored)[: self.options.aser_candidates])
        per_class = self.options.aser_per_class
        of_memory = torch.from_numpy(some_of_each(labels[:stored].numpy(), per_class, generator))
        of_both = torch.from_numpy(some_of_each(labels.numpy(), per_class, generator))

        used = torch.cat([candidates, batch, of_memory, of_both]).unique()
        features = torch.zeros(len(pool), self.head.features_size, dtype=torch.float64)
        features[used] = self.head.features(instances.rows[used.to(pool.device)])
        game = Game(pool.cpu(), features, labels, self.options.aser_neighbours)

        replayed = candidates[:0]
        if count:
            asv = game.mean_values(candidates, of_memory) - game.mean_values(candidates, batch)
            replayed = candidates[asv.argsort(descending=True, stable=True)[:count]]
        stays = torch.ones(len(pool), dtype=torch.bool)
        if leaving:
            players = torch.cat([candidates, batch])
            lowest = game.mean_values(players, of_both).argsort(stable=True)[:leaving]
            stays[players[lowest]] = False
        return replayed, stays.nonzero()[:, 0]

    def end_task(self, task: int) -> None:
        """Do nothing: the task's instances entered the memory during training."""


@dataclass(frozen=True)
class Game:
    """Shapley values among m instances, some of which may be the same one twice.

    Attributes:
        instances: int64 [m], the same number for the same instance.
        features: float64 [m, F].
        labels: int64 [m].
        neighbours: K.
    """

    instances: torch.Tensor
    features: torch.Tensor
    labels: torch.Tensor
    neighbours: int

    def mean_values(self, players: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Return the mean value of each player over the queries, except itself: float64 [n].

        Args:
            players: int64 [n], indices of the players.
            queries: int64 [q], indices of the queries.
        """
        is_itself = self.instances[queries][:, None] == self.instances[players]
        values = shapley_values(
            self.features[players],
            self.labels[players],
            self.features[queries],
            self.labels[queries],
            self.neighbours,
            is_itself,
        )
        others = (~is_itself).sum(0).clamp(min=1)
        return (values.sum(0) / others).round(decimals=12)  # ties are broken by the order of the draw


def shapley_values(
    features: torch.Tensor,
    labels: torch.Tensor,
    queries: torch.Tensor,
    query_labels: torch.Tensor,
    neighbours: int,
    excluded: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the Shapley values of n players for each of q queries, float64 [q, n] (Jia et al., VLDB 2019, theorem 1).

    A coalition S is worth |{i among the min(K, |S|) members nearest to the query: label right}| / K. With the players
    in order of their distance and m_i = 1 for a right label, else 0:

        s_n = m_n min(K, n) / (K n),    s_i = s_{i+1} + (m_i - m_{i+1}) min(K, i) / (K i).

    Args:
        features: float64 [n, F], features of the players.
        labels: int64 [n].
        queries: float64 [q, F], features of the queries.
        query_labels: int64 [q].
        neighbours: K.
        excluded: bool [q, n], players that do not take part in a query's game; their value is 0.
    """
    count = len(features)
    if not count:
        return torch.zeros(len(queries), 0, dtype=torch.float64)
    distances = torch.cdist(queries, features, compute_mode="donot_use_mm_for_euclid_dist")
    right = (query_labels[:, None] == labels).double()
    if excluded is not None:  # the farthest player, if wrong, has the value 0
        distances.masked_fill_(excluded, torch.inf)
        right.masked_fill_(excluded, 0)
    by_distance = distances.argsort(dim=1, stable=True)
    m = right.gather(1, by_distance)
    i = torch.arange(1, count + 1, dtype=torch.float64)
    share = i.clamp(max=neighbours) / (neighbours * i)
    m_after = torch.cat([m[:, 1:], torch.zeros_like(m[:, :1])], dim=1)
    increments = (m - m_after) * share
    s = increments.flip(1).cumsum(1).flip(1)  # the recursion, from the farthest player to the nearest
    return torch.zeros_like(s).scatter_(1, by_distance, s)


def some_of_each(labels: NDArray[np.int64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the indices of at most `count` random instances of each label: int64 [m]."""
    shuffled = generator.permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    _, first, sizes = np.unique(labels[by_label], return_index=True, return_counts=True)
    rank_in_label = np.arange(len(labels)) - np.repeat(first, sizes)
    return by_label[rank_in_label < count]
