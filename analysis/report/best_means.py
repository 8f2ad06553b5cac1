"""The means of the best configurations, for their figure."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures.best_figure import BestMeans
from ..leading import heading
from ..tables.best import Best

_MOST_PANELS = 2
"""Most metrics of one search space."""

_MOST_PANELS_OF_SPACES = 4
"""Most metrics, if the first metrics of several search spaces differ."""


def best_means(shown: Sequence[Best], most: int = _MOST_PANELS) -> BestMeans:
    """Return the means of configurations in the metrics that are results, with the names and headings of their table.

    Args:
        shown: the configurations.
        most: most metrics; more are shown if the first metrics of several search spaces differ.
    """
    experiments = [best.experiment for best in shown]
    several = len({experiment.name for experiment in experiments}) > 1
    names = tuple(_with_space(best) if several else best.name for best in shown)
    first = dict.fromkeys(best.columns.results[0] for best in shown)
    results = first | dict.fromkeys(metric for best in shown for metric in best.columns.results)
    metrics = list(results)[: max(most, min(len(first), _MOST_PANELS_OF_SPACES))]
    means = {metric: tuple(best.means.get(metric) for best in shown) for metric in metrics}
    return BestMeans(names, means, {metric: heading(metric, experiments) for metric in metrics})


def _with_space(best: Best) -> str:
    space = best.experiment.name
    return best.name if best.name == space else f"{space}: {best.name}"
