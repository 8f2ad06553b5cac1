"""Plain experience replay: random storage, random acquisition, no beta. The standard baseline."""

from __future__ import annotations

from dataclasses import replace

from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.clops import CLOPS


class ExperienceReplay(CLOPS):
    """CLOPS with `storage_order` and `acquisition` random, regardless of the config (Rolnick et al., 2019)."""

    def __init__(self, training: Training) -> None:
        config = training.config.replace(
            strategy="clops", storage_order="random", acquisition="random", weight_replay=False
        )
        super().__init__(replace(training, config=config))
