"""Optuna's distributions, under names that `clops_sweep` offers."""

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

__all__ = ["CategoricalDistribution", "FloatDistribution", "IntDistribution"]
