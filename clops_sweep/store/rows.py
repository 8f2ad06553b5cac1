"""Recording of finished runs with their tables, and of failed runs with their error. Imports neither torch nor Ray."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clops_sweep.errors import StoreError, UsageError, either, masked, one_line
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import unregistered
from clops_sweep.experiment.provenance import plugins_of
from clops_sweep.store.launch_folders import plugin_files_to_name
from clops_sweep.store.parts import Status
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName

if TYPE_CHECKING:
    from clops_sweep.learning.result import Columns, RunResult


_LONGEST_REASON = 200
_SHORTEST_ID = 8

DataHash = Callable[[RunConfig], str | None]
Facts = Mapping[str, Any]


@contextmanager
def storing(store: RunStore) -> Iterator[None]:
    """Convert errors in the block to `StoreError`, to tell them from errors of a run."""
    if not store.is_there():
        raise StoreError(f"results {store.files.shown}: the folder has gone")
    try:
        yield
    except (OSError, UsageError) as error:
        raise StoreError(one_line(error)) from error


Tables = Mapping[TableName, pa.Table]
"""The rows of one run by table; of a failed run only those of `runs`."""


def rows_of_result(run_id: str, config: RunConfig, result: RunResult, data_hash: DataHash, facts: Facts) -> Tables:
    """Return the rows of a finished run.

    Args:
        run_id: its id.
        config: its config.
        result: its result.
        data_hash: returns the content hash of a config's data.
        facts: versions and machine, for the `runs` table.
    """
    columns = result.columns
    measured = {name: value for name, (value,) in columns["runs"].items()}
    tables: dict[TableName, pa.Table] = {
        "runs": _runs_row(run_id, config, data_hash, {**measured, **facts}, status="finished")
    }
    for table in EVERY_RUN[1:]:
        tables[table] = _table(table, columns[table])
    if len(columns["predictions"]["run_id"]):
        tables["predictions"] = _table("predictions", columns["predictions"])
    return tables


def rows_of_failure(
    run_id: str, config: RunConfig, error: str, reason: str, data_hash: DataHash, facts: Facts
) -> Tables:
    """Return the row of a failed run in the `runs` table, with its error.

    Args:
        run_id: its id.
        config: its config.
        error: a traceback, or a description of how the worker died.
        reason: the same on one line.
        data_hash: returns the content hash of a config's data.
        facts: versions and, if known, machine and time, for the `runs` table.
    """
    texts = {"error": _storable(error), "reason": _storable(reason)}
    return {"runs": _runs_row(run_id, config, data_hash, {**facts, **texts}, status="failed")}


def _storable(text: str) -> str:
    """Return a text without passwords, and with escapes for what UTF-8 does not encode."""
    return masked(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _runs_row(run_id: str, config: RunConfig, data_hash: DataHash, values: Facts, *, status: Status) -> pa.Table:
    """Return the row of a run in `runs`."""
    row = {
        **config_row(config),
        **values,
        "run_id": run_id,
        "status": status,
        "data_hash": data_hash(config),
        "semantics_version": config.semantics_version,
        "plugins": plugins_of(config),
    }
    schema = SCHEMAS["runs"]
    table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names}], schema=schema)
    for name in row.keys() - set(schema.names):  # counters of a strategy, and options of custom plug-ins
        if row[name] is not None:  # an all-null column has no type that other runs could share
            table = table.append_column(name, pa.array([row[name]]))
    return table


def reason_of(row: Mapping[str, Any]) -> str:
    """Return why a run failed, on one line: the exception with the first line of its message, or how its worker ended.

    Args:
        row: columns `reason` and `error` of a failed run. Rows of earlier versions have no reason: the last line of
            their error takes its place.
    """
    reason, error = row["reason"], row["error"]
    if isinstance(reason, str):
        return printable(reason)
    return printable(last_line(error)) if isinstance(error, str) else "unknown error"


def last_line(error: str) -> str:
    """Return the last line of an error, shortened. Of a traceback, it has the exception and the end of its message."""
    lines = error.rstrip().splitlines() or ["unknown error"]
    return shortened(lines[-1].strip())


def shortened(reason: str) -> str:
    """Return a reason with at most 200 characters."""
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def check_registered(row: Mapping[str, Any], store: RunStore) -> None:
    """Check that the plug-ins of a run of a store are registered.

    Raises:
        UsageError: one is not; the option that names its file is in the message, if the row records the file.
    """
    if missing := unregistered(row):
        files = plugin_files_to_name(store, row["plugins"])
        options = " ".join(f"--plugins {printable(shlex.quote(file))}" for file in files)
        those = "them" if len(missing) > 1 else "it"
        where = f": {', '.join(map(printable, files))}" if files else ""
        remedy = either(
            f"expected {options or '--plugins SPACE.py that does so'}", f"import the file that declares {those}{where}"
        )
        are = "are" if len(missing) > 1 else "is"
        raise UsageError(f"run {row['run_id']}: {' and '.join(missing)} {are} not registered; {remedy}")


def shortest(ids: Collection[str]) -> int:
    """Return how many characters tell all ids of runs apart; commands take as few."""
    digits = _SHORTEST_ID
    while len({run_id[:digits] for run_id in ids}) < len(ids):
        digits += 1
    return digits


def printable(text: str) -> str:
    """Escape the control characters in a text, as Python does, so that a terminal does not obey them."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _table(name: TableName, columns: Columns) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    known = frozenset(schema.names)
    for column, values in columns.items():
        if column not in known:  # one for every output of the network
            table = table.append_column(column, pa.array(values))
    return table
