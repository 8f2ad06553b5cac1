"""Provenance of the numbers of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import any_replicate
from clops_sweep.experiment.provenance import PROVENANCE, changed_code, described
from clops_sweep.store.launch_folders import plugin_files_to_name
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..formats import duration, plural
from ..statistics import Replicate

_COLUMNS = {
    "package_version": "clops-sweep",
    "git_commit": "Commit",
    "python": "Python",
    "torch": "PyTorch",
    "ray": "Ray",
    "device": "Device",
    "backend": "Backend",
    "host": "Host",
}

_HASH_DIGITS = 16
"""Digits of data hashes on the page; any command that takes a data hash takes its beginning."""


def _key(config: RunConfig) -> str:
    """Return the identity of a config; its text if it names a plug-in that is not registered."""
    try:
        return config.identity
    except (AttributeError, LookupError):
        return repr(config)


def distinct_runs(experiments: Sequence[Experiment]) -> dict[str, int]:
    """Count finished, failed and missing runs; runs shared by cells or search spaces count once.

    Runs are identified by the identity of their config and, if they exist, by id: the id of a missing run may be
    unknown. A run that is finished in the edition shown for one search space and missing in another's counts as
    finished.
    """
    found: dict[tuple[str, Replicate], dict[str, str]] = {}
    for experiment in experiments:
        configs = [_key(any_replicate(cell.config)) for cell in experiment.cells]
        columns = (experiment.runs[name] for name in ("cell", "run_id", "status"))
        replicates = experiment.replicates_of(experiment.runs)
        for cell, run_id, status, replicate in zip(*columns, replicates, strict=True):
            there = found.setdefault((configs[int(cell)], replicate), {})
            if status != "missing":
                there[str(run_id)] = str(status)
    counts = Counter(status for there in found.values() for status in (there.values() or ("missing",)))
    return {status: counts[status] for status in ("finished", "failed", "missing")}


def files_of_plugins(store: RunStore, experiments: Sequence[Experiment]) -> dict[str, tuple[str, ...]]:
    """Return the files that the command to repeat a run must name, by run id; runs without any are left out."""
    by_run: dict[str, tuple[str, ...]] = {}
    for experiment in experiments:
        if "plugins" not in experiment.runs:
            continue
        runs = experiment.runs.dropna(subset=["plugins"])
        for plugins, of_plugins in runs.groupby("plugins"):
            files = plugin_files_to_name(store, plugins, anywhere=True)
            if files:
                by_run |= dict.fromkeys(map(str, of_plugins["run_id"]), files)
    return by_run


def provenance(experiments: Sequence[Experiment]) -> list[tuple[str, str]]:
    """Return data, versions, machines and time of the finished runs, each with its number of runs.

    Names may repeat: every edition of the data has a line.
    """
    editions = dict.fromkeys(
        edition.described(edition.data_hash[:_HASH_DIGITS])
        for experiment in experiments
        for edition in experiment.shown
    )
    lines = [("Data", edition) for edition in editions or ("no run yet",)]
    parts = [experiment.runs[experiment.runs["status"] == "finished"] for experiment in experiments]
    parts = [part for part in parts if len(part)]
    if not parts:
        return lines
    runs = pd.concat(parts, ignore_index=True).drop_duplicates("run_id")
    dirty = runs["git_dirty"].isin([True])
    runs["git_commit"] = runs["git_commit"].where(~dirty, runs["git_commit"].astype(str) + " with local changes")
    for column, name in _COLUMNS.items():
        counts = runs[column].dropna().astype(str).value_counts().sort_index()
        if len(counts) == 1:
            lines.append((name, str(counts.index[0])))
        elif len(counts):
            lines.append((name, "; ".join(f"{value} ({plural(count, 'run')})" for value, count in counts.items())))
    plugins = runs["plugins"].dropna()
    lines += [("Plug-ins", line) for line in sorted({line for text in plugins for line in described(text)})]
    lines += [("Changed since", line) for line in changed_code(_records(runs[list(PROVENANCE)]))]
    started = runs["started_at"].dropna()
    if len(started):
        lines.append(("Started", f"{started.min():%Y-%m-%d %H:%M} to {started.max():%Y-%m-%d %H:%M} UTC"))
    seconds = float(runs["seconds"].sum())
    lines.append(("Computed", f"{plural(len(runs), 'run')}, {duration(seconds)} of compute"))
    return lines


def _records(runs: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in runs.to_dict("records")]
