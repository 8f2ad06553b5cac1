"""Load a search space and its results, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..search_trials import collect_with_searches


def open_sweep(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | Path = "results",
    data_hashes: Collection[str] = (),
) -> list[Experiment]:
    """Return one experiment per search space, with its results in the store.

    The cells of a search are its trials. A tuned space gives several experiments: the tuning and the reported runs.

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI.
        data_hashes: data hashes, or prefixes of them, of the editions to use instead of the newest.

    Raises:
        UsageError: the file does not exist or defines no SPACE, the store cannot be read, or a data hash is unknown.
    """
    request = State.of(Request(Selection.of(space), PreparedData.found(), RunStore(results))).resolved
    spaces, present = request.selection.spaces, request.edition
    collected = collect_with_searches(spaces, request.store, data_hashes, present=present)
    return [experiment for experiment, _ in collected]
