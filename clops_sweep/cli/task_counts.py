"""Output on the tasks of the requested runs: frames and people of each in training, validation and test."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.plain_table import TERMINAL, print_table
from clops_sweep.data.files.folder import is_file
from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.freshness import changes_in_words, prepared_for
from clops_sweep.data.prepared.manifest import MANIFEST
from clops_sweep.data.preparing.still_equal import current_set
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import several, shown

if TYPE_CHECKING:
    from clops_sweep.data.prepared.counts import Row
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.planning.task_tables import TaskTable

_MOST_TASKS = 8
"""Tasks of a table with a row each; of more, the table has the ranges."""

_MOST_TABLES = 4


def say_tasks(tables: Sequence[TaskTable]) -> None:
    """Print a table of tasks for each data set and scenario, if it is prepared."""
    prepared = [table for table in tables if table.rows is not None]
    for table in prepared[:_MOST_TABLES]:
        rows = table.rows or []
        unit = "frames (people)" if all(people is not None for row in rows for people in row.patients) else "frames"
        click.echo(f"tasks of {table.title}: {unit}")
        print_table(("task", *SPLIT_NAMES), _texts(rows), wrapped=("task",), numbers=SPLIT_NAMES, width=TERMINAL)
    if len(prepared) > _MOST_TABLES:
        click.echo(f"and {several(len(prepared) - _MOST_TABLES, 'table')} more of tasks; plan --json has all")


def unchecked(tables: Iterable[TaskTable], data: PreparedData, checked: Collection[str]) -> list[str]:
    """Return sentences on what of data sets is not checked before they are prepared, with the commands for it.

    Args:
        tables: the tables of tasks.
        data: the prepared data.
        checked: data sets that were checked although they are not prepared.
    """
    sentences = []
    unknown: dict[str, list[TaskTable]] = {}
    for table in tables:
        if table.rows is None:
            unknown.setdefault(table.dataset, []).append(table)
    for name, of_name in unknown.items():
        if current_set(name, data.root, data.source) is not None:
            continue
        if is_file(data.root / name / MANIFEST):
            changed = data.changes(name)
            which = f" ({changes_in_words(changed)})" if changed else ""
            is_code = any(change.is_code for change in changed)
            once = "; declare a data set once, in a module that your files import" if is_code else ""
            other = data.other_project(name)
            sentences.append(
                f"frames of {name} were prepared before its code or files changed{which}: runs that are finished count "
                f"as pending until they are prepared again{once if other is None else f'; they {prepared_for(other)}'}"
            )
        if name in checked:
            continue
        prepare = data_command("prepare", name, prepared_root=data.root, data_root=data.source)
        sentences.append(
            f"not checked before the frames of {name} are prepared: {', '.join(_to_check(of_name))}; a launch prepares "
            f"and checks them first, or now: {prepare}"
        )
    return sentences


def _to_check(tables: Iterable[TaskTable]) -> list[str]:
    """Return what the tasks of a data set need of its frames."""
    parts = ["labels", "people", "tasks"]
    for table in tables:
        if table.domain is not None:
            parts.append(f"domain {shown(table.domain)}")
        if table.stratify is not None:
            parts.append(f"stratify {shown(table.stratify)}")
        if table.split is not None:
            parts.append(f"{fold_of(table.split)[1]} folds")
    return list(dict.fromkeys(parts))


def tasks_as_data(tables: Iterable[TaskTable]) -> list[dict[str, Any]]:
    """Return the tables as data; `tasks` is None if the data are not prepared on this machine."""
    as_data = []
    for table in tables:
        facts = dict(vars(table))
        rows = facts.pop("rows")
        as_data.append(facts | {"tasks": None if rows is None else rows_as_data(rows)})
    return as_data


def rows_as_data(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return a table of counts by split as data."""
    return list(map(_row_as_data, rows))


def _row_as_data(row: Row) -> dict[str, Any]:
    counts = {"frames": row.frames, "patients": row.patients}
    return {"name": row.name} | {name: dict(zip(SPLIT_NAMES, of, strict=True)) for name, of in counts.items()}


def _texts(rows: Sequence[Row]) -> list[list[str]]:
    """Return the cells of a table of tasks: a row for each, or one with the ranges of many."""
    if len(rows) <= _MOST_TASKS:
        return [_line(row.name, [row]) for row in rows]
    return [_line(f"each of {len(rows)} tasks, {rows[0].name} to {rows[-1].name}", rows)]


def _line(name: str, rows: Sequence[Row]) -> list[str]:
    return [name, *(_cell(rows, part) for part in range(len(SPLIT_NAMES)))]


def _cell(rows: Sequence[Row], part: int) -> str:
    """Return the frames and people of some tasks in one part of the split, as ranges if they differ."""
    frames = _span([row.frames[part] for row in rows])
    people = [count for row in rows if (count := row.patients[part]) is not None]
    return f"{frames} ({_span(people)})" if people else frames


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
