"""Prequential scores: every instance is predicted before the network is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.learning import losses
from clops_sweep.learning.metrics.auc import TaskAucs
from clops_sweep.learning.metrics.evaluation import scores_of
from clops_sweep.learning.metrics.hits import TaskHits


class Prequential:
    """The predictions of a run on an online stream.

    Args:
        sizes: sizes of the batches of each task.
        logits: float32 [n, C], in the order of the stream.
        targets: float32 [n, C].
        kind: the scenario's kind of output.
        head: the config field `head`.
    """

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        logits: torch.Tensor,
        targets: torch.Tensor,
        kind: LossKind,
        head: LossKind,
    ) -> None:
        self.sizes = sizes
        self._kind = kind
        self._logits = logits
        self._targets = targets.numpy()
        self._ranked = scores_of(head, logits)
        self._losses = losses.instance_losses(head, logits, targets).double()

    def curve(self, window: int) -> dict[str, NDArray[np.float64]]:
        """Return loss and `MEASURES` of the last `window` instances, or all so far, after each batch, [batches]."""
        ends = accumulate(chain.from_iterable(self.sizes))
        of_batches = [self.scores(max(0, end - window), end) for end in ends]
        curve: dict[str, NDArray[np.float64]] = {}
        for name in of_batches[0]:
            curve[name] = np.array([scores[name] for scores in of_batches])
        return curve

    def scores(self, start: int = 0, stop: int | None = None) -> dict[str, float]:
        """Return loss and `MEASURES` of the instances from `start` to `stop`; an undefined AUC is NaN."""
        window = slice(start, stop)
        device = self._logits.device
        targets = [self._targets[window]]
        aucs = TaskAucs(targets, ["stream"], device, undefined=True)
        auc = aucs(self._ranked[window])
        loss = self._losses[window].mean()
        hits = TaskHits(self._kind, targets, device)
        counts = hits.counts(self._logits[window]).double().numpy()
        of_hits = hits.scores(counts)._asdict()
        scores = {"auc": auc.item(), "loss": loss.item()}
        for name in MEASURES[1:]:
            scores[name] = of_hits[name].item() if name in of_hits else np.nan
        return scores
