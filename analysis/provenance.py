"""Where the numbers of a report come from."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.collect import Experiment

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


def provenance(experiments: Sequence[Experiment]) -> list[tuple[str, str]]:
    """Data, versions, machines and time behind the finished runs, each with the number of runs it holds for."""
    editions = dict.fromkeys(edition for experiment in experiments for edition in experiment.shown)
    lines = [("Data", "; ".join(f"{edition}" for edition in editions) or "no run yet")]
    parts = [experiment.runs[experiment.runs["status"] == "finished"] for experiment in experiments]
    parts = [part for part in parts if len(part)]
    if not parts:
        return lines
    runs = pd.concat(parts, ignore_index=True).drop_duplicates("run_id")
    dirty = runs["git_dirty"].fillna(False).astype(bool)
    runs["git_commit"] = runs["git_commit"].where(~dirty, runs["git_commit"].astype(str) + " with local changes")
    for column, name in _COLUMNS.items():
        counts = runs[column].dropna().astype(str).value_counts().sort_index()
        if len(counts) == 1:
            lines.append((name, str(counts.index[0])))
        elif len(counts):
            lines.append((name, "; ".join(f"{value} ({count} runs)" for value, count in counts.items())))
    started = runs["started_at"].dropna()
    if len(started):
        lines.append(("Started", f"{started.min():%Y-%m-%d %H:%M} to {started.max():%Y-%m-%d %H:%M} UTC"))
    seconds = float(runs["seconds"].sum())
    lines.append(("Computed", f"{len(runs):,} runs, {seconds / 3600:,.1f} hours in all"))
    return lines
