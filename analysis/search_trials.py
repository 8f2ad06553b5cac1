"""The trials of an Optuna search and their runs, as an experiment and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.columns import CONFIG
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.spaces.axes import number_in_words
from clops_sweep.experiment.spaces.grid import RunRequest
from clops_sweep.experiment.spaces.search_space import Phase, SearchSpace
from clops_sweep.search.records import StudyRecord, TrialRecord, journal_of
from clops_sweep.store.run_store import RunStore

from .as_stored import stored_value
from .collect import FAMILY, Experiment, Family, collect, family_of, frame_of_runs, label_text, shared_versions
from .editions import Edition, Present
from .formats import TextCell, TextTable, count_cell, plus_minus
from .metrics import metric_named
from .results import over_units
from .statistics import Estimate

MOST_ROWS = 20


@dataclass(frozen=True)
class BestTrials:
    """The best trials.

    `estimates[i][j]` is mean and standard deviation of objective j of trial i, over patient splits or, with one split,
    seeds. `runs[i]` is the number of its runs.
    """

    name: str
    objectives: tuple[str, ...]
    parameters: tuple[str, ...]
    trials: tuple[TrialRecord, ...]
    estimates: tuple[tuple[Estimate, ...], ...]
    runs: tuple[int, ...]


def collect_with_searches(
    spaces: Sequence[SearchSpace],
    store: RunStore,
    data_hashes: Collection[str] = (),
    keep_axes: Iterable[str] = (),
    runs: pd.DataFrame | None = None,
    present: Present = lambda dataset: None,
) -> list[tuple[Experiment, StudyRecord | None]]:
    """Extend `collect` to searches: return the experiment of each space and, for a search, its study if it exists.

    Raises:
        UsageError: a data hash matches no edition, or a study was created from another definition.
    """
    runs = store.read("runs") if runs is None else runs
    grids = iter(collect([space for space in spaces if space.search is None], runs, data_hashes, keep_axes, present))
    rows = runs.set_index("run_id", drop=False)
    experiments: list[tuple[Experiment, StudyRecord | None]] = []
    for space in spaces:
        if space.search is None:
            experiments.append((next(grids), None))
            continue
        from clops_sweep.search.trials import read_study  # importing Optuna is slow

        study = read_study(space, store)
        record = study or StudyRecord(space.name, space.search.objectives, (), is_phase=isinstance(space, Phase))
        experiments.append((search_experiment(record, rows), study))
    return experiments


def tuning_experiments(store: RunStore, runs: pd.DataFrame) -> list[tuple[Experiment, StudyRecord]]:
    """Return the trials of every search of a store that only chooses configurations, each with its study.

    Args:
        store: the store.
        runs: its table `runs`.

    Raises:
        UsageError: the file of the studies is damaged.
    """
    if journal_of(store) is None:
        return []
    from clops_sweep.search.trials import read_studies  # importing Optuna is slow

    rows = runs.set_index("run_id", drop=False)
    experiments = []
    for record in read_studies(store):
        if record.is_phase:
            experiment = search_experiment(record, rows)
            if experiment.cells:
                experiments.append((experiment, record))
    return experiments


def search_experiment(record: StudyRecord, rows: pd.DataFrame) -> Experiment:
    """Return the trials of a search as the cells of an experiment.

    Trials with equal parameters are one cell. Runs that are not in the store do not count as requested.

    Args:
        record: the study of the search.
        rows: the store's table `runs`, by run id.
    """
    requests: dict[str, RunRequest] = {}
    names = dict.fromkeys(chain.from_iterable(trial.labels for trial in record.trials))
    for trial in record.trials:
        labels = {name: trial.labels.get(name) for name in names}
        for run_id in trial.run_ids:
            if run_id in rows.index:
                config = _config_of(rows.loc[run_id])
                requests.setdefault(run_id, RunRequest(config, record.name, labels, config))
    axes: dict[str, tuple[Any, ...]] = {}
    for name in names:
        values = [request.labels[name] for request in requests.values()]
        distinct = {repr(value): value for value in values}.values()
        are_numbers = all(isinstance(value, int | float) for value in distinct)
        axes[name] = tuple(sorted(distinct, key=None if are_numbers else str))
    cells, frame = frame_of_runs(axes, list(requests.values()), list(requests), rows)
    return Experiment(record.name, axes, cells, frame, _editions(frame), is_tuning=record.is_phase, is_search=True)


def _config_of(row: Any) -> RunConfig:
    """Return the config of a stored run, as stored."""
    fields = {name: _of_field(name, row[name]) for name in RunConfig.model_fields}
    for name in OPTIONS:
        value = stored_value(row[name]) if name in row else None
        if value is not None:
            fields[name] = value
    return RunConfig.model_construct(None, **fields)


def _of_field(name: str, stored: Any) -> Any:
    value = stored_value(stored)
    if CONFIG.get(name) is int and value is not None:
        return int(value)  # pandas has whole numbers as floats
    return value


def best_trials(record: StudyRecord, experiment: Experiment) -> BestTrials:
    """Return up to 20 of the best trials; with several objectives, the Pareto front, sorted by the first objective."""
    direction = next(iter(record.objectives.values()))
    sign = -1.0 if direction == "maximize" else 1.0
    competing = record.of("complete") if len(record.objectives) == 1 else record.best
    chosen = sorted(competing, key=lambda trial: sign * (trial.values or (np.nan,))[0])[:MOST_ROWS]
    objectives = tuple(record.objectives)
    estimates, runs = [], []
    for trial in chosen:
        of_trial = experiment.runs[experiment.runs["run_id"].isin(trial.run_ids)]
        estimates.append(tuple(over_units(of_trial, name)[0] for name in objectives))
        runs.append(len(of_trial))
    return BestTrials(record.name, objectives, tuple(experiment.axes), tuple(chosen), tuple(estimates), tuple(runs))


def best_trials_text(
    table: BestTrials, record: StudyRecord, name: str, title: str, notes: Sequence[str] = ()
) -> TextTable:
    """Return the best trials as a table; its data has all trials of the record."""
    titles = map(axis_title, table.parameters)
    objectives = [metric_named(column).plain for column in table.objectives]
    header = ("trial", *titles, "runs", *objectives)
    rows = []
    for trial, estimates, runs in zip(table.trials, table.estimates, table.runs, strict=True):
        labels = [_label_cell(trial.labels[parameter]) for parameter in table.parameters]
        values = [TextCell(plus_minus(value.mean, value.sd), value.mean) for value in estimates]
        number = TextCell(str(trial.number), float(trial.number))
        rows.append((number, *labels, count_cell(runs), *values))
    data = _trials(record, table.parameters)
    return TextTable(name, title, header, tuple(rows), 1 + len(table.parameters), (), tuple(notes), data)


def _trials(record: StudyRecord, parameters: Sequence[str]) -> pd.DataFrame:
    tasks = sorted(set(chain.from_iterable(trial.intermediate for trial in record.trials)))
    means = [f"mean_{name}" for name in record.objectives]
    after_tasks = [f"auc_after_{task}_tasks" for task in tasks]
    rows: list[tuple[object, ...]] = []
    for trial in record.trials:
        row: list[object] = [trial.number, trial.state]
        for name in parameters:
            label = trial.labels.get(name, "")
            row.append(label if isinstance(label, int | float | str) else label_text(label))
        row += trial.values or [None] * len(means)
        row += [trial.intermediate.get(task) for task in tasks]
        row += [" ".join(trial.run_ids), trial.error or ""]
        rows.append(tuple(row))
    columns = ["trial", "state", *parameters, *means, *after_tasks, "run_ids", "error"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def _editions(frame: pd.DataFrame) -> tuple[Edition, ...]:
    """Return the editions of the finished and failed runs."""
    if "data_hash" not in frame:
        return ()
    names = [*FAMILY, "data_hash", "semantics_version"]
    versions = frame.assign(semantics_version=shared_versions(frame))
    present = versions[names].dropna(subset=["data_hash", "semantics_version"])
    counts: Counter[tuple[Family, str, int]] = Counter()
    for row in present.to_dict("records"):
        family = family_of({str(name): value for name, value in row.items()})
        counts[family, str(row["data_hash"]), int(row["semantics_version"])] += 1
    editions = []
    for (family, data_hash, version), runs in sorted(counts.items(), key=_family_and_version):
        editions.append(Edition(family.scenario, family.data, data_hash, version, runs))
    return tuple(editions)


def _family_and_version(counted: tuple[tuple[Family, str, int], int]) -> tuple[Any, str, int]:
    (family, data_hash, version), _ = counted
    return family.sort_key, data_hash, version


def _label_cell(label: Any) -> TextCell:
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    text = number_in_words(label) if isinstance(label, float) else label_text(label)
    return TextCell(text, float(label) if is_number else text)
