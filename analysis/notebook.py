"""A search space and its results in one call, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from clops_sweep.analysis.collect import Experiment
from clops_sweep.analysis.search_trials import collect_with_searches
from clops_sweep.experiment.search_space import load_spaces
from clops_sweep.store.run_store import RunStore


def open_sweep(
    space_file: str | Path, results: str | Path = "results", data_hashes: Collection[str] = ()
) -> list[Experiment]:
    """What a search-space file asks for beside what the store has of it, one experiment per search space.

    The cells of a search are its trials.

    Raises:
        BadInput: no such file, no SPACE in it, a store that cannot be read, or a data hash that is not there.
    """
    collected = collect_with_searches(load_spaces(Path(space_file)), RunStore(results), data_hashes)
    return [experiment for experiment, _ in collected]
