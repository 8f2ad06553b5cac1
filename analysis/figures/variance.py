"""Sources of a metric's variance, and the number of patient splits that a comparison of two methods needs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt
from scipy import stats

from clops_sweep.errors import UsageError

from ..collect import Experiment
from ..metrics import Metric, known_metric
from ..statistics import ALPHA, DIFFERENCE, POWER, power_of_t_test, splits_needed, units_of

Floats = npt.NDArray[np.float64]

METHOD, SPLIT, WEIGHTS, SEED = FACTORS = ("method", "patient split", "initial weights", "order and dropout")


@dataclass(frozen=True)
class VarianceBySource:
    """The variance of a metric over a full factorial of methods, patient splits, initial weights and seeds.

    Attributes:
        metric: the metric.
        sizes: number of levels of each factor.
        components: variance component of each effect by its factors: {SPLIT} is the effect of a split on all its runs,
            {METHOD, SPLIT} its additional effect on a method. Estimates below 0 mean 0.
        runs: number of runs.
        overlap: evaluated people / training people; 0 if not recorded.
    """

    metric: Metric
    sizes: Mapping[str, int] = field(hash=False)
    components: Mapping[frozenset[str], float] = field(hash=False)
    runs: int
    overlap: float = 0.0

    @property
    def by_source(self) -> dict[str, float]:
        """Sum the components by source: each belongs to its last factor, in the order split, weights, seed.

        Interactions with the method are kept separate, since they limit a comparison of methods.
        """
        components = dict.fromkeys((SPLIT, WEIGHTS, SEED, METHOD, f"{METHOD} x {SPLIT}", f"{METHOD} x the others"), 0.0)
        for factors, component in self.components.items():
            components[_source(factors)] += component
        return components

    @property
    def of_a_difference(self) -> tuple[float, float]:
        """Return the variances of a paired difference of two methods: between splits, and between runs of one split."""
        by_source = self.by_source
        between = 2 * max(0.0, by_source[f"{METHOD} x {SPLIT}"])
        within = 2 * max(0.0, by_source[f"{METHOD} x the others"])
        return between, within

    def power(self, splits: int, seeds: int, difference: float = DIFFERENCE) -> float:
        """Return the power of a two-sided paired t-test over splits for a difference of two methods, at a level of 5 %.

        The value of a split is the mean over its seeds; a seed changes initial weights and order.
        """
        between, within = self.of_a_difference
        return power_of_t_test(splits, np.sqrt(between + within / seeds), difference, self.overlap)

    def splits_needed(self, seeds: int, difference: float = DIFFERENCE) -> float | None:
        """Return the least number of splits with a power of 80 %; None if above 500, inf if no number suffices."""
        between, within = self.of_a_difference
        return splits_needed(np.sqrt(between + within / seeds), difference, overlap=self.overlap)

    def smallest_difference(self, seeds: int) -> float:
        """Return the difference below which no number of splits reaches a power of 80 %: 2.80 s sqrt(rho)."""
        between, within = self.of_a_difference
        quantiles = stats.norm.ppf(1 - ALPHA / 2) + stats.norm.ppf(POWER)
        return float(quantiles * np.sqrt((between + within / seeds) * self.overlap))


def variance_by_source(experiment: Experiment, metric: str = "auc") -> VarianceBySource:
    """Split the variance over a search space with axes `weight_seed`, `split_seed` and methods.

    Levels without a finished run are left out, then seeds with a missing run.

    Raises:
        UsageError: the space lacks an axis, or a factor has fewer than two complete levels.
    """
    shown = known_metric(metric, experiment.numeric_columns)
    others = [axis for axis in experiment.axes if axis != "weight_seed"]
    if "weight_seed" not in experiment.axes or not others:
        raise UsageError(
            f"search space {experiment.name!r}: variance by source needs an axis weight_seed, and one of methods"
        )
    weights = list(experiment.axes["weight_seed"])
    method_of_cell = []
    for cell in experiment.cells:
        method_of_cell.append(tuple(cell.label(axis) for axis in others))
    methods = list(dict.fromkeys(method_of_cell))
    splits = sorted({split for split, _ in experiment.replicates})
    seeds = sorted({seed for _, seed in experiment.replicates})
    values = np.full((len(methods), len(splits), len(weights), len(seeds)), np.nan)
    by_replicate = experiment.by_replicate(metric)
    for cell, of_cell, row in zip(experiment.cells, method_of_cell, by_replicate, strict=True):
        method = methods.index(of_cell)
        weight = weights.index(cell.labels["weight_seed"])
        for (split, seed), value in zip(experiment.replicates, row, strict=True):
            values[method, splits.index(split), weight, seeds.index(seed)] = value
    for axis in range(values.ndim):
        other_axes = tuple(other for other in range(values.ndim) if other != axis)
        has_a_run = np.isfinite(values).any(axis=other_axes)
        values = values.compress(has_a_run, axis=axis)
    seed_is_complete = np.isfinite(values).all(axis=(0, 1, 2))
    values = values[..., seed_is_complete]
    if min(values.shape) < 2:
        sizes = ", ".join(f"{size} of {name}" for size, name in zip(values.shape, FACTORS, strict=True))
        raise UsageError(
            f"search space {experiment.name!r}: variance by source needs two of each factor, all runs of which are "
            f"finished; there are {sizes}"
        )
    return VarianceBySource(
        shown,
        dict(zip(FACTORS, values.shape, strict=True)),
        variance_components(values, FACTORS),
        values.size,
        units_of(experiment.replicates, experiment.partitions(0), metric).overlap,
    )


def variance_components(values: Floats, factors: Sequence[str]) -> dict[frozenset[str], float]:
    """Return the variance components of a full factorial with one value per combination, by analysis of variance.

    For random factors, the expected mean square of an effect A is the sum over all effects B that contain A of
    n(B) sigma_B^2, where n(B) is the product of the sizes of the factors not in B (Cornfield and Tukey, 1956). The
    equations are solved from the highest interaction, which includes the residual, downwards. The estimates are
    unbiased and may be negative.

    Args:
        values: [factor, ...], complete, with at least two levels of each factor.
        factors: names of the axes.

    Returns:
        The component of every effect, by its factors.
    """
    sizes = dict(zip(factors, values.shape, strict=True))

    def repeats(effect: frozenset[str]) -> int:
        """Return n(B) of an effect B."""
        return prod(size for factor, size in sizes.items() if factor not in effect)

    components: dict[frozenset[str], float] = {}
    for order in range(len(factors), 0, -1):
        for effect in map(frozenset, itertools.combinations(factors, order)):
            above = 0.0
            for other, component in components.items():
                if effect < other:
                    above += repeats(other) * component
            components[effect] = (_mean_square(values, factors, effect) - above) / repeats(effect)
    return components


def _mean_square(values: Floats, factors: Sequence[str], effect: frozenset[str]) -> float:
    """Return the mean square of an effect: means over all other factors, minus all lower effects."""
    axes_of_effect = [axis for axis, factor in enumerate(factors) if factor in effect]
    other_axes = tuple(axis for axis in range(values.ndim) if axis not in axes_of_effect)
    remainder = values.mean(axis=other_axes, keepdims=True)
    for axis in axes_of_effect:
        remainder = remainder - remainder.mean(axis=axis, keepdims=True)
    freedom = prod(values.shape[axis] - 1 for axis in axes_of_effect)
    return float((remainder**2).sum() * values.size / remainder.size / freedom)


def _source(factors: frozenset[str]) -> str:
    if METHOD not in factors:
        return next(factor for factor in (SEED, WEIGHTS, SPLIT) if factor in factors)
    if factors == {METHOD}:
        return METHOD
    if factors == {METHOD, SPLIT}:
        return f"{METHOD} x {SPLIT}"
    return f"{METHOD} x the others"
