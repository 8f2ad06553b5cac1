"""The page of one run: curves, measures by split, cost, settings and log."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.columns import config_columns
from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.fields import REPLICATES, data_key_of_row
from clops_sweep.experiment.metrics import SPLIT_TITLES, Metric, Split, without_split
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.spaces.started_sweeps import MAIN_GUARD, line_that_sweeps
from clops_sweep.store.commands import rerun_command, store_command
from clops_sweep.store.launch_folders import plugin_files_to_name, prepared_root_to_name
from clops_sweep.store.launches import UnderWay
from clops_sweep.store.rows import reason_of
from clops_sweep.store.run_logs import EpochScores
from clops_sweep.store.run_store import RunStore

from ..as_stored import stored_value
from ..collect import Experiment, label_text
from ..formats import DASH, duration
from ..metrics import metric_named
from ..report.planned import PlannedSection
from ..runs_of_folds import runs_to_pool
from ..selection import cell_name
from ..stages import has_update
from .chart_parts import Chart
from .curve_charts import task_curves
from .methods import method_name, runs_query
from .overview import statuses
from .run_log import RunLog, run_log
from .runs import run_names
from .snapshot import Snapshot
from .task_scores import TaskScores, task_scores
from .units import split_names
from .update_reports import WrittenReport, all_reports, commands_for, reports_of


def newest_run(snapshot: Snapshot) -> str:
    """Return the run to show first: a running one, else the last that failed, else the last that ended."""
    if snapshot.under_way:
        return snapshot.under_way[0].run_id
    failed = snapshot.runs[snapshot.runs["status"] == "failed"]
    among = failed if len(failed) else snapshot.runs
    return str(among.sort_values("started_at", na_position="first")["run_id"].iloc[-1]) if len(among) else ""


def run_named(prefix: str, snapshot: Snapshot) -> str:
    """Return the id of the run that a prefix names; empty if no run or several begin with it."""
    known = {str(run) for run in snapshot.runs.index} | {running.run_id for running in snapshot.under_way}
    for section in snapshot.sections.values():
        known.update(map(str, section.experiment.runs["run_id"]))
    if prefix in known:
        return prefix
    beginning = [run for run in known if run.startswith(prefix)]
    return beginning[0] if len(beginning) == 1 else ""


def run_page(
    run: str, snapshot: Snapshot, store: RunStore, data: PreparedData | None = None, of_dashboard: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the variables of the page of a run.

    Args:
        run: its id.
        snapshot: the store at one moment.
        store: the store.
        data: the prepared data sets, for the commands of update reports.
        of_dashboard: the search-space files of the dashboard.
    """
    under_way = next((it for it in snapshot.under_way if run == it.run_id), None)
    row = snapshot.runs.loc[run].to_dict() if run in snapshot.runs.index else {}
    name, section = _home(snapshot, run, under_way.name if under_way else run)
    settings = {it: stored_value(row[it]) for it in config_columns(map(str, row)) if it in row and it != "run_id"}
    headline, other_measures, costs = _measured(section, row)
    error = row.get("error")
    log = run_log(store, run)
    is_finished = row.get("status") == "finished"
    chart = _curves(store, section, run, is_finished, log)
    rerun = ""
    files: tuple[str, ...] = ()
    if row:
        files = plugin_files_to_name(store, row.get("plugins"), anywhere=True)
        rerun = rerun_command(run, store.files.anywhere, plugins=files, prepared_root=prepared_root_to_name(store))
    reports = UpdateReports()
    if is_finished:
        reports = snapshot.once(f"update reports of {run}", partial(_update_reports, store, run, data, of_dashboard))
    return {
        "experiment": section.experiment.name if section is not None else "",
        "others": _others(snapshot, run, section),
        "left_aside": _left_aside(snapshot, run) if section is None else None,
        "is_tuning": section is not None and section.experiment.is_tuning,
        "configuration": _configuration(section, run, snapshot.running),
        "by_task": _by_task(store, section, run) if is_finished and section is not None else [],
        "reason": one_line(reason_of({str(name): value for name, value in row.items()}))
        if isinstance(error, str)
        else "",
        "guards": guards_needed(files),
        "run": run,
        "title": _title(section, run, name),
        "status": row.get("status") or ("running" if under_way else "missing"),
        "under_way": on_its_way(snapshot, under_way) if under_way else None,
        "settings": _settings(section, run, settings),
        "headline": headline,
        "other_measures": other_measures,
        "costs": costs,
        "error": error if isinstance(error, str) else "",
        "curves": json.dumps(chart) if chart is not None else "",
        "log": log,
        "update_reports": reports_of(store, run, reports.first_of_folds),
        "update_commands": reports.commands,
        "logs": store_command(store.files.anywhere, "logs", run),
        "rerun": rerun,
    }


