"""How runs get into the store: finished ones with their tables, failed ones with their error. No torch, no Ray."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clops_sweep.errors import StoreError, UsageError, masked, one_line
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.experiment.provenance import plugins_of
from clops_sweep.store.part_names import Status
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName

if TYPE_CHECKING:
    from clops_sweep.learning.result import Columns, RunResult


_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION_GROUP = re.compile(r"^  \| ([\w.]*Group: .*)")
_LONGEST_REASON = 200


DataHash = Callable[[RunConfig], str | None]
Facts = Mapping[str, Any]


@contextmanager
def storing(store: RunStore) -> Iterator[None]:
    """Around all that is done with the store: tells what goes wrong with it from what goes wrong with a run."""
    if not store.is_there():
        raise StoreError(f"results {store.files.shown}: the folder has gone")
    try:
        yield
    except (OSError, UsageError) as error:
        raise StoreError(one_line(error)) from error


Runs = Mapping[str, RunConfig]
"""Runs that were computed together, by id."""


def record_result(store: RunStore, runs: Runs, result: RunResult, data_hash: DataHash, facts: Facts) -> None:
    """The tables of runs that have ended, one run at a time.

    Args:
        store: where to.
        runs: all that were computed together.
        result: what they gave.
        data_hash: content hash of the data that a config runs on.
        facts: versions and machine, for the `runs` table.

    Raises:
        StoreError: they could not be written; those before are.
    """
    for run_id in runs:
        columns = result.columns[run_id]
        measured = {name: value for name, (value,) in columns["runs"].items()}
        tables: dict[TableName, pa.Table] = {
            "runs": _runs_row(runs, run_id, data_hash, {**measured, **facts}, status="finished")
        }
        for table in EVERY_RUN[1:]:
            tables[table] = _table(table, columns[table])
        if len(columns["predictions"]["run_id"]):
            tables["predictions"] = _table("predictions", columns["predictions"])
        with storing(store):
            store.write_finished(run_id, tables, result.models.get(run_id, {}))


def record_failure(store: RunStore, runs: Runs, error: str, data_hash: DataHash, facts: Facts) -> None:
    """Failed runs as rows of the `runs` table, with the error that ended them.

    Args:
        store: where to.
        runs: all that were computed together.
        error: a traceback, or what is known about the death of a worker.
        data_hash: content hash of the data that a config runs on.
        facts: versions, and what else is known of machine and time, for the `runs` table.

    Raises:
        OSError, UsageError: they could not be written; see `storing`.
    """
    printed = masked(error.encode("utf-8", "backslashreplace").decode("utf-8"))
    for run_id in runs:
        store.write_failed(run_id, _runs_row(runs, run_id, data_hash, facts, status="failed", error=printed))


def _runs_row(
    runs: Runs, run_id: str, data_hash: DataHash, values: Facts, *, status: Status, error: str | None = None
) -> pa.Table:
    """The row of `runs` of one of some runs that were computed together."""
    row = {
        **config_row(runs[run_id]),
        **values,
        "run_id": run_id,
        "status": status,
        "error": error,
        "data_hash": data_hash(runs[run_id]),
        "semantics_version": SEMANTICS_VERSION,
        "lockstep": len(runs),
        "plugins": plugins_of(runs[run_id]),
    }
    schema = SCHEMAS["runs"]
    table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names}], schema=schema)
    for name in row.keys() - set(schema.names):  # what a strategy counts, and options of custom plug-ins
        if row[name] is not None:  # a column of nothing has no type that other runs could share
            table = table.append_column(name, pa.array([row[name]]))
    return table


def failure_reason(error: object) -> str:
    """What a traceback comes to, on a line: the exception and the first line of its message.

    Args:
        error: the column `error` of a failed run; nothing may be known.
    """
    lines = [line for line in error.splitlines() if line.strip()] if isinstance(error, str) else []
    heads = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    behind = lines[heads[-1] + 1 :] if heads else []
    groups = (found[1] for line in lines if (found := _EXCEPTION_GROUP.match(line)))
    exceptions = (line for line in behind if not line.startswith(" "))
    said = next(groups, None) or next(exceptions, None) or (lines[-1] if lines else "unknown error")
    said = printable(said.strip())
    return said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}…"


def printable(text: str) -> str:
    """A text without what a terminal would obey: control characters are shown as Python writes them."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _table(name: TableName, columns: Columns) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    for column in [column for column in columns if column not in schema.names]:  # of every output of the network
        table = table.append_column(column, pa.array(columns[column]))
    return table
