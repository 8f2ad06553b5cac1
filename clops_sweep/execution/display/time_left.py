"""Remaining time of a sweep, from the mean seconds of its finished runs. Imports neither torch nor Ray."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from clops_sweep.experiment.config import RunConfig
from clops_sweep.planning.costs import Costs, kind_of


class TimeLeft:
    """Expected seconds of the remaining runs, divided among the workers.

    A run takes the mean of the finished runs of its kind; before any, that of the kind with other options, or of all.

    Args:
        configs: the runs to do; for a search, its base config once for each run that it may ask for.
        before: an earlier step of the sweep, whose runs were timed.
    """

    def __init__(self, configs: Iterable[RunConfig], before: TimeLeft | None = None) -> None:
        self._unfinished = Counter(kind_of(config) for config in configs)
        self._costs: Costs = Costs() if before is None else before._costs

    def ended(self, configs: Iterable[RunConfig | None], seconds: float | None = None) -> None:
        """Remove runs that are over; None stands for any run of a search that will not be run.

        Args:
            configs: the runs.
            seconds: the duration of each, if it is known.
        """
        for config in configs:
            kind = None if config is None else kind_of(config)
            if kind is not None and seconds is not None:
                self._costs.add(kind, seconds)
            unfinished = +self._unfinished  # a search requests other configs than its base
            if unfinished:
                self._unfinished[kind if kind is not None and kind in unfinished else next(iter(unfinished))] -= 1

    def seconds(self, workers: int) -> float | None:
        """Return the expected seconds until the end; None before the first run has finished."""
        mean = self._costs.seconds(None)
        if mean is None:
            return None
        expected = ((self._costs.guess(kind) or mean, count) for kind, count in (+self._unfinished).items())
        return sum(seconds * count for seconds, count in expected) / max(1, workers)
