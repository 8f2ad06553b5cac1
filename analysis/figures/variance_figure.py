"""Figure of the sources of variance and of the power of a comparison."""

from __future__ import annotations

from math import isinf

import numpy as np
from matplotlib.figure import Figure

from ..drawing.style import GRID, MUTED, colour, dash, new_figure, styled
from ..formats import plural
from ..statistics import DIFFERENCE, MIN_UNITS, POWER
from .variance import VarianceBySource

SEEDS = (1, 3, 5)
_LEAST_SPLITS, _MOST_SPLITS = 20, 120


@styled
def draw_variance(record: VarianceBySource) -> Figure:
    """Draw the standard deviation of each source (left) and the power by number of patient splits (right)."""
    figure = new_figure(8.2, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    sources = record.by_source
    deviations = [float(np.sqrt(max(0.0, variance))) for variance in sources.values()]
    rows = np.arange(len(sources))
    left.grid(axis="x", color=GRID, lw=0.6)
    left.barh(rows, deviations, height=0.6, color=colour(0))
    for row, value in zip(rows, deviations, strict=True):
        left.text(value, row, f" {value:.3f}", va="center", fontsize=8)
    left.set_yticks(rows, list(sources))
    left.set_ylim(len(sources) - 0.4, -0.6)
    left.set_xlim(0, max(deviations) * 1.2 or 1.0)
    left.set_xlabel(f"standard deviation of {record.metric.plain}")
    most = _splits_shown(record)
    splits = np.arange(MIN_UNITS, most + 1)
    right.grid(color=GRID, lw=0.6)
    right.axhline(POWER, color=MUTED, lw=0.9)
    for number, seeds in enumerate(SEEDS):
        power = [record.power(int(n), seeds) for n in splits]
        right.plot(splits, power, color=colour(number), ls=dash(number), label=plural(seeds, "seed") + " a split")
    right.set(
        xlim=(MIN_UNITS, most),
        ylim=(0, 1.02),
        xlabel="patient splits",
        ylabel=f"power at a difference of {DIFFERENCE:g}",
    )
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(SEEDS), fontsize=8, borderaxespad=0.2)
    return figure


def _number_in_words(splits: float | None) -> str:
    if splits is None:
        return "more than 500"
    return "no number suffices" if isinf(splits) else f"{splits:g}"


def needed_in_words(record: VarianceBySource) -> str:
    """Describe how many splits a comparison needs by the number of seeds per split, or why no number suffices."""
    needed = [record.splits_needed(seeds) for seeds in SEEDS]
    detected = f"a difference of {DIFFERENCE:g} between two methods with a power of {POWER:.0%}"
    if all(splits is not None and isinf(splits) for splits in needed):
        said = f"No number of patient splits suffices to detect {detected}."
    else:
        parts = [
            f"{_number_in_words(splits)} with {plural(seeds, 'seed')} each"
            for splits, seeds in zip(needed, SEEDS, strict=True)
        ]
        said = f"Patient splits needed to detect {detected}: {', '.join(parts)}."
    if record.overlap:
        said += (
            f" Splits share people (rho = {record.overlap:.2f}), so the standard error never falls below s sqrt(rho): "
            f"with {plural(SEEDS[-1], 'seed')} each, the smallest detectable difference with many splits is "
            f"{record.smallest_difference(SEEDS[-1]):.3f}."
        )
    return said


def _splits_shown(record: VarianceBySource) -> int:
    needed = record.splits_needed(SEEDS[0])
    return int(max(_LEAST_SPLITS, min(_MOST_SPLITS, 2 * (needed or _MOST_SPLITS))))
