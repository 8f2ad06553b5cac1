"""How runs get into the store: finished ones with their tables, failed ones with their error. No torch, no Ray."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clops_sweep.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.errors import BadInput, StoreError
from clops_sweep.files import reason
from clops_sweep.jobs import Job
from clops_sweep.store import RunStore
from clops_sweep.tables import SCHEMAS, TableName, config_row

if TYPE_CHECKING:
    import pandas as pd

    from clops_sweep.learning.result import RunResult


_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION_GROUP = re.compile(r"^  \| ([\w.]*Group: .*)")
_LONGEST_REASON = 200


@contextmanager
def storing(store: RunStore) -> Iterator[None]:
    """Around all that is done with the store: tells what goes wrong with it from what goes wrong with a run."""
    if not store.is_there():
        raise StoreError(f"results {store.files.shown}: the folder has gone")
    try:
        yield
    except (OSError, BadInput) as error:
        raise StoreError(reason(error)) from error


def record_result(store: RunStore, job: Job, result: RunResult, facts: Mapping[str, Any]) -> None:
    """The tables of every run of a job that has ended, one run at a time.

    Args:
        store: where to.
        job: its runs.
        result: what they gave.
        facts: versions and machine, for the `runs` table.

    Raises:
        StoreError: they could not be written; those before are.
    """
    for config, run_id in zip(job.configs, job.run_ids, strict=True):
        row: dict[Any, Any] = _rows_of(run_id, result.runs).to_dict("records")[0]
        tables: dict[TableName, pa.Table] = {
            "runs": _runs_table([{**row, **config_row(config), **facts}]),
            "r_matrix": _table("r_matrix", _rows_of(run_id, result.r_matrix)),
            "curves": _table("curves", _rows_of(run_id, result.curves)),
            "instances": _table("instances", _rows_of(run_id, result.instances)),
        }
        with storing(store):
            store.write_finished(run_id, tables)


def record_failure(
    store: RunStore, job: Job, error: str, data_hash: Callable[[RunConfig], str | None], facts: Mapping[str, Any]
) -> None:
    """Failed runs as rows of the `runs` table, with the error that ended them.

    Args:
        store: where to.
        job: its runs.
        error: a traceback, or what is known about the death of a worker.
        data_hash: content hash of the data that a config runs on.
        facts: versions, and what else is known of machine and time, for the `runs` table.

    Raises:
        OSError, BadInput: they could not be written; see `storing`.
    """
    for config, run_id in zip(job.configs, job.run_ids, strict=True):
        row = {
            "run_id": run_id,
            **config_row(config),
            "status": "failed",
            "error": error.encode("utf-8", "backslashreplace").decode("utf-8"),
            "data_hash": data_hash(config),
            "semantics_version": SEMANTICS_VERSION,
            "stack": len(job.configs),
            **facts,
        }
        store.write_failed(run_id, _runs_table([row]))


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


def _rows_of(run_id: str, frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["run_id"] == run_id]


def _runs_table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = SCHEMAS["runs"]
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _table(name: TableName, frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, schema=SCHEMAS[name], preserve_index=False)
