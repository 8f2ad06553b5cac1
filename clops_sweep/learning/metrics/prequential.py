"""Prequential scores: of predictions that were made before the network was trained on what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.learning import losses
from clops_sweep.learning.metrics.auc import TaskAucs
from clops_sweep.learning.metrics.evaluation import scores_of
from clops_sweep.learning.metrics.hits import TaskHits


@dataclass(frozen=True)
class Prequential:
    """A stream of one run.

    Attributes:
        sizes: of the batches of each task.
        logits: float32 [1, n, C], in the order of the stream.
        targets: float32 [1, n, C].
    """

    sizes: Sequence[Sequence[int]]
    logits: torch.Tensor
    targets: torch.Tensor

    def curve(self, kind: LossKind, head: LossKind, window: int) -> dict[str, NDArray[np.float64]]:
        """Loss and `MEASURES` of the last `window` instances after each batch, [batches]; fewer where fewer came.

        Args:
            kind: of the scenario.
            head: of the network's outputs.
            window: W.
        """
        ends = list(accumulate(size for of_task in self.sizes for size in of_task))
        found = [self.scores(kind, head, max(0, end - window), end) for end in ends]
        return {name: np.array([each[name] for each in found]) for name in found[0]}

    def scores(self, kind: LossKind, head: LossKind, start: int = 0, stop: int | None = None) -> dict[str, float]:
        """Loss and `MEASURES` of the instances from `start` to `stop`; an AUC that is not defined is nan."""
        logits, targets = self.logits[:, start:stop], self.targets[:, start:stop]
        truth = [targets[0].numpy()]
        auc = TaskAucs(truth, ["stream"], logits.device, undefined=True)(scores_of(head, logits))
        hits = TaskHits(kind, truth, logits.device)
        of_hits = hits.scores(hits.counts(logits).double().numpy())._asdict()
        loss = losses.instance_losses(head, logits, targets).double().mean()
        found = {"auc": auc.item(), "loss": loss.item()}
        return found | {name: of_hits[name].item() if name in of_hits else np.nan for name in MEASURES[1:]}
