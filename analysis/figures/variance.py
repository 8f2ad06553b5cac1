"""Where the variance of a metric comes from, and how many patient splits a comparison of two methods needs."""

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
        metric: which.
        sizes: how many of each factor.
        components: by the factors that have to be known together for the effect: {SPLIT} is what a split does to all
            runs on it, {METHOD, SPLIT} what it does to a method beyond that. Estimates below 0 stand for 0.
        n: runs.
        overlap: evaluated people / training people; 0 where the runs do not record them.
    """

    metric: Metric
    sizes: Mapping[str, int] = field(hash=False)
    components: Mapping[frozenset[str], float] = field(hash=False)
    n: int
    overlap: float = 0.0

    @property
    def by_source(self) -> dict[str, float]:
        """The components put together: each to the last of its factors in the order of a run's making.

        What a method does otherwise on other splits, and with other weights or seeds, stands by itself: it is what a
        comparison of methods is up against.
        """
        found = dict.fromkeys((SPLIT, WEIGHTS, SEED, METHOD, f"{METHOD} x {SPLIT}", f"{METHOD} x the others"), 0.0)
        for factors, component in self.components.items():
            found[_source(factors)] += component
        return found

    @property
    def of_a_difference(self) -> tuple[float, float]:
        """Variances of a difference of two methods within a split: between splits, and between runs on one of them."""
        by_source = self.by_source
        return 2 * max(0.0, by_source[f"{METHOD} x {SPLIT}"]), 2 * max(0.0, by_source[f"{METHOD} x the others"])

    def power(self, splits: int, seeds: int, difference: float = DIFFERENCE) -> float:
        """The chance that a two-sided paired t-test over splits finds a difference of two methods, at a level of 5 %.

        A split counts with the mean over its seeds, of which each changes initial weights and order.
        """
        between, within = self.of_a_difference
        return power_of_t_test(splits, np.sqrt(between + within / seeds), difference, self.overlap)

    def splits_needed(self, seeds: int, difference: float = DIFFERENCE) -> float | None:
        """The fewest splits that give a power of 80 %; None where it is more than 500, inf where no number does."""
        between, within = self.of_a_difference
        return splits_needed(np.sqrt(between + within / seeds), difference, overlap=self.overlap)

    def smallest_difference(self, seeds: int) -> float:
        """The difference below which no number of splits gives a power of 80 %: 2.80 s sqrt(rho)."""
        between, within = self.of_a_difference
        quantiles = stats.norm.ppf(1 - ALPHA / 2) + stats.norm.ppf(POWER)
        return float(quantiles * np.sqrt((between + within / seeds) * self.overlap))


def variance_by_source(experiment: Experiment, metric: str = "auc") -> VarianceBySource:
    """Splits the variance over a search space with an axis `weight_seed`, one over `split_seed`, and methods.

    What has no finished run at all is left out, and then seeds of which a run is missing, with all their runs.

    Raises:
        UsageError: it has no such axes, or there are fewer than two of anything that is finished throughout.
    """
    shown = known_metric(metric, experiment.numeric_columns)
    others = [axis for axis in experiment.axes if axis != "weight_seed"]
    if "weight_seed" not in experiment.axes or not others:
        raise UsageError(
            f"search space {experiment.name!r}: variance by source needs an axis weight_seed, and one of methods"
        )
    weights = list(experiment.axes["weight_seed"])
    methods = list(dict.fromkeys(tuple(cell.label(axis) for axis in others) for cell in experiment.cells))
    splits, seeds = (sorted(set(of)) for of in zip(*experiment.replicates, strict=True))
    values = np.full((len(methods), len(splits), len(weights), len(seeds)), np.nan)
    by_replicate = experiment.by_replicate(metric)
    for cell, row in zip(experiment.cells, by_replicate, strict=True):
        method = methods.index(tuple(cell.label(axis) for axis in others))
        weight = weights.index(cell.labels["weight_seed"])
        for (split, seed), value in zip(experiment.replicates, row, strict=True):
            values[method, splits.index(split), weight, seeds.index(seed)] = value
    for axis in range(values.ndim):
        others_of = tuple(it for it in range(values.ndim) if it != axis)
        values = values.compress(np.isfinite(values).any(axis=others_of), axis=axis)
    values = values[..., np.isfinite(values).all(axis=(0, 1, 2))]
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
    """Variance components of a full factorial with one value for each combination, by the analysis of variance.

    For factors taken at random, the expected mean square of an effect A is the sum over all effects B that contain it
    of n(B) times their component, where n(B) is the product of the sizes of the factors that are not in B (Cornfield
    and Tukey, 1956); solved from the highest interaction, which the residual is part of, downwards. Estimates are
    unbiased, so that they may be negative.

    Args:
        values: [factor, ...], without gaps, two of each factor at least.
        factors: what the axes are called.

    Returns:
        The component of every effect, by the factors in it.
    """
    sizes = dict(zip(factors, values.shape, strict=True))
    effects = [frozenset(it) for k in range(len(factors), 0, -1) for it in itertools.combinations(factors, k)]
    components: dict[frozenset[str], float] = {}
    for effect in effects:
        above = sum(
            prod(sizes[it] for it in factors if it not in other) * component
            for other, component in components.items()
            if effect < other
        )
        repeats = prod(sizes[it] for it in factors if it not in effect)
        components[effect] = (_mean_square(values, factors, effect) - above) / repeats
    return components


def _mean_square(values: Floats, factors: Sequence[str], effect: frozenset[str]) -> float:
    """Of an effect: what is left of the means over all other factors when all lower effects are taken off."""
    left = values.mean(axis=tuple(axis for axis, it in enumerate(factors) if it not in effect), keepdims=True)
    for axis, it in enumerate(factors):
        if it in effect:
            left = left - left.mean(axis=axis, keepdims=True)
    freedom = prod(size - 1 for size, it in zip(values.shape, factors, strict=True) if it in effect)
    return float((left**2).sum() * values.size / left.size / freedom)


def _source(factors: frozenset[str]) -> str:
    if METHOD not in factors:
        return next(it for it in (SEED, WEIGHTS, SPLIT) if it in factors)
    if factors == {METHOD}:
        return METHOD
    return f"{METHOD} x {SPLIT}" if factors == {METHOD, SPLIT} else f"{METHOD} x the others"
