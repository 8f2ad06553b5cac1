"""`clops-sweep runs`: lists the runs of a store, with the settings in which they differ and their scores."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from clops_sweep.cli.options import NotEmpty, NotEmptyPath, json_option, print_json, results_option
from clops_sweep.cli.plain_table import print_table
from clops_sweep.errors import UsageError, nearest, several, shown
from clops_sweep.experiment.columns import CONFIG
from clops_sweep.experiment.fields import REPLICATES, is_missing
from clops_sweep.experiment.metrics import metric_named
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.spaces.axes import number_in_words
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.search.roles import tuning_runs
from clops_sweep.store.rows import printable, shortest
from clops_sweep.store.run_store import RunStore

_ROWS = 20
_SHORT_HASH = 12

EDITION = ("semantics_version", "data_hash")
"""Columns that are part of a run id beside the settings."""

TASKS = "tasks"
"""The column of names of tasks."""

_PREPARED = "prepared_hash"
_HASHES = (_PREPARED, "data_hash")

Row = Mapping[str, Any]
Tasks = Mapping[str, tuple[str, ...]]


@click.command()
@click.argument("files", metavar="[SPACE.py ...]", nargs=-1, type=NotEmptyPath())
@results_option
@click.option(
    "--where",
    type=NotEmpty(),
    metavar="EXPRESSION",
    help="Only runs that meet a condition on columns of the table runs, such as \"strategy == 'er' and seed == 0\".",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    help="A column of the table runs, best or lowest first; -COLUMN reverses. By default the first headline metric.",
)
@click.option("--limit", type=click.IntRange(min=1), default=_ROWS, show_default=True, help="Print at most this many.")
@click.option("--tuning", is_flag=True, help="List the trials that chose a configuration, instead of the other runs.")
@json_option
def runs(
    files: tuple[Path, ...],
    results: str,
    where: str | None,
    sort: str | None,
    limit: int,
    tuning: bool,
    as_json: bool,
) -> None:
    """List the runs of a store: their ids, the settings in which they differ, and their scores.

    With search-space files, only their runs.
    """
    store = RunStore.named(results)
    store.files.check_is_there()
    run_ids, left_aside = _runs_of_files(files, store) if files else (None, "")
    listed = _list_runs(store, run_ids=run_ids, where=where, sort=sort, tuning=tuning)
    rows = listed.first(limit)
    tasks = _tasks_of(store, rows)
    if left_aside:
        click.echo(f"{left_aside}; list the runs of all editions with: {store.command('runs')}", err=True)
    if as_json:
        as_data = [_as_data(row, listed, tasks) for row in rows]
        print_json({"results": store.files.shown, "matched": len(listed), "runs": as_data})
    else:
        _say(store, listed, rows, tasks)


@dataclass(frozen=True)
class ListedRuns:
    """Runs to list.

    Attributes:
        table: rows of the table `runs`.
        order: positions of the rows in the order of the list.
        settings: the config fields and options in which they differ, patient splits and seeds last; then, if runs have
            equal ones, what else is part of a run id; and the edition of the data, if they are of several.
        scores: the headline metrics of their scenarios; by default the first one sorts the runs.
        column: the column that sorts them, with a leading minus if reversed.
        left_out: number of runs of the other kind: trials that chose a configuration, or all others.
        of_tuning: whether the listed runs are trials that chose a configuration.
    """

    table: pa.Table
    order: Sequence[int]
    settings: tuple[str, ...]
    scores: tuple[str, ...]
    column: str
    left_out: int
    of_tuning: bool

    def __len__(self) -> int:
        return len(self.order)

    def first(self, count: int) -> list[Row]:
        """Return the first rows of the list."""
        rows: list[Row] = self.table.take(pa.array(self.order[:count], pa.int64())).to_pylist()
        return rows

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return _values(self.table, "status").count("failed")


def _runs_of_files(files: Sequence[Path], store: RunStore) -> tuple[set[str], str]:
    """Return the ids of the stored runs of search-space files, and a sentence on those that are left aside.

    Those of tuning are included.
    """
    from clops_sweep.analysis.tables.scores import run_ids_of
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.experiment.spaces.selection import Selection
    from clops_sweep.learning.encoders.encoders import Encoders
    from clops_sweep.planning.changes import changed_data, changes
    from clops_sweep.planning.request import Request
    from clops_sweep.planning.state import State

    data = PreparedData.found(None, None, Encoders(store.models.read, None))
    state = State.of(Request(Selection.of_files(files), data, store))
    for sentence in (
        *changed_data(state.resolved),
        *changes(state),
    ):  # such as files that changed, so that stored runs do not count
        click.echo(f"clops-sweep: {sentence}", err=True)
    run_ids, left_aside = run_ids_of(state)
    return set(run_ids), left_aside


def _tasks_of(store: RunStore, rows: Sequence[Row]) -> Tasks:
    """Return the names of the tasks of each finished run, in the order of training."""
    finished = [str(row["run_id"]) for row in rows if row["status"] == "finished"]
    by_place: dict[str, dict[int, str]] = {}
    for row in store.rows("r_matrix", ["run_id", "evaluated_on", "task"], finished) if finished else ():
        if row["evaluated_on"] > 0:  # 0: people in no task
            by_place.setdefault(row["run_id"], {})[row["evaluated_on"]] = row["task"]
    tasks = {}
    for run_id, of_run in by_place.items():
        tasks[run_id] = tuple(name for _, name in sorted(of_run.items()))
    return tasks


def _list_runs(
    store: RunStore,
    *,
    run_ids: Collection[str] | None = None,
    where: str | None = None,
    sort: str | None = None,
    tuning: bool = False,
) -> ListedRuns:
    """Return the runs to list. Failed runs come last.

    Args:
        store: the store.
        run_ids: the runs among which to list; by default all.
        where: a condition on columns of the table `runs`.
        sort: a column to sort by, with a leading minus to reverse; by default the first headline metric.
        tuning: whether to list the trials that chose a configuration instead of all other runs.

    Raises:
        UsageError: the condition is invalid, or it or `sort` names an unknown column.
    """
    columns = store.columns()
    holds = None if where is None else Where(where, columns)
    of_tuning = tuning_runs(store)
    matching = store.table("runs")
    if run_ids is not None:
        is_asked = [run_id in run_ids for run_id in _values(matching, "run_id")]
        matching = matching.filter(pa.array(is_asked, pa.bool_()))
    if holds is not None:
        rows = (row for batch in matching.to_batches() for row in batch.to_pylist())
        matching = matching.filter(pa.array((bool(holds(row)) for row in rows), pa.bool_()))
    table = matching
    if of_tuning or tuning:
        is_listed = [(run_id in of_tuning) == tuning for run_id in _values(matching, "run_id")]
        table = matching.filter(pa.array(is_listed, pa.bool_()))
    scores = _scores(table)
    differ = [name for name in columns if _differs(name, table)]
    differ.sort(key=lambda name: REPLICATES.index(name) if name in REPLICATES else -1)
    differ += _editions(table, differ)
    column = sort or (scores[0] if scores else "run_id")
    if column.removeprefix("-") not in columns:
        raise UsageError(
            f"--sort {shown(column)}: there is no such column in runs{nearest(column, dict.fromkeys(columns))}"
        )
    left_out = len(matching) - len(table)
    return ListedRuns(table, _order(table, column), tuple(differ), scores, column, left_out, tuning)


def _values(table: pa.Table, column: str) -> list[Any]:
    """Return the values of a column."""
    values: list[Any] = table[column].to_pylist()
    return values


def _scores(table: pa.Table) -> tuple[str, ...]:
    """Return the headline metrics of the runs' scenarios: of validation people, which sort them, then of test people.

    Of BWT or forgetting, the one of test people is enough. Without a validation set, all are of test people.
    """
    import pyarrow.compute as pc  # slow, and not needed by other commands

    names: dict[str, None] = {}
    is_finished = pc.equal(table["status"], "finished")
    for scenario in dict.fromkeys(_values(table, "scenario")):
        metrics = headline(scenario)[:2]
        of_scenario = pc.and_(is_finished, pc.equal(table["scenario"], scenario))
        values = table[metrics[0]].filter(of_scenario).to_pylist()
        is_test = len(values) > 0 and all(is_missing(value) for value in values)
        if not is_test:
            names[metrics[0]] = None
        for metric in metrics:
            names[f"test_{metric}"] = None
    return tuple(names)


def _differs(name: str, table: pa.Table) -> bool:
    """Return whether a column is a setting of which the runs have several values.

    An option counts only in the runs that use it: others differ in the method that has it.
    """
    if name not in CONFIG and name not in OPTIONS:
        return False
    values = {_comparable(value) for value in table[name].unique().to_pylist()}
    if name in OPTIONS:
        values.discard(None)
    return len(values) > 1


def _editions(table: pa.Table, settings: Sequence[str]) -> list[str]:
    """Return the columns beside the settings that tell runs with equal settings apart, and editions of the data."""
    if _has_several_preparations(table):
        settings = [*settings, _PREPARED]
    seen: dict[tuple[Any, ...], Row] = {}
    differ = dict.fromkeys(EDITION, False)
    for row in table.select([*settings, *EDITION]).to_pylist():
        first = seen.setdefault(tuple(_comparable(row[name]) for name in settings), row)
        for name in EDITION:
            differ[name] |= row[name] != first[name]
    return [name for name in (*settings, *EDITION) if name == _PREPARED or differ.get(name)]


def _has_several_preparations(table: pa.Table) -> bool:
    """Return whether runs of one data set are of several editions of it."""
    known: dict[str, str] = {}
    for row in table.select(["dataset", _PREPARED]).to_pylist():
        if row[_PREPARED] is not None and known.setdefault(row["dataset"], row[_PREPARED]) != row[_PREPARED]:
            return True
    return False


def _comparable(value: Any) -> Any:
    return None if is_missing(value) else value


def _order(table: pa.Table, sort: str) -> list[int]:
    """Return positions of rows: the best values first, then missing values, then failed runs; ties by run id."""
    column = sort.removeprefix("-")
    highest_first = metric_named(column).better == "higher"
    if sort.startswith("-"):
        highest_first = not highest_first
    values, statuses, ids = _values(table, column), _values(table, "status"), _values(table, "run_id")
    by_id = sorted(range(len(ids)), key=lambda row: str(ids[row]))
    finished = [row for row in by_id if statuses[row] == "finished"]
    there = [row for row in finished if not is_missing(values[row])]
    missing = [row for row in finished if is_missing(values[row])]
    failed = [row for row in by_id if statuses[row] != "finished"]
    return [*sorted(there, key=lambda row: values[row], reverse=highest_first), *missing, *failed]


def _as_data(row: Row, listed: ListedRuns, tasks: Tasks) -> dict[str, Any]:
    return {
        "run_id": row["run_id"],
        "status": row["status"],
        "tasks": tasks.get(row["run_id"]),
        "settings": {name: _comparable(row[name]) for name in listed.settings},
        "scores": {name: _comparable(row[name]) for name in listed.scores},
        "seconds": _comparable(row["seconds"]),
    }


def _say(store: RunStore, listed: ListedRuns, rows: Sequence[Row], tasks: Tasks) -> None:
    """Print a table of the first runs, and the next commands."""
    failed = listed.failed
    if rows:
        _print_table(rows, listed, tasks)
    kind = "tuning run" if listed.of_tuning else "run"
    counted = several(len(listed), kind)
    shown_of = f"; --limit {len(listed)} prints all" if len(listed) > len(rows) else ""
    counted += f", {failed} failed" if failed else ""
    click.echo(f"{counted} in {store.files.shown}{_sorted_by(listed)}{shown_of}")
    if listed.left_out and not listed.of_tuning:
        click.echo(f"{several(listed.left_out, 'tuning run')} not listed; --tuning lists them")
    if rows:
        click.echo(f"print a run with: {store.command('show', 'RUN_ID')}")


def _sorted_by(listed: ListedRuns) -> str:
    """Return what sorts some runs, as the end of a sentence: the best of many test scores is partly luck."""
    if len(listed) < 2:
        return ""
    column = listed.column.removeprefix("-")
    split = metric_named(column).split
    of_people = f" of {split} people" if split is not None else ""
    return f", sorted by {column}{of_people}{', reversed' if column != listed.column else ''}"


def _print_table(rows: Sequence[Row], listed: ListedRuns, tasks: Tasks) -> None:
    """Print a row per run, with ids as short as `show` takes them.

    If the runs differ in their tasks or in the order of these, the tasks are named in the order of training.
    """
    digits = shortest(_values(listed.table, "run_id"))
    numbers = (*listed.scores, "seconds")
    texts = []
    names = list(listed.settings)
    if len(set(tasks.values())) > 1:
        names = [TASKS, *(name for name in names if name != "task_order")]
    for row in rows:
        settings = [printable(_setting(name, row, tasks)) for name in names]
        of_run = [_number(name, row[name]) for name in numbers]
        if row["status"] != "finished":
            of_run[0] = str(row["status"])
        texts.append([str(row["run_id"])[:digits], *settings, *of_run])
    print_table(("run_id", *names, *numbers), texts, wrapped=names, numbers=numbers)


def _setting(name: str, row: Row, tasks: Tasks) -> str:
    if name == TASKS:
        of_run = tasks.get(row["run_id"])
        return _in_words(row["task_order"]) if of_run is None else " > ".join(of_run)
    text = _in_words(row[name])
    return text[:_SHORT_HASH] if name in _HASHES else text


def _in_words(value: Any) -> str:
    if is_missing(value):
        return "-"
    return number_in_words(value, 6) if isinstance(value, float) else str(value)


def _number(name: str, value: Any) -> str:
    if is_missing(value) or not math.isfinite(value):
        return "-"
    return f"{value:.1f}" if name == "seconds" else f"{value:.3f}"
