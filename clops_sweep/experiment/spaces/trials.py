"""Trials: a search whose trials are runs of chosen parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clops_sweep.errors import UsageError, prefixed, several
from clops_sweep.experiment.fields import SPLIT_AXES
from clops_sweep.experiment.plugins.registry import options_of_any
from clops_sweep.experiment.spaces.grid import Grid, RunRequest, check_count, with_plugins
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch


@dataclass(frozen=True)
class Trials:
    """The trials of a search, each a run for every cell and seed of a grid over patient splits.

    Attributes:
        grid: base config, patient splits and seeds.
        search: the search.
    """

    grid: Grid
    search: OptunaSearch

    @property
    def size(self) -> str:
        """Number of trials, and of the runs of each, in words."""
        return f"{several(self.search.n_trials, 'trial')} of {several(len(self.grid.replicates()), 'run')}"

    def requests(self) -> Iterator[RunRequest]:
        """Return nothing: the study determines the runs."""
        return iter(())

    def used_options(self, base: Mapping[str, Any]) -> set[str]:
        """Return the options that some trial uses, for values given to the base config."""
        return options_of_any(with_plugins(base), [self.search.settings(corner) for corner in self.search.corners()])

    def checked(self) -> list[RunRequest]:
        """Check the search with the base config, and return its runs as `requests` does.

        Raises:
            UsageError: other axes than patient splits, too many runs, a condition, or parameters that do not fit the
                base config.
        """
        grid = self.grid
        if not set(grid.axes) <= set(SPLIT_AXES):
            raise UsageError(
                f"{grid.subject} has axes and a search; expected one of them, axes over patient splits alone, or "
                "tune_on"
            )
        replicates = len(grid.seeds) * math.prod(map(len, grid.axes.values()))
        counted = several(replicates, "split and seed" if grid.axes else "seed")
        trials = self.search.n_trials
        check_count(grid.subject, f"{trials:,} trials of {counted} make", trials * replicates)
        if grid.where is not None:
            raise UsageError(f"{grid.subject}: where goes with axes; bound the distributions of a search instead")
        with prefixed(grid.subject):
            self.search.check(grid.base)
        return []
