"""Plain experience replay: random storage, random acquisition, no beta. The standard baseline."""

from __future__ import annotations

from dataclasses import replace

from clops_sweep.learning.strategies.clops import CLOPS


class ExperienceReplay(CLOPS):
    """CLOPS with `storage_order` and `acquisition` random, regardless of the config (Rolnick et al., 2019)."""

    def setup(self) -> None:
        """Create the memory."""
        config = self.config.replace(
            strategy="clops", storage_order="random", acquisition="random", weight_replay=False
        )
        self.training = replace(self.training, config=config)
        super().setup()
