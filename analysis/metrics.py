"""The metrics of `clops_sweep.experiment.metrics`, chosen for a figure by the name of their column."""

from __future__ import annotations

from collections.abc import Collection

from clops_sweep.errors import UsageError, nearest
from clops_sweep.experiment.metrics import METRICS, PAPER, Metric, metric_named, words

__all__ = ["METRICS", "PAPER", "Metric", "known_metric", "metric_named", "words"]


def known_metric(column: str, numeric: Collection[str]) -> Metric:
    """`metric_named`, of a column that is there.

    Args:
        column: its name.
        numeric: the numeric columns of the runs at hand.

    Raises:
        UsageError: it is neither in `PAPER` nor a numeric column.
    """
    if column not in PAPER and column not in numeric:
        close = nearest(column, dict.fromkeys((*PAPER, *numeric)))
        raise UsageError(f"metric {column!r}: expected a numeric column of runs, such as {', '.join(PAPER)}{close}")
    return metric_named(column)
