"""The overview: progress of experiments, and the best configuration of each."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError

from ..collect import Experiment
from ..metrics import Metric, metric_named
from ..results import mean_of
from ..selection import cell_name, cells_by_data
from ..statistics import MIN_UNITS, Estimate, PairedDifference, estimate
from .snapshot import Snapshot


@dataclass(frozen=True)
class Progress:
    """Progress of one experiment. `ended` is the end of its last run in seconds since 1970, NaN before.

    `running` runs are not finished yet and not `missing`. An experiment that only chooses configurations
    (`is_tuning`) has no `bests`: its scores are no results. There is one for each data set and scenario.
    """

    name: str
    finished: int
    failed: int
    running: int
    missing: int
    ended: float
    bests: tuple[Best, ...]
    is_tuning: bool = False

    @property
    def total(self) -> int:
        """Number of requested runs; without a search space, the number of runs that have ended."""
        return self.finished + self.failed + self.running + self.missing


@dataclass(frozen=True)
class Best:
    """The configuration with the best mean of a metric.

    Attributes:
        name: its name.
        metric: the metric.
        estimate: mean and standard deviation over patient splits, or over the runs of one.
        interval: the corrected 95 % interval of the mean over units (see `statistics`); None if folds and random splits
            are mixed.
    """

    name: str
    metric: Metric
    estimate: Estimate
    interval: PairedDifference | None

    @property
    def interval_text(self) -> str:
        """The interval for display; empty if there are too few units for one."""
        if self.interval is None or not np.isfinite(self.interval.low):
            return ""
        return f"[{self.metric.text(self.interval.low)}, {self.metric.text(self.interval.high)}]"

    @property
    def units(self) -> str:
        """Number and kind of the units; empty if unknown."""
        found = self.interval
        return "" if found is None or found.units is None else f"{found.n} {found.units.kind}"


@dataclass(frozen=True)
class Search:
    """Progress of a search: the number of its trials by state, and the best value of its first objective so far."""

    trials: dict[str, int]
    objective: str
    best: str


def searches(snapshot: Snapshot) -> dict[str, Search]:
    """Return the progress of every search that has begun, by name of the experiment."""
    found = {}
    for name, section in snapshot.sections.items():
        study = section.study
        if study is None:
            continue
        metric = metric_named(next(iter(study.objectives)))
        best_value = metric.text(study.best[0].values[0]) if study.best and study.best[0].values else ""
        trials: dict[str, int] = dict(Counter(str(trial.state) for trial in study.trials))
        found[name] = Search(trials, metric.plain, best_value)
    return found


def progress(snapshot: Snapshot) -> list[Progress]:
    """Return the progress of every experiment."""
    return [_progress(it.experiment, snapshot.running) for it in snapshot.sections.values()]


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Count finished, running, failed and missing runs of all experiments; shared runs count once."""
    columns = [it.experiment.runs[["run_id", "status"]] for it in snapshot.sections.values()]
    runs = pd.concat(columns) if columns else snapshot.runs[["run_id", "status"]]
    runs = runs[~runs["run_id"].duplicated() | (runs["run_id"] == "")]
    found = {str(status): int(count) for status, count in statuses(runs, snapshot.running).value_counts().items()}
    return found | ({"running": len(snapshot.running)} if snapshot.running else {})


def statuses(runs: pd.DataFrame, running: frozenset[str]) -> pd.Series:
    """Return the status of runs, including running, which the store does not record."""
    is_running = (runs["status"] == "missing") & runs["run_id"].isin(running)
    return runs["status"].mask(is_running, "running")


def bests(experiment: Experiment) -> tuple[Best, ...]:
    """Return the configuration with the best mean of the first headline metric, for each data set and scenario.

    Those without a finished run have none. Once some configurations have three patient splits (of one split: three
    runs), those with fewer do not compete, because one lucky seed could win.
    """
    column = experiment.headline[0]
    values, metric = experiment.by_split(column), metric_named(f"test_{column}" if experiment.on_test else column)
    n = np.isfinite(values).sum(axis=1)
    if metric.better is None:
        return ()
    best_ones = []
    for cells in map(np.array, cells_by_data(experiment)):
        if not n[cells].any():
            continue
        competing = cells[n[cells] >= min(MIN_UNITS, n[cells].max())]
        means = np.nanmean(values[competing], axis=1)
        cell = int(competing[means.argmax() if metric.better == "higher" else means.argmin()])
        interval = None
        with suppress(UsageError):  # folds and random splits
            interval = mean_of(experiment, cell, column)
        name = cell_name(experiment.cells[cell]) or experiment.name
        best_ones.append(Best(name, metric, estimate(values[cell]), interval))
    return tuple(best_ones)


def ended_at(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the end of runs in seconds since 1970; NaN if unknown."""
    if "started_at" not in runs:
        return np.full(len(runs), np.nan)
    begun = runs["started_at"].astype("datetime64[us, UTC]")
    seconds = begun.astype("int64").to_numpy() / 1e6 + runs["seconds"].fillna(0.0).to_numpy(dtype=float)
    return np.where(begun.notna().to_numpy(), seconds, np.nan)


def newest(snapshot: Snapshot) -> str:
    """Return the experiment whose run ended last; one that reports results, if there is any."""
    reporting = {name: it for name, it in snapshot.sections.items() if not it.experiment.is_tuning}
    ended = {name: ended_at(it.experiment.runs) for name, it in (reporting or snapshot.sections).items()}
    return max(ended, key=lambda name: np.nan_to_num(ended[name]).max(initial=0.0))


def _progress(experiment: Experiment, running: frozenset[str]) -> Progress:
    runs = experiment.runs
    if (runs["run_id"] != "").all():  # runs on data that are not prepared have no id
        runs = runs.drop_duplicates("run_id")
    found = statuses(runs, running).value_counts()
    ended = ended_at(runs)
    ended = ended[np.isfinite(ended)]
    finished, failed, now, missing = (int(found.get(it, 0)) for it in ("finished", "failed", "running", "missing"))
    last = float(ended.max()) if ended.size else np.nan
    shown = () if experiment.is_tuning else bests(experiment)
    return Progress(experiment.name, finished, failed, now, missing, last, shown, experiment.is_tuning)
