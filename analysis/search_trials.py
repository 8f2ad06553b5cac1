"""The trials of an Optuna search and their runs, as an experiment and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.experiment.columns import CONFIG
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.spaces.search_space import RunRequest, SearchSpace
from clops_sweep.search.records import StudyRecord, TrialRecord, studies_of
from clops_sweep.store.run_store import RunStore

from .as_stored import stored_value
from .axis_names import axis_title
from .collect import FAMILY, Edition, Experiment, Family, collect, family_of, frame_of_runs, label_text, shared_versions
from .formats import TextCell, TextTable, count_cell, plus_minus
from .metrics import metric_named
from .statistics import Estimate, estimate

MOST_ROWS = 20


@dataclass(frozen=True)
class BestTrials:
    """The best trials. `estimates[i][j]` is mean and standard deviation over seeds of objective j of trial i."""

    name: str
    objectives: tuple[str, ...]
    parameters: tuple[str, ...]
    trials: tuple[TrialRecord, ...]
    estimates: tuple[tuple[Estimate, ...], ...]


def collect_with_searches(
    spaces: Sequence[SearchSpace],
    store: RunStore,
    data_hashes: Collection[str] = (),
    keep_axes: Iterable[str] = (),
    runs: pd.DataFrame | None = None,
) -> list[tuple[Experiment, StudyRecord | None]]:
    """Extend `collect` to searches: return the experiment of each space and, for a search, its study if it exists.

    Raises:
        UsageError: a data hash matches no edition, or a study was created from another definition.
    """
    runs = store.read("runs") if runs is None else runs
    grids = iter(collect([space for space in spaces if space.search is None], runs, data_hashes, keep_axes))
    rows = runs.set_index("run_id", drop=False)
    found: list[tuple[Experiment, StudyRecord | None]] = []
    for space in spaces:
        if space.search is None:
            found.append((next(grids), None))
            continue
        from clops_sweep.search.trials import read_study  # importing Optuna is slow

        study = read_study(space, store)
        record = study or StudyRecord(space.name, space.search.objectives, (), is_phase=space.is_phase)
        found.append((search_experiment(record, rows), study))
    return found


def tuning_experiments(store: RunStore, runs: pd.DataFrame) -> list[tuple[Experiment, StudyRecord]]:
    """Return the trials of every search of a store that only chooses configurations, each with its study.

    Args:
        store: the store.
        runs: its table `runs`.

    Raises:
        UsageError: the file of the studies is damaged.
    """
    if studies_of(store) is None:
        return []
    from clops_sweep.search.trials import read_studies  # importing Optuna is slow

    rows = runs.set_index("run_id", drop=False)
    found = [(search_experiment(record, rows), record) for record in read_studies(store) if record.is_phase]
    return [(experiment, record) for experiment, record in found if experiment.cells]


def search_experiment(record: StudyRecord, rows: pd.DataFrame) -> Experiment:
    """Return the trials of a search as the cells of an experiment.

    Trials with equal parameters are one cell. Runs that are not in the store do not count as requested.

    Args:
        record: the study of the search.
        rows: the store's table `runs`, by run id.
    """
    requests: dict[str, RunRequest] = {}
    names = dict.fromkeys(name for trial in record.trials for name in trial.labels)
    for trial in record.trials:
        labels = {name: trial.labels.get(name) for name in names}
        for run_id in trial.run_ids:
            if run_id in rows.index:
                row = rows.loc[run_id]
                fields = {name: _of_field(name, row[name]) for name in RunConfig.model_fields}
                options = {name: stored_value(row[name]) for name in OPTIONS if name in row}
                fields |= {name: value for name, value in options.items() if value is not None}
                config = RunConfig.model_construct(None, **fields)  # as stored
                requests.setdefault(run_id, RunRequest(config, record.name, labels, config))
    axes: dict[str, tuple[Any, ...]] = {}
    for name in names:
        labels = {repr(it.labels[name]): it.labels[name] for it in requests.values()}
        numbers = all(isinstance(label, int | float) for label in labels.values())
        axes[name] = tuple(sorted(labels.values(), key=None if numbers else str))
    cells, frame = frame_of_runs(axes, list(requests.values()), list(requests), rows)
    return Experiment(record.name, axes, cells, frame, _editions(frame), is_tuning=record.is_phase)


def _of_field(name: str, stored: Any) -> Any:
    value = stored_value(stored)
    return int(value) if CONFIG.get(name) is int and value is not None else value  # pandas has whole numbers as floats


def best_trials(record: StudyRecord, experiment: Experiment) -> BestTrials:
    """Return up to 20 of the best trials; with several objectives, the Pareto front, sorted by the first objective."""
    direction = next(iter(record.objectives.values()))
    sign = -1.0 if direction == "maximize" else 1.0
    competing = record.of("complete") if len(record.objectives) == 1 else record.best
    chosen = sorted(competing, key=lambda trial: sign * (trial.values or (np.nan,))[0])[:MOST_ROWS]
    runs = experiment.runs.set_index("run_id")
    estimates = tuple(
        tuple(estimate(runs[name].reindex(list(trial.run_ids)).to_numpy(dtype=float)) for name in record.objectives)
        for trial in chosen
    )
    return BestTrials(record.name, tuple(record.objectives), tuple(experiment.axes), tuple(chosen), estimates)


def best_trials_text(
    table: BestTrials, record: StudyRecord, name: str, title: str, notes: Sequence[str] = ()
) -> TextTable:
    """Return the best trials as a table; its data has all trials of the record."""
    header = ("trial", *map(axis_title, table.parameters), "runs", *(metric_named(o).plain for o in table.objectives))
    rows = tuple(
        (
            TextCell(str(trial.number), float(trial.number)),
            *(_label_cell(trial.labels[parameter]) for parameter in table.parameters),
            count_cell(estimates[0].n),
            *(TextCell(plus_minus(value.mean, value.sd), value.mean) for value in estimates),
        )
        for trial, estimates in zip(table.trials, table.estimates, strict=True)
    )
    data = _trials(record, table.parameters)
    return TextTable(name, title, header, rows, 1 + len(table.parameters), (), tuple(notes), data)


def _trials(record: StudyRecord, parameters: Sequence[str]) -> pd.DataFrame:
    tasks = sorted({task for trial in record.trials for task in trial.intermediate})
    names = [*(f"mean_{name}" for name in record.objectives), *(f"auc_after_{task}_tasks" for task in tasks)]
    rows: list[tuple[object, ...]] = []
    for trial in record.trials:
        labels = (trial.labels.get(name, "") for name in parameters)
        exact = (it if isinstance(it, int | float | str) else label_text(it) for it in labels)
        numbers = (*(trial.values or [None] * len(record.objectives)), *map(trial.intermediate.get, tasks))
        rows.append((trial.number, trial.state, *exact, *numbers, " ".join(trial.run_ids), trial.error or ""))
    columns = ["trial", "state", *parameters, *names, "run_ids", "error"]
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
    ordered = sorted(counts, key=lambda edition: (edition[0].sort_key, *edition[1:]))
    return tuple(
        Edition(family.scenario, family.data, data_hash, version, counts[family, data_hash, version])
        for family, data_hash, version in ordered
    )


def _label_cell(label: Any) -> TextCell:
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    text = f"{label:.3g}" if isinstance(label, float) else label_text(label)
    return TextCell(text, float(label) if is_number else text)