@dataclass(frozen=True)
class UpdateReports:
    """The update reports that a run can have: commands, each with what it is about, and the run of fold 1."""

    commands: tuple[tuple[str, str], ...] = ()
    first_of_folds: str = ""


def _update_reports(
    store: RunStore, run: str, data: PreparedData | None, files: Sequence[str], snapshot: Snapshot
) -> UpdateReports:
    """Return the update reports that a finished run can have."""
    row = snapshot.runs.loc[run].to_dict()
    of_folds = runs_to_pool(store, row, data)
    commands = commands_for(store, row, data, files, of_folds)
    return UpdateReports(tuple(commands), of_folds[0] if of_folds else "")


@dataclass(frozen=True)
class Configuration:
    """The configuration of a run: its name, the address of its runs, and id, name and status of each of them."""

    name: str
    address: str
    runs: tuple[tuple[str, str, str], ...]


def _configuration(section: PlannedSection | None, run: str, running: frozenset[str]) -> Configuration | None:
    """Return the configuration of a run; None without an experiment.

    Args:
        section: the experiment.
        run: id of the run.
        running: ids of the running runs.
    """
    if section is None:
        return None
    experiment = section.experiment
    cell = cell_of(experiment, run)
    rows = experiment.runs[experiment.runs["cell"] == cell].sort_values(list(REPLICATES))
    split_of = split_names({split for split, _ in experiment.replicates})
    names = []
    for split, seed in experiment.replicates_of(rows):
        names.append(f"{split_of[split]}, seed {seed}" if len(split_of) > 1 else f"seed {seed}")
    address = f"/runs?{urlencode(runs_query(experiment, experiment.cells[cell]))}"
    runs = zip(rows["run_id"].tolist(), names, statuses(rows, running).tolist(), strict=True)
    return Configuration(method_name(experiment, experiment.cells[cell]), address, tuple(runs))


def _title(section: PlannedSection | None, run: str, name: str) -> str:
    """Return the title of the page of a run: its configuration, patient split and seed, each once."""
    if section is None:
        return name
    experiment = section.experiment
    cell = experiment.cells[cell_of(experiment, run)]
    configuration = method_name(experiment, cell)
    replicate = name.removeprefix(cell_name(cell)).removeprefix(", ")
    return name if configuration in name else f"{configuration}, {replicate}"


@dataclass(frozen=True)
class Settings:
    """The settings of a run as texts, by name.

    Attributes:
        varied: those in which runs of its experiment differ.
        chosen: of the others, those that are not at their defaults, and what it is a run of.
        defaults: those at their defaults, which may depend on the others.
    """

    varied: Mapping[str, str]
    chosen: Mapping[str, str]
    defaults: Mapping[str, str]


_ALWAYS = ("dataset", "scenario", "network", "strategy")
"""Settings that say what a run is of: they are not folded."""


def _settings(section: PlannedSection | None, run: str, values: Mapping[str, Any]) -> Settings:
    """Return the settings of a run, given by name; without an experiment, no default is known."""
    names_varied = _varied(section)
    config = None
    if section is not None:
        config = section.experiment.cells[cell_of(section.experiment, run)].config
    varied: dict[str, str] = {}
    chosen: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for name, value in values.items():
        if value is None:
            continue
        if name in names_varied:
            group = varied
        elif config is None or name in _ALWAYS or not _is_default(config, name):
            group = chosen
        else:
            group = defaults
        group[name] = label_text(value)
    return Settings(varied, chosen, defaults)


