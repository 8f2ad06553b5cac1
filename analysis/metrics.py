"""Look up metrics of `clops_sweep.experiment.metrics` by column for figures."""

from __future__ import annotations

from collections.abc import Collection

from clops_sweep.errors import UsageError, nearest
from clops_sweep.experiment.metrics import METRICS, PAPER, Metric, metric_named, words

__all__ = ["METRICS", "PAPER", "Metric", "known_metric", "metric_named", "words"]


def known_metric(column: str, numeric: Collection[str]) -> Metric:
    """Return the metric of an existing column.

    Args:
        column: name of the column.
        numeric: the numeric columns of the runs.

    Raises:
        UsageError: `column` is neither in `PAPER` nor a numeric column.
    """
    if column not in PAPER and column not in numeric:
        close = nearest(column, dict.fromkeys((*PAPER, *numeric)))
        raise UsageError(f"metric {column!r}: expected a numeric column of runs, such as {', '.join(PAPER)}{close}")
    return metric_named(column)
