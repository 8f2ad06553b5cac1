"""Runs that may be trained in lockstep: those with equal batch sizes at every step."""

from __future__ import annotations

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.declarations import BY_LOSS
from clops_sweep.experiment.plugins.registry import STRATEGIES


def computed_alone(strategy: str) -> bool:
    """Return whether a strategy is defined by a loss, and computes one run at a time."""
    added = STRATEGIES.added.get(strategy)
    return strategy in BY_LOSS or (added is not None and callable(getattr(added.member, "loss", None)))


def free_fields(strategy: str) -> frozenset[str]:
    """Return the fields in which runs in lockstep may differ: seeds and declared options; none for a loss."""
    if computed_alone(strategy):
        return frozenset()
    return frozenset({"seed", "weight_seed", *STRATEGIES.declaration(strategy).lockstep})


def lockstep_key(config: RunConfig) -> str:
    """Return a key that is equal for configs that may be trained in lockstep.

    A run with early stopping is computed alone, because its own losses decide when its tasks end.
    """
    free = free_fields(config.strategy) if config.early_stopping is None else ()
    return config.model_dump_json(exclude=set(free))
