"""Methods over several data sets or tasks: interquartile means and performance profiles (Agarwal et al., 2021).

Agarwal, R., Schwarzer, M., Castro, P. S., Courville, A. and Bellemare, M. G. (2021). Deep reinforcement learning at the
edge of the statistical precipice. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError

from ..drawing.style import GRID, colour, dash, new_figure, styled
from ..statistics import CONFIDENCE, MIN_UNITS

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
THRESHOLDS = np.linspace(0, 1, 201)
_MIDDLE = (0.25, 0.75)


@dataclass(frozen=True)
class Performance:
    """One method over several strata: data sets or tasks, each with a score for every patient split or seed.

    Attributes:
        interquartile_mean: mean of the middle half of all scores, with equal weight of every stratum.
        low: the 2.5 % quantile of the interquartile mean over resamples; NaN if a stratum has fewer than 3 scores.
        high: the 97.5 % quantile.
        profile: share of scores above each of `THRESHOLDS`, with equal weight of every stratum.
        profile_low: the 2.5 % quantiles of the profile; NaN as `low`.
        profile_high: the 97.5 % quantiles.
    """

    interquartile_mean: float
    low: float
    high: float
    profile: Floats = field(hash=False)
    profile_low: Floats = field(hash=False)
    profile_high: Floats = field(hash=False)


def performance(scores: Sequence[npt.ArrayLike]) -> Performance:
    """Return interquartile mean and performance profile of a method, with stratified bootstrap intervals.

    With M strata of N_m scores x_mn, each score has weight 1 / (M N_m). The interquartile mean is the weighted mean of
    the scores between the weighted quartiles; for equal N_m, the mean without the lowest and highest quarter.
    The profile is F(tau) = sum_m sum_n 1[x_mn > tau] / (M N_m). A resample draws N_m scores of each stratum with
    replacement; the 95 % interval lies between the 2.5 and 97.5 % quantiles of 2,000 resamples with a fixed seed.
    Scores over splits of the same people are not independent: the interval is about these splits.

    Args:
        scores: for each stratum, one score or more, in [0, 1].

    Raises:
        UsageError: no stratum, or one without scores or with a value that is not a number.
    """
    strata = [np.asarray(stratum, dtype=float) for stratum in scores]
    if not strata or any(stratum.size == 0 or not np.isfinite(stratum).all() for stratum in strata):
        raise UsageError("performance over strata: expected one number or more for each data set or task")
    weights = np.concatenate([np.full(stratum.size, 1 / (len(strata) * stratum.size)) for stratum in strata])
    pooled = np.concatenate(strata)[None]
    mean = float(_interquartile_means(pooled, weights)[0])
    profile = _profiles(pooled, weights)[0]
    if min(stratum.size for stratum in strata) < MIN_UNITS:
        nothing = np.full_like(profile, np.nan)
        return Performance(mean, np.nan, np.nan, profile, nothing, nothing)
    rng = np.random.default_rng(0)
    resampled = [stratum[rng.integers(0, stratum.size, (RESAMPLES, stratum.size))] for stratum in strata]
    drawn = np.concatenate(resampled, axis=1)
    ends = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    low, high = np.quantile(_interquartile_means(drawn, weights), ends)
    profile_low, profile_high = np.quantile(_profiles(drawn, weights), ends, axis=0)
    return Performance(mean, float(low), float(high), profile, profile_low, profile_high)


def _interquartile_means(scores: Floats, weights: Floats) -> Floats:
    """Return the interquartile mean of each row [b, n], with weights [n] that sum to 1."""
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    upto = np.cumsum(weights[order], axis=1)
    inside = np.clip(upto, *_MIDDLE) - np.clip(upto - weights[order], *_MIDDLE)
    return np.asarray((ordered * inside).sum(1) / inside.sum(1))


def _profiles(scores: Floats, weights: Floats) -> Floats:
    """Return the weighted share of each row [b, n] above each threshold, [b, thresholds]."""
    return np.stack([(scores > threshold) @ weights for threshold in THRESHOLDS], axis=1)


@styled
def draw_performance(methods: Mapping[str, Performance], score: str = "score") -> Figure:
    """Draw performance profiles: a line per method, with a band if every stratum has three scores or more."""
    figure = new_figure(6.4, 3.4)
    axes = figure.subplots()
    axes.grid(color=GRID, lw=0.6)
    for position, (name, of_method) in enumerate(methods.items()):
        tint = colour(position)
        axes.step(THRESHOLDS, of_method.profile, where="post", color=tint, ls=dash(position), lw=1.6, label=name)
        if np.isfinite(of_method.profile_low).all():
            axes.fill_between(
                THRESHOLDS,
                of_method.profile_low,
                of_method.profile_high,
                step="post",
                color=tint,
                alpha=0.12,
                lw=0,
            )
    there = [THRESHOLDS[(method.profile < 1) & (method.profile > 0)] for method in methods.values()]
    inside = np.concatenate(there) if there else THRESHOLDS
    if inside.size:
        axes.set_xlim(max(0.0, inside.min() - 0.05), min(1.0, inside.max() + 0.05))
    axes.set(ylim=(-0.02, 1.02), xlabel=f"threshold of the {score}", ylabel="share above the threshold")
    figure.legend(loc="outside right upper", fontsize=8)
    return figure
