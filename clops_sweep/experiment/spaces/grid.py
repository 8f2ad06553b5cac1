"""Configs that differ in their seed alone: one is checked, the others are copies of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.identity import around_seed


@dataclass(frozen=True)
class OfAnySeed:
    """A config, and with another seed those that are like it, whose identities take no time."""

    config: RunConfig

    @cached_property
    def _around_seed(self) -> tuple[str, str] | None:
        return around_seed(self.config.identity, self.config.seed, self.config.weight_seed)

    def with_seed(self, seed: int) -> RunConfig:
        """The config with a seed, which is not checked."""
        if seed == self.config.seed:
            return self.config
        around = self._around_seed
        return self.config.with_seed(seed, around and f"{around[0]}{seed}{around[1]}")
