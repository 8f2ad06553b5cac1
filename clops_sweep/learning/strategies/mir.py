"""MIR: what the coming step would harm most is replayed in it (Aljundi et al., 2019; as adapted by CLOPS)."""

from __future__ import annotations

import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch, EpochBatch, Replay
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.buffer import Portion, count_of
from clops_sweep.learning.strategies.memory import RandomMemory


class MaximallyInterferedRetrieval(RandomMemory):
    """Every step after the first task replays the instances whose loss a virtual step would raise most.

    The virtual step is plain SGD on the current batch, theta' = theta - lr grad, with dropout and batch statistics but
    without a trace in the running ones. Candidates are a random floor(a |M_j|) of each past task; their score is
    l(theta') - l(theta) with dropout off and batch norm in evaluation mode.
    """

    def train_with_memory(self, batch: EpochBatch, dropout_keys: torch.Tensor, place: tuple[int, int, int]) -> None:
        """One step on mean_I(l_i) + mean_J(l_j), J being what is retrieved for this batch."""
        replay = self._retrieve(batch, place)
        plain = batch.plain()
        self.training.learner.train_step(_joined(plain, replay, place[2]) if replay else plain, dropout_keys)

    def _retrieve(self, batch: EpochBatch, place: tuple[int, int, int]) -> Replay | None:
        """The most interfered instances, round(replay_ratio |I|) in total."""
        counts = self._shares(round(self.training.config.replay_ratio * batch.rows.shape[1]), place[2])
        if not any(counts):
            return None
        learner, seeds = self.training.learner, self.training.seeds
        keys = streams.keys(seeds, "virtual dropout", *place).to(batch.rows.device)
        _, gradient = learner.gradient(batch.plain(), keys, track_statistics=False)
        shift = -learner.optimizer.learning_rate * gradient
        parts = [
            portion.replay(self._most_interfered(portion, count, shift, place))
            for portion, count in zip(self.buffer.portions, counts, strict=True)
            if count
        ]
        return Replay.union(parts)

    def _most_interfered(
        self, portion: Portion, count: int, shift: torch.Tensor, place: tuple[int, int, int]
    ) -> torch.Tensor:
        """Places in the portion with the highest scores among its candidates: int64 [S, count]."""
        size = portion.rows.shape[1]
        drawn = count_of(self.training.config.acquisition_fraction, size)
        seeds = self.training.seeds
        candidates = streams.choices(seeds, size, drawn, "candidates", *place, portion.task).to(portion.rows.device)
        rows = portion.rows.gather(1, candidates)
        targets = portion.targets_at(candidates)
        learner = self.training.learner
        scores = learner.losses(rows, targets, shift=shift) - learner.losses(rows, targets)
        return candidates.gather(1, storage.highest(scores, min(count, drawn)))

    def _shares(self, total: int, step: int) -> list[int]:
        """`total` shared evenly over the past tasks; what does not divide goes round from step to step."""
        portions = len(self.buffer)
        return [total // portions + ((index - step) % portions < total % portions) for index in range(portions)]


_FIRST_REPLAY_DRAW = 1 << 20  # beyond the places of any epoch, so that no two instances share a dropout mask


def _joined(batch: Batch, replay: Replay, step: int) -> Batch:
    """A batch with replayed instances behind its own, each weighing 1 / |J|."""
    rows = torch.cat([batch.rows, replay.instances.rows], dim=1)
    count = replay.factors.shape[1]
    weights = torch.full(replay.factors.shape, 1 / count, device=rows.device)
    first = _FIRST_REPLAY_DRAW + step * count
    return Batch(
        rows,
        torch.cat([batch.targets, replay.instances.targets], dim=1),
        torch.cat([batch.weights, weights], dim=1),
        torch.cat([batch.draws, torch.arange(first, first + count, device=rows.device)]),
    )