def _is_default(config: RunConfig, name: str) -> bool:
    """Return whether a field or option is at its default; False if that is not known."""
    if name not in RunConfig.model_fields and name not in OPTIONS:
        return False
    try:
        return bool(config.get(name) == config.default_of(name))
    except (UsageError, LookupError, AttributeError, TypeError, ValueError):  # of a stored config that is not valid
        return False


def _varied(section: PlannedSection | None) -> list[str]:
    """Return the settings in which runs of the experiment differ."""
    if section is None:
        return []
    configs = [cell.config for cell in section.experiment.cells]
    varied = [name for name in names_of(configs) if any(config.get(name) != configs[0].get(name) for config in configs)]
    runs = section.experiment.runs
    drawn = [name for name in REPLICATES if name in runs and len(runs[name].unique()) > 1]
    return [*varied, *drawn]


def cell_of(experiment: Experiment, run: str) -> int:
    """Return the cell of a run of an experiment."""
    return int(experiment.runs["cell"][experiment.runs["run_id"] == run].iloc[0])


def _by_task(store: RunStore, section: PlannedSection, run: str) -> list[TaskScores]:
    """Return the scores of a finished run by task."""
    experiment = section.experiment
    rows = section.titles.named(store.read("r_matrix", [run]), experiment, cell_of(experiment, run))
    return task_scores(rows, experiment.measure)


def guards_needed(files: Sequence[str]) -> list[str]:
    """Return sentences on files that a command would execute and that start a sweep."""
    sentences = []
    for file in files:
        line = line_that_sweeps(Path(file))
        if line is not None:
            sentences.append(
                f"First put sweep() in line {line} of {file} under {MAIN_GUARD} The command executes the file."
            )
    return sentences


def on_its_way(snapshot: Snapshot, running: UnderWay) -> dict[str, Any]:
    """Describe a running run, by its name in the experiment."""
    name, section = _home(snapshot, running.run_id, running.name)
    described: dict[str, Any] = {
        "name": name,
        "experiment": DASH if section is None else section.experiment.name,
        "run": running.run_id,
        "task": "starting",
        "epoch": DASH,
        "share": 0.0,
        "left": _left(running.ends_at - time.time()) if running.ends_at else DASH,
    }
    progress = running.progress
    if progress is not None:
        described["task"] = f"{progress.task} of {progress.tasks}"
        described["epoch"] = f"{progress.epoch} of {progress.epochs}"
        described["share"] = progress.share
    return described


def reports_in_words(snapshot: Snapshot, store: RunStore) -> list[tuple[str, str, WrittenReport]]:
    """Return the update reports on runs that are shown, the newest first, with the names of run and experiment.

    Those on runs that are left aside follow, each with the reason.
    """
    described = []
    left_aside = []
    for report in all_reports(store):
        name, section = _home(snapshot, report.run_id, report.run_id)
        if section is not None:
            described.append((name, section.experiment.name, report))
            continue
        aside = _left_aside(snapshot, report.run_id)
        if aside is not None:
            left_aside.append((aside.name, f"{aside.experiment}, on {aside.edition}", report))
    return [*described, *left_aside]


@dataclass(frozen=True)
class LeftAside:
    """A run that is left aside, because its experiment is shown on another edition of the data.

    Attributes:
        name: its strategy and seed.
        experiment: name of the experiment.
        edition: what it was computed on, in words.
    """

    name: str
    experiment: str
    edition: str


def _left_aside(snapshot: Snapshot, run: str) -> LeftAside | None:
    """Return why a stored run belongs to no experiment; None if it is not of the data of any."""
    if run not in snapshot.runs.index:
        return None
    row = {str(name): value for name, value in snapshot.runs.loc[run].to_dict().items()}
    data = data_key_of_row(row)
    for name, section in snapshot.sections.items():
        editions = (*section.experiment.shown, *section.experiment.left_aside)
        if not any(edition.scenario == row["scenario"] and edition.data == data for edition in editions):
            continue
        name_of_run = f"{row['strategy']}, seed {row['seed']}"
        if row["data_hash"] not in {edition.data_hash for edition in section.experiment.shown}:
            return LeftAside(name_of_run, name, "another edition of the data")
        if row["data_hash"] in {edition.data_hash for edition in section.experiment.left_aside}:
            return LeftAside(name_of_run, name, "another semantics version")
    return None


