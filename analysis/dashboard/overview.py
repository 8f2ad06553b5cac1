"""The overview: a line for each experiment with its progress, and the searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.spaces.search_space import search_of

from ..collect import Experiment
from ..editions import replaced_in_words
from ..formats import plural
from ..leading import names_of_tuned, what_was_tuned
from ..metrics import metric_named
from ..tables.tuning import edges_in_words
from .experiments import differences, held_in_words, short_text
from .snapshot import Snapshot

_DIGITS = 12
"""Digits of the hash of an edition, as in the names of the folders of earlier editions."""


@dataclass(frozen=True)
class Progress:
    """Progress of one experiment.

    Attributes:
        name: its name.
        finished: number of finished runs.
        failed: number of failed runs.
        running: number of runs that are not finished yet and not `missing`.
        missing: number of requested runs that have not started.
        ended: end of its last run in seconds since 1970, NaN before.
        is_tuning: whether it only chooses configurations: its scores are no results.
        is_requested: whether a search space requests its runs.
        held: its axes, seeds and patient splits in words.
        differs: the settings in which it differs from other experiments on the same data; empty without any.
    """

    name: str
    finished: int
    failed: int
    running: int
    missing: int
    ended: float
    is_tuning: bool = False
    is_requested: bool = True
    held: str = ""
    differs: str = ""

    @property
    def total(self) -> int:
        """Number of requested runs; without a search space, the number of runs that have ended."""
        return self.finished + self.failed + self.running + self.missing


@dataclass(frozen=True)
class Search:
    """Progress of a search.

    Attributes:
        title: what it tunes: the method, with the name of its space if there are several.
        trials: number of trials by state.
        objective: the first objective in words.
        best: the best value of it so far; empty without any.
        chosen: the parameters of the best trial in words.
    """

    title: str
    trials: dict[str, int]
    objective: str
    best: str
    chosen: str


def searches(snapshot: Snapshot) -> dict[str, Search]:
    """Return the progress of every search that has begun, by name of the experiment."""
    found = {}
    spaces = names_of_tuned(section.experiment for section in snapshot.sections.values())
    for name, section in snapshot.sections.items():
        study = section.study
        if study is None:
            continue
        metric = metric_named(next(iter(study.objectives)))
        best_value = chosen = ""
        if study.best and study.best[0].values:
            best_value = metric.text(study.best[0].values[0])
            chosen = ", ".join(
                f"{axis_title(axis)} {short_text(label)}" for axis, label in study.best[0].labels.items()
            )
        trials: dict[str, int] = dict(Counter(str(trial.state) for trial in study.trials))
        found[name] = Search(what_was_tuned(name, spaces), trials, metric.plain, best_value, chosen)
    return found


def on_edge(snapshot: Snapshot) -> str:
    """Return the sentence on the choices so far that lie on the edge of what was tried; empty without any."""
    spaces = names_of_tuned(section.experiment for section in snapshot.sections.values())
    edges = {}
    for name, section in snapshot.sections.items():
        study = section.study
        if study is not None and section.experiment.is_tuning and study.best and not study.tied:
            edges[what_was_tuned(name, spaces)] = study.best[0].edges
    return edges_in_words(edges)


def replaced(snapshot: Snapshot) -> list[str]:
    """Return a sentence for each experiment with runs that are left aside, as they are of another edition of data.

    Runs that no experiment shows, because each shows one edition, are counted in a sentence of their own.
    """
    sentences = []
    for section in snapshot.sections.values():
        experiment = section.experiment
        if words := replaced_in_words(experiment.replaced):
            sentences.append(f"{experiment.name}: {words}.")
    return [*sentences, *_not_shown(snapshot)]


def _not_shown(snapshot: Snapshot) -> list[str]:
    """Return a sentence on the runs of other editions of the data that no experiment shows; empty without any."""
    on_page: set[str] = set()
    aside: dict[str, str] = {}
    for section in snapshot.sections.values():
        on_page.update(section.experiment.runs["run_id"])
        for edition in section.experiment.left_aside:
            aside[edition.data_hash] = (edition.prepared_hash or edition.data_hash)[:_DIGITS]
    runs = snapshot.runs
    others = runs[~runs.index.isin(on_page) & runs["data_hash"].isin(aside.keys())]
    if not len(others):
        return []
    of_editions = Counter((row.dataset, aside[str(row.data_hash)]) for row in others.itertuples())
    counted = ", ".join(f"{count:,} of {name}@{digits}" for (name, digits), count in sorted(of_editions.items()))
    are = "is of another edition" if len(others) == 1 else "are of other editions"
    return [
        f"{len(others):,} of {plural(len(runs), 'run')} {are} of the data and not shown ({counted}): each experiment "
        "shows one edition."
    ]


def lines(snapshot: Snapshot) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return what each experiment holds, and how it differs from the others that report results, by name."""
    experiments = [section.experiment for section in snapshot.sections.values() if section.experiment.cells]
    held = {experiment.name: held_in_words(experiment) for experiment in experiments}
    reporting = [experiment for experiment in experiments if not experiment.is_tuning]
    return held, differences(reporting)


