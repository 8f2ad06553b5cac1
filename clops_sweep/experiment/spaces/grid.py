"""Configs that differ only in their seed: one is validated, the others are copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.identity import around_seed


@dataclass(frozen=True)
class OfAnySeed:
    """A config, and cheap copies with other seeds."""

    config: RunConfig

    @cached_property
    def _around_seed(self) -> tuple[str, str] | None:
        return around_seed(self.config.identity, self.config.seed, self.config.weight_seed)

    def with_seed(self, seed: int) -> RunConfig:
        """Return the config with a seed, without validation."""
        if seed == self.config.seed:
            return self.config
        around = self._around_seed
        return self.config.with_seed(seed, around and f"{around[0]}{seed}{around[1]}")
