"""Which runs may be trained in lockstep: those whose batches have the same sizes at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clops_sweep.experiment.config import RunConfig

FREE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "clops": frozenset(
        {
            "acquisition",
            "beta_learning_rate",
            "beta_penalty",
            "mc_samples",
            "perturbation_std",
            "storage_function",
            "storage_order",
            "weight_replay",
        }
    )
}
"""By strategy, the fields besides `seed` in which runs of a lockstep may differ. They change what is replayed, and how
it weighs, but not how much. A strategy that is not named here reads one config for all its runs."""


def lockstep_key(config: RunConfig) -> str:
    """What runs of a lockstep have in common: equal for configs that may be trained together."""
    return config.model_dump_json(exclude={"seed"} | FREE_FIELDS.get(config.strategy, frozenset()))
