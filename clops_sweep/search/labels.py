"""Values of parameters: as Optuna stores them, and as labels of a search space."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import optuna
from optuna.distributions import FloatDistribution

from clops_sweep.experiment.spaces.optuna_search import OptunaSearch


def suggested(trial: optuna.Trial, search: OptunaSearch, name: str) -> Any:
    """Return the label of a parameter that the sampler suggests for a trial."""
    distribution = search.distributions[name]
    if isinstance(distribution, tuple):
        stored = [encoded(label) for label in distribution]
        return distribution[stored.index(trial.suggest_categorical(name, stored))]
    if isinstance(distribution, FloatDistribution):
        value = trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
        return _on_step(distribution, value)
    return trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)


def decoded(search: OptunaSearch, name: str, value: Any) -> Any:
    """Return the label of a stored value."""
    distribution = search.distributions[name]
    if isinstance(distribution, tuple):
        return {repr(encoded(label)): label for label in distribution}.get(repr(value), value)
    return _on_step(distribution, value) if isinstance(distribution, FloatDistribution) else value


def encoded(label: Any) -> Any:
    """Encode a category for Optuna: scalars and text unchanged, anything else as JSON."""
    return label if label is None or isinstance(label, bool | int | float | str) else json.dumps(label)


def _on_step(distribution: FloatDistribution, value: float) -> float:
    """Round to a whole number of steps: 0.3 instead of 0.1 + 0.2, so that runs of a grid are reused."""
    if distribution.step is None:
        return value
    low, step = Decimal(str(distribution.low)), Decimal(str(distribution.step))
    return float(low + step * round((Decimal(str(value)) - low) / step))