def run_to_report(snapshot: Snapshot, store: RunStore) -> str:
    """Return the id of a finished run of a reporting experiment that can have an update report; empty without one."""
    for section in snapshot.sections.values():
        runs = section.experiment.runs
        if section.experiment.is_tuning:
            continue
        for run in map(str, runs.loc[runs["status"] == "finished", "run_id"]):
            if run in snapshot.predicted:
                if has_update(store, run):
                    return run
                break
    return ""


def _home(snapshot: Snapshot, run: str, otherwise: str) -> tuple[str, PlannedSection | None]:
    """Return the name of a run, and the section of its experiment."""
    for section in snapshot.sections.values():
        runs = section.experiment.runs
        found = runs[runs["run_id"] == run]
        if len(found):
            return run_names(section.experiment, found)[0], section
    return otherwise, None


def _others(snapshot: Snapshot, run: str, home: PlannedSection | None) -> list[str]:
    """Return the names of further experiments that a run belongs to."""
    names = []
    for name, section in snapshot.sections.items():
        if section is not home and (section.experiment.runs["run_id"] == run).any():
            names.append(name)
    return names


MeasureTable = tuple[list[str], list[tuple[str, list[str]]]]
"""Titles of the splits; then for each measure its name and its value on each split."""


def _measured(
    section: PlannedSection | None, row: Mapping[Any, Any]
) -> tuple[MeasureTable, MeasureTable, dict[str, str]]:
    """Return what a run has measured: headline metrics by split, the other metrics by split, and the rest by name."""
    headline: dict[str, dict[Split, str]] = {}
    others: dict[str, dict[Split, str]] = {}
    costs: dict[str, str] = {}
    if section is None:
        return _by_split(headline), _by_split(others), costs
    experiment = section.experiment
    leading = {without_split(name) for name in experiment.headline}
    for column in experiment.measured:
        metric, value = metric_named(column), row.get(column)
        if value is None or pd.isna(value):
            continue
        if metric.split is None:
            costs[metric.plain] = metric.text(float(value))
            continue
        base = without_split(column)
        values = headline if base in leading else others
        values.setdefault(base, {})[metric.split] = metric.text(float(value))
    return _by_split(headline), _by_split(others), costs


def _by_split(values: dict[str, dict[Split, str]]) -> MeasureTable:
    splits = [split for split in SPLIT_TITLES if any(split in of_split for of_split in values.values())]
    rows = []
    for base, of_split in values.items():
        rows.append((_plain(metric_named(base)), [of_split.get(split, DASH) for split in splits]))
    return [SPLIT_TITLES[split] for split in splits], rows


def _plain(metric: Metric) -> str:
    """Return the name of a metric with a capital."""
    return metric.plain[0].upper() + metric.plain[1:]


def _curves(store: RunStore, section: PlannedSection | None, run: str, is_stored: bool, log: RunLog) -> Chart | None:
    """Return the learning curves of a run: those in the store, or until then those in its log."""
    split = "validation"
    if is_stored and section is not None:
        experiment = section.experiment
        rows = section.titles.named(store.read("curves", [run]), experiment, cell_of(experiment, run))
        measure = experiment.measure
        split = "test" if experiment.on_test else "validation"
    else:
        measure = log.scores[-1].measure if log.scores else ""
        rows = _logged_curves(log.scores)
    if rows.empty or measure not in rows:
        return None
    return task_curves(rows, measure, split)


def _logged_curves(scores: Sequence[EpochScores]) -> pd.DataFrame:
    """Return the scores in the log of a run as rows of the table `curves`."""
    rows = []
    for after in scores:
        for task, value in after.values.items():
            rows.append(
                {
                    "epoch": after.progress.step,
                    "training_task": after.progress.task_name,
                    "task": task,
                    after.measure: value,
                }
            )
    return pd.DataFrame(rows)


def _left(seconds: float) -> str:
    """Format a time until an expected end, which may have passed."""
    return duration(seconds) if seconds > 0 else "longer than expected"
