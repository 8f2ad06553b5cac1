"""The overview: progress of experiments, their best configurations, and the metric over finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError

from ...collect import Experiment
from ...metrics import Metric, metric_named
from ...results import mean_of
from ...statistics import MIN_UNITS, Estimate, PairedDifference, estimate
from ..snapshot import Followed, Snapshot

MOST_DOTS = 500
"""Most runs in the figure. With more, evenly spaced runs and all new bests are drawn."""


@dataclass(frozen=True)
class Progress:
    """Progress of one experiment. `last` is the end of its last run, None before; `trials` are those of a search."""

    name: str
    finished: int
    failed: int
    missing: int
    last: pd.Timestamp | None
    trials: Mapping[str, int]

    @property
    def asked(self) -> int:
        """Number of requested runs; without a search space, the number of runs that have ended."""
        return self.finished + self.failed + self.missing


def progress(snapshot: Snapshot) -> list[Progress]:
    """Return the progress of every experiment."""
    return [_progress(name, followed) for name, followed in snapshot.followed.items()]


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Count finished, failed and missing runs of all experiments; shared runs count once."""
    columns = [it.experiment.runs[["run_id", "status"]] for it in snapshot.followed.values()]
    runs = pd.concat(columns) if columns else snapshot.runs[["run_id", "status"]]
    unique = runs[~runs["run_id"].duplicated() | (runs["run_id"] == "")]
    return {str(status): int(count) for status, count in unique["status"].value_counts().items()}


@dataclass(frozen=True)
class Value:
    """A metric of a configuration: the estimate over runs, and the 95 % interval of the mean over units.

    Attributes:
        cell: index of the configuration in the experiment.
        metric: the metric.
        estimate: mean and standard deviation over patient splits, or over the runs of one.
        interval: the corrected interval (see `statistics`); None if folds and random splits are mixed.
    """

    cell: int
    metric: Metric
    estimate: Estimate
    interval: PairedDifference | None

    @property
    def has_interval(self) -> bool:
        """Whether there are enough units for an interval."""
        return self.interval is not None and bool(np.isfinite(self.interval.low))


def value_of(experiment: Experiment, cell: int, metric: str) -> Value:
    """Return a metric of one configuration."""
    values = experiment.by_split(metric)[cell]
    interval = None
    with suppress(UsageError):  # folds and random splits
        interval = mean_of(experiment, cell, metric)
    return Value(cell, metric_named(metric), estimate(values), interval)


def best_value(experiment: Experiment, metric: str) -> Value | None:
    """Return the configuration with the best mean; None without a finished run or a direction of the metric.

    Once some configurations have three patient splits (of one split: three runs), those with fewer do not compete,
    because one lucky seed could win.
    """
    values, better = experiment.by_split(metric), metric_named(metric).better
    n = np.isfinite(values).sum(axis=1)
    if better is None or not n.any():
        return None
    competing = np.flatnonzero(n >= min(MIN_UNITS, n.max()))
    means = np.nanmean(values[competing], axis=1)
    return value_of(experiment, int(competing[means.argmax() if better == "higher" else means.argmin()]), metric)


def first_metric(experiment: Experiment) -> str:
    """Return the column of the first headline metric."""
    name = experiment.headline[0]
    return f"test_{name}" if experiment.on_test else name


@dataclass(frozen=True)
class RunHistory:
    """A metric over the finished runs of an experiment, in the order in which they ended.

    Attributes:
        metric: the metric.
        numbers: number of each run shown, from 1.
        run_ids: ids of these runs.
        values: their metric.
        best: the best value so far; empty if the metric has no direction.
        total: number of runs with the metric.
    """

    metric: Metric
    numbers: npt.NDArray[np.int64]
    run_ids: tuple[str, ...]
    values: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]
    total: int


def run_history(experiment: Experiment, metric: str) -> RunHistory:
    """Return the history of a metric, a numeric column of `runs`."""
    shown, runs = metric_named(metric), experiment.runs.drop_duplicates("run_id")
    runs = runs[(runs["status"] == "finished") & np.isfinite(runs[metric].to_numpy(dtype=float))]
    runs = runs.iloc[np.argsort(ended_at(runs), kind="stable")]
    values = runs[metric].to_numpy(dtype=float)
    best = {"higher": np.maximum.accumulate, "lower": np.minimum.accumulate}.get(str(shown.better))
    until = best(values) if best else np.empty(0)
    kept = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_DOTS)).astype(int))
    kept = np.union1d(kept, np.flatnonzero(np.diff(until, prepend=np.nan))) if best else kept
    ids = tuple(map(str, runs["run_id"].to_numpy()[kept]))
    return RunHistory(shown, kept + 1, ids, values[kept], until[kept] if best else until, len(values))


def describe_history(record: RunHistory) -> str:
    """Describe the figure in words."""
    low, high = record.metric.text(float(record.values.min())), record.metric.text(float(record.values.max()))
    return f"{record.metric.plain} of {record.total} finished runs in the order in which they ended: {low} to {high}."


def ended_at(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the end of runs in seconds since 1970; NaN if unknown."""
    if "started_at" not in runs:
        return np.full(len(runs), np.nan)
    begun = runs["started_at"].astype("datetime64[us, UTC]")
    seconds = begun.astype("int64").to_numpy() / 1e6 + runs["seconds"].fillna(0.0).to_numpy(dtype=float)
    return np.where(begun.notna().to_numpy(), seconds, np.nan)


def _progress(name: str, followed: Followed) -> Progress:
    runs = followed.experiment.runs.drop_duplicates("run_id") if _ids_known(followed) else followed.experiment.runs
    found = runs["status"].value_counts()
    ended = ended_at(runs)
    ended = ended[np.isfinite(ended)]
    trials = pd.Series([trial.state for trial in followed.study.trials] if followed.study else [], dtype=object)
    return Progress(
        name,
        int(found.get("finished", 0)),
        int(found.get("failed", 0)),
        int(found.get("missing", 0)),
        pd.Timestamp(float(ended.max()), unit="s", tz="UTC") if ended.size else None,
        {str(state): int(count) for state, count in trials.value_counts().items()},
    )


def _ids_known(followed: Followed) -> bool:
    """Return whether every run has an id; runs on data that are not prepared have none."""
    return bool((followed.experiment.runs["run_id"] != "").all())
