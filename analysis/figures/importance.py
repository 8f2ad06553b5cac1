"""Importance of each axis of a search space: total effects by permutation in a random forest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_title

from ..collect import Experiment
from ..drawing.style import GRID, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..metrics import Metric, known_metric
from ..statistics import MIN_UNITS

Floats = npt.NDArray[np.float64]
MIN_RUNS = 8
MIN_TRIALS = 10
"""Fewest trials of a search: a forest cannot tell the effects of parameters apart in fewer random points."""
MIN_R2 = 0.05
"""Least R^2 on held-out replicates: below it, permutation is uninformative."""

REPEATS = 5

MOST_RUNS = 10_000
"""Most runs to fit a forest to; beyond it, configurations are sampled at random."""


@dataclass(frozen=True)
class Importance:
    """The share of a metric's variance that depends on each axis, alone or with others.

    It is half of the loss in R^2 when the axis is permuted, on held-out replicates: Jansen's (1999) estimate of Sobol's
    total effect. `mean` and `sd` are over held-out replicates, `sd` from three on. `r2` is the forest's R^2 on them; if
    it is low, the axes explain little of the metric. `axes` are sorted by decreasing importance. `runs` were used of
    `finished` ones.
    """

    metric: Metric
    axes: tuple[str, ...]
    mean: Floats
    sd: Floats
    r2: float
    runs: int
    finished: int

    @property
    def named_values(self) -> NamedValues:
        """The importance of each axis."""
        return NamedValues("Share of the variance", list(zip(self.axes, map(float, self.mean), strict=True)))


# Not optuna.importance: it reads one value a trial of a study. This holds out seeds, and serves grids too.
def importance(experiment: Experiment, metric: str = "auc") -> Importance:
    """Fit a random forest to a metric over the axes' labels, holding out one replicate at a time, and permute axes.

    Labels are encoded by their position on the axis. Held-out replicates have the same cells with other seeds, so the
    result measures the effect of the axes, not of seeds; a constant shift of a seed does not count as an error.

    Raises:
        UsageError: an unknown metric, fewer than two axes that vary, fewer than two replicates, fewer than 8 finished
            runs or, of a search, 10 trials, or axes that explain nothing on held-out replicates.
    """
    from sklearn.ensemble import RandomForestRegressor  # importing takes a second
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
    trials = len(np.unique(cells))
    if experiment.is_search and trials < MIN_TRIALS:
        raise UsageError(
            f"search space {experiment.name!r}: importance needs {MIN_TRIALS} trials with finished runs; there are "
            f"{trials}"
        )
    positions = np.empty((len(experiment.cells), len(axes)))
    for column, axis in enumerate(axes):
        labels = [repr(label) for label in experiment.axes[axis]]
        for row, cell in enumerate(experiment.cells):
            positions[row, column] = labels.index(repr(cell.labels[axis]))
    features = positions[cells]
    target = values[cells, replicates]
    losses, scores = [], []
    for replicate in held_out:
        test = replicates == replicate
        if np.ptp(target[test]) == 0:
            continue
        forest = RandomForestRegressor(n_estimators=30, min_samples_leaf=1, random_state=0, n_jobs=1)
        forest.fit(features[~test], target[~test])
        scores.append(explained_variance_score(target[test], forest.predict(features[test])))
        # Explained variance ignores the mean error, and so a constant shift of a replicate.
        lost = permutation_importance(
            forest, features[test], target[test], scoring="explained_variance", n_repeats=REPEATS, random_state=0
        )
        losses.append(lost.importances_mean / 2)
    if not losses:
        raise UsageError(f"search space {experiment.name!r}: {shown.plain} is the same in all runs")
    r2 = float(np.mean(scores))
    if r2 < MIN_R2:
        raise UsageError(
            f"search space {experiment.name!r}: the importance of its axes for {shown.plain} cannot be estimated from "
            f"these {cells.size} runs: a fit to some replicates does not predict the others "
            f"(R² = {r2:.2f} on held-out replicates); more seeds may help"
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
    """Draw a bar per axis with one standard deviation over folds; negative estimates have no bar."""
    figure = new_figure(5.6, 0.36 * len(record.axes) + 0.8)
    axes = figure.subplots()
    axes.grid(axis="x", color=GRID, lw=0.6)
    rows, sd = np.arange(len(record.axes)), np.nan_to_num(record.sd)
    axes.barh(rows, np.maximum(record.mean, 0), height=0.6, color=colour(0))
    values = zip(record.axes, record.mean.tolist(), sd.tolist(), strict=True)
    said = [f"{axis_title(axis)}: {mean:.2f} ± {spread:.2f}, {record.runs} runs" for axis, mean, spread in values]
    tell_points(axes, record.mean, rows, said)
    axes.errorbar(record.mean, rows, xerr=sd, fmt="none", ecolor="#333333", elinewidth=1.3, capsize=2.5)
    axes.set_yticks(rows, [axis_title(axis) for axis in record.axes])
    axes.set_ylim(len(record.axes) - 0.4, -0.6)
    axes.axvline(0, color="#444444", lw=0.8)
    low, high = float((record.mean - sd).min()), float((record.mean + sd).max())
    axes.set_xlim(min(low - 0.02, -0.01), max(high + 0.02, 1.0))
    axes.set_xlabel(f"share of the variance of {record.metric.plain}")
    return figure


def _of_some(values: Floats, share: float) -> Floats:
    """Keep the values of randomly drawn configurations; NaN for the others."""
    drawn = np.random.default_rng(0).permutation(len(values))[: max(1, int(share * len(values)))]
    some = np.full_like(values, np.nan)
    some[drawn] = values[drawn]
    return some


def in_words(record: Importance) -> str:
    """Return the size of the fit in words: "2,000 runs", or "10,000 of 96,000 runs"."""
    return f"{record.runs} runs" if record.runs == record.finished else f"{record.runs:,} of {record.finished:,} runs"
