"""The edition of the data that each search space of a store was launched on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath

import pandas as pd

from clops_sweep.experiment.provenance import plugin_origins
from clops_sweep.planning.launched import LaunchedOn

_COLUMNS = ["dataset", "prepared_hash", "plugins"]


def launched_editions(launched: Mapping[str, LaunchedOn], runs: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Return the `prepared_hash` of each data set on which each search space was last launched, by its name.

    Launches of earlier versions did not store it. Then it is that of the latest run that names a file of the space.

    Args:
        launched: what the store remembers of the spaces, by name.
        runs: the store's table `runs`.
    """
    newest = _newest_by_file(runs) if any(not launch.prepared for launch in launched.values()) else {}
    return {name: dict(launch.prepared) or _of_files(launch.files, newest) for name, launch in launched.items()}


def _of_files(files: Collection[str], newest: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Return the edition of each data set whose runs name one of these files."""
    return {dataset: edition for (file, dataset), edition in newest.items() if file in files}


def _newest_by_file(runs: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return the edition of the latest run by name of a plug-in file and data set."""
    if not {*_COLUMNS, "started_at"} <= set(runs):
        return {}
    recorded = runs.dropna(subset=_COLUMNS).sort_values("started_at", kind="stable")
    newest: dict[tuple[str, str], str] = {}
    of_file = recorded[_COLUMNS].drop_duplicates(keep="last")
    for dataset, edition, plugins in of_file.itertuples(index=False, name=None):
        for origin in plugin_origins(plugins):
            if origin.file is not None:
                newest[PurePath(origin.file).name, dataset] = edition
    return newest
