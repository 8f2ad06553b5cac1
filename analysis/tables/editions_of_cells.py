"""The editions of the runs of configurations, which decide whether their scores can be compared."""

from __future__ import annotations

from collections.abc import Mapping

from ..collect import Experiment, shared_versions
from ..statistics import Split, splits_of


def editions_of(experiment: Experiment, cell: int) -> dict[Split, tuple[str, int]]:
    """Return data hash and shared semantics version of a cell's finished runs, by patient split or fold."""
    runs = experiment.runs_of(cell, "finished")
    columns = splits_of(runs), runs["data_hash"], shared_versions(runs)
    return {split: (str(data_hash), int(version)) for split, data_hash, version in zip(*columns, strict=True)}


def editions_by_cell(experiment: Experiment) -> dict[int, dict[Split, tuple[str, int]]]:
    """Return `editions_of` for every cell with finished runs, all at once."""
    by_cell: dict[int, dict[Split, tuple[str, int]]] = {}
    runs = experiment.runs[experiment.runs["status"] == "finished"]
    if runs.empty:
        return by_cell
    columns = runs["cell"], splits_of(runs), runs["data_hash"], shared_versions(runs)
    for cell, split, data_hash, version in zip(*columns, strict=True):
        by_cell.setdefault(int(cell), {})[split] = str(data_hash), int(version)
    return by_cell


def same_editions(ours: Mapping[Split, tuple[str, int]], theirs: Mapping[Split, tuple[str, int]]) -> bool:
    """Return whether two cells have equal data and semantics version in every patient split that both have."""
    return all(theirs.get(split, edition) == edition for split, edition in ours.items())
