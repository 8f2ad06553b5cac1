"""How much each axis of a search space matters for a metric: total effects by permutation in a random forest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError

from ..axis_names import axis_title
from ..collect import Experiment
from ..drawing.style import GRID, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..metrics import Metric, known_metric
from ..statistics import MIN_UNITS

Floats = npt.NDArray[np.float64]
MIN_RUNS = 8
MIN_R2 = 0.05
"""Below this share of variance explained on replicates left out, shuffling an axis tells nothing about it."""

REPEATS = 5

MOST_RUNS = 10_000
"""Runs that a forest is fitted to; of more, those of configurations drawn at random."""


@dataclass(frozen=True)
class Importance:
    """The share of a metric's variance that goes with each axis, alone or together with others.

    Half of what is lost of R^2 when the axis is shuffled, on replicates not used for fitting: Jansen's (1999) estimate
    of Sobol's total effect. `mean` and `sd` over replicates left out, `sd` from three on. `r2` is the forest's own on
    those replicates: where it is low, the axes explain little of the metric. `axes` by falling importance. `n` counts
    the runs, `finished` those that they were drawn from.
    """

    metric: Metric
    axes: tuple[str, ...]
    mean: Floats
    sd: Floats
    r2: float
    n: int
    finished: int


def importance(experiment: Experiment, metric: str = "auc") -> Importance:
    """Fit a random forest to a metric over the axes' labels, leaving out one replicate at a time, and shuffle axes.

    Labels enter as their position on the axis. Held-out replicates hold the same cells with other seeds, so what is
    measured is the axes' effect and not the noise of seeds; that a seed is better in all cells alike is no error.

    Raises:
        UsageError: an unknown metric, fewer than two axes that vary, fewer than two replicates, fewer than 8 finished
            runs, or axes that explain nothing on the replicates left out.
    """
    from sklearn.ensemble import RandomForestRegressor  # takes a second to be imported
    from sklearn.inspection import permutation_importance
    from sklearn.metrics import explained_variance_score

    shown = known_metric(metric, experiment.numeric_columns)
    axes = [axis for axis, labels in experiment.axes.items() if len(labels) > 1]
    values = experiment.by_replicate(metric)
    finished = int(np.isfinite(values).sum())
    if finished > MOST_RUNS:
        values = _of_some(values, MOST_RUNS / finished)
    cells, replicates = np.nonzero(np.isfinite(values))
    held_out = [r for r in np.unique(replicates) if 1 < (replicates == r).sum() < replicates.size]
    if len(axes) < 2 or len(held_out) < 2 or cells.size < MIN_RUNS:
        raise UsageError(
            f"search space {experiment.name!r}: importance needs two axes, two replicates and {MIN_RUNS} finished runs"
        )
    order = {axis: {repr(label): at for at, label in reversed([*enumerate(experiment.axes[axis])])} for axis in axes}
    places = [[order[axis][repr(cell.labels[axis])] for axis in axes] for cell in experiment.cells]
    features = np.array(places, dtype=float)[cells]
    target = values[cells, replicates]
    losses, scores = [], []
    for replicate in held_out:
        test = replicates == replicate
        if np.ptp(target[test]) == 0:
            continue
        forest = RandomForestRegressor(n_estimators=30, min_samples_leaf=1, random_state=0, n_jobs=1)
        forest.fit(features[~test], target[~test])
        scores.append(explained_variance_score(target[test], forest.predict(features[test])))
        # Explained variance ignores the mean error, so a replicate that is better in all cells does not count.
        lost = permutation_importance(
            forest, features[test], target[test], scoring="explained_variance", n_repeats=REPEATS, random_state=0
        )
        losses.append(lost.importances_mean / 2)
    if not losses:
        raise UsageError(f"search space {experiment.name!r}: {shown.plain} is the same in all runs")
    r2 = float(np.mean(scores))
    if r2 < MIN_R2:
        raise UsageError(
            f"search space {experiment.name!r}: no importance of its axes for {shown.plain} can be told from these "
            f"{cells.size} runs, as what some replicates show does not carry over to the others "
            f"(R² = {r2:.2f} on replicates left out); more seeds may help"
        )
    mean = np.mean(losses, axis=0)
    falling = np.argsort(-mean, kind="stable")
    spread = np.std(losses, axis=0, ddof=1) if len(losses) >= MIN_UNITS else np.full(len(axes), np.nan)
    return Importance(
        shown,
        tuple(axes[i] for i in falling),
        mean[falling],
        spread[falling],
        r2,
        int(cells.size),
        finished,
    )


@styled
def draw_importance(record: Importance) -> Figure:
    """A bar per axis with one standard deviation over folds; an estimate below 0 has no bar, as no share is."""
    figure = new_figure(5.6, 0.36 * len(record.axes) + 0.8)
    axes = figure.subplots()
    axes.grid(axis="x", color=GRID, lw=0.6)
    rows, sd = np.arange(len(record.axes)), np.nan_to_num(record.sd)
    axes.barh(rows, np.maximum(record.mean, 0), height=0.6, color=colour(0))
    values = zip(record.axes, record.mean.tolist(), sd.tolist(), strict=True)
    said = [f"{axis_title(axis)}: {mean:.2f} ± {spread:.2f}, n = {record.n}" for axis, mean, spread in values]
    tell_points(axes, record.mean, rows, said)
    axes.errorbar(record.mean, rows, xerr=sd, fmt="none", ecolor="#333333", elinewidth=1.3, capsize=2.5)
    axes.set_yticks(rows, [axis_title(axis) for axis in record.axes])
    axes.set_ylim(len(record.axes) - 0.4, -0.6)
    axes.axvline(0, color="#444444", lw=0.8)
    low, high = float((record.mean - sd).min()), float((record.mean + sd).max())
    axes.set_xlim(min(low - 0.02, -0.01), max(high + 0.02, 1.0))
    axes.set_xlabel(f"share of the variance of {record.metric.plain}")
    return figure


def describe_importance(record: Importance) -> str:
    """The figure in words."""
    parts = [f"{axis_title(axis)} {max(value, 0):.2f}" for axis, value in zip(record.axes, record.mean, strict=True)]
    return f"Importance of each axis for {record.metric.plain}: {', '.join(parts)}."


def _of_some(values: Floats, share: float) -> Floats:
    """The values of configurations drawn at random, so many of a whole; NaN for the others."""
    drawn = np.random.default_rng(0).permutation(len(values))[: max(1, int(share * len(values)))]
    some = np.full_like(values, np.nan)
    some[drawn] = values[drawn]
    return some


def in_words(record: Importance) -> str:
    """What the forest was fitted to: "2,000 runs", or "10,000 of 96,000 runs"."""
    return f"{record.n} runs" if record.n == record.finished else f"{record.n:,} of {record.finished:,} runs"