def progress(snapshot: Snapshot) -> list[Progress]:
    """Return the progress of every experiment: those with running runs first, then those that changed last."""
    held, differs = snapshot.once("lines", lines)
    experiments = []
    for name, section in snapshot.sections.items():
        is_requested = name in snapshot.requested
        finished, failed, running, missing = _progress(section.experiment, snapshot.running)
        started, left = _of_search(snapshot, name)
        ended = _last_end(section.experiment)
        experiments.append(
            Progress(
                name,
                finished,
                failed,
                running + started,
                missing + left,
                ended,
                section.experiment.is_tuning,
                is_requested,
                held.get(name, ""),
                differs.get(name, ""),
            )
        )
    experiments.sort(key=lambda line: -np.nan_to_num(line.ended))
    experiments.sort(key=lambda line: not line.running)
    return experiments


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Count finished, running, failed and missing runs of all experiments; shared runs count once.

    Missing runs include those of the trials that a search has left.
    """
    columns = [it.experiment.runs[["run_id", "status"]] for it in snapshot.sections.values()]
    runs = pd.concat(columns) if columns else snapshot.runs[["run_id", "status"]]
    runs = runs[~runs["run_id"].duplicated() | (runs["run_id"] == "")]
    found = {str(status): int(count) for status, count in statuses(runs, snapshot.running).value_counts().items()}
    left = sum(_of_search(snapshot, name)[1] for name in snapshot.searched)
    if left:
        found["missing"] = found.get("missing", 0) + left
    return found | ({"running": len(snapshot.running)} if snapshot.running else {})


def statuses(runs: pd.DataFrame, running: frozenset[str]) -> pd.Series:
    """Return the status of runs, including running, which the store does not record."""
    is_running = (runs["status"] == "missing") & runs["run_id"].isin(running)
    return runs["status"].mask(is_running, "running")


def ended_at(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the end of runs in seconds since 1970; NaN if unknown."""
    if "started_at" not in runs:
        return np.full(len(runs), np.nan)
    begun = runs["started_at"].astype("datetime64[us, UTC]")
    seconds = begun.astype("int64").to_numpy() / 1e6 + runs["seconds"].fillna(0.0).to_numpy(dtype=float)
    return np.where(begun.notna().to_numpy(), seconds, np.nan)


def most_telling(snapshot: Snapshot) -> str:
    """Return the experiment that pages show without a choice.

    While runs are computed, it is the one whose run ended last; then the one with most configurations. Experiments that
    report results come first.
    """
    reporting = {name: it for name, it in snapshot.sections.items() if not it.experiment.is_tuning}
    shown = reporting or snapshot.sections
    ended = {name: np.nan_to_num(ended_at(it.experiment.runs)).max(initial=0.0) for name, it in shown.items()}
    if snapshot.under_way:
        return max(ended, key=lambda name: ended[name])
    return max(ended, key=lambda name: (len(shown[name].experiment.cells), ended[name]))


def _progress(experiment: Experiment, running: frozenset[str]) -> tuple[int, int, int, int]:
    """Return the numbers of finished, failed, running and missing runs."""
    runs = experiment.runs[["run_id", "status"]]
    if (runs["run_id"] != "").all():  # runs on data that are not prepared have no id
        runs = runs.drop_duplicates("run_id")
    found = statuses(runs, running).value_counts()
    finished, failed, now, missing = (int(found.get(it, 0)) for it in ("finished", "failed", "running", "missing"))
    return finished, failed, now, missing


def _of_search(snapshot: Snapshot, name: str) -> tuple[int, int]:
    """Return the numbers of running runs of a search, and of those that its trials may still request.

    Its experiment has neither, because it holds the runs of the store alone.
    """
    space = snapshot.searched.get(name)
    if space is None:
        return 0, 0
    section = snapshot.sections[name]
    trials = section.study.trials if section.study is not None else ()
    of_open: set[str] = set()
    ended = 0
    for trial in trials:
        if trial.state in ("running", "waiting"):
            of_open.update(trial.run_ids)
        else:
            ended += 1
    stored = set(section.experiment.runs["run_id"])
    started = len((of_open & snapshot.running) - stored)
    left = max(0, search_of(space).n_trials - ended) * len(space.replicates())
    return started, max(0, left - started - len(of_open & stored))


def _last_end(experiment: Experiment) -> float:
    """Return the end of the last run in seconds since 1970; NaN before."""
    ended = ended_at(experiment.runs)
    ended = ended[np.isfinite(ended)]
    return float(ended.max()) if ended.size else np.nan
