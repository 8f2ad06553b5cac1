"""Which runs may be trained in lockstep: those whose batches have the same sizes at every step."""

from __future__ import annotations

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES


def free_fields(strategy: str) -> frozenset[str]:
    """The fields in which runs of a strategy may differ in lockstep; the seeds alone where it declares no others."""
    return frozenset({"seed", "weight_seed", *STRATEGIES.declaration(strategy).lockstep})


def lockstep_key(config: RunConfig) -> str:
    """What runs of a lockstep have in common: equal for configs that may be trained together."""
    return config.model_dump_json(exclude=set(free_fields(config.strategy)))
