"""Runs that may be trained in lockstep: those with equal batch sizes at every step."""

from __future__ import annotations

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES


def computed_alone(strategy: str) -> bool:
    """Return whether a strategy is defined by a loss, and computes one run at a time."""
    added = [plugin.member for name, plugin in STRATEGIES.added.items() if name == strategy]
    return STRATEGIES.declaration(strategy).alone or any(callable(getattr(it, "loss", None)) for it in added)


def free_fields(strategy: str) -> frozenset[str]:
    """Return the fields in which runs in lockstep may differ: seeds and declared options; none for a loss."""
    if computed_alone(strategy):
        return frozenset()
    return frozenset({"seed", "weight_seed", *STRATEGIES.declaration(strategy).lockstep})


def lockstep_key(config: RunConfig) -> str:
    """Return a key that is equal for configs that may be trained in lockstep.

    Early stopping is computed alone, because a run's own losses decide when its tasks end. So is an online stream.
    """
    alone = config.early_stopping is not None or config.stream == "online"
    free = () if alone else free_fields(config.strategy)
    return config.model_dump_json(exclude=set(free))
