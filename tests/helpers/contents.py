"""Runs for tests of the store, what a store holds, and a store that dies or fails at a file operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from clops_sweep import RunConfig
from clops_sweep.experiment.columns import config_row
from clops_sweep.store.files import Files
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import PREDICTIONS, SCHEMAS, TableName

Tables = Callable[..., dict[TableName, pa.Table]]
Content = dict[TableName, pa.Table]


def id_of(number: int) -> str:
    return f"{number:024x}"


def failed_row(number: int, error: str = "ValueError: no") -> pa.Table:
    row = {"run_id": id_of(number), **config_row(RunConfig(seed=number)), "status": "failed", "error": error}
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"])


def predictions(number: int, outputs: int = 1, probability: float = 0.25) -> pa.Table:
    pairs = [(i, j) for i in (1, 2) for j in (1, 2)]
    rows = [{"run_id": id_of(number), "instance": 7, "trained_on": i, "evaluated_on": j} for i, j in pairs]
    table = pa.Table.from_pylist([{name: row.get(name) for name in PREDICTIONS.names} for row in rows], PREDICTIONS)
    for output in range(outputs):
        table = table.append_column(f"target_{output}", pa.array([1] * len(rows), pa.int8()))
        table = table.append_column(f"probability_{output}", pa.array([probability] * len(rows), pa.float32()))
    return table


def add(
    store: RunStore, number: int, tables: Tables, *, predicted: int = 0, auc: float | None = None, **columns: Any
) -> None:
    """Add a finished run with columns of a plug-in in `runs`."""
    found = tables(id_of(number), RunConfig(seed=number), auc=number / 100 if auc is None else auc)
    for name, value in columns.items():
        found["runs"] = found["runs"].append_column(name, pa.array([value]))
    if predicted:
        found["predictions"] = predictions(number, predicted)
    store.add(id_of(number), found)


def content(store: RunStore) -> Content:
    """Return what a new process reads."""
    found = RunStore(store.uri)
    return {table: found.table(table) for table in SCHEMAS}


def raw(store: RunStore) -> Content:
    """Return what Arrow reads from the folders, in order of the runs."""
    found: Content = {}
    for table in SCHEMAS:
        folder = Path(store.uri) / table
        parts = [path for path in folder.glob("*.parquet") if not path.name.startswith(".")]
        rows = (
            ds.dataset(folder, format="parquet").to_table(use_threads=False) if parts else SCHEMAS[table].empty_table()
        )
        found[table] = rows.sort_by("run_id") if rows.num_rows else rows
    return found


class Killed(BaseException):
    """The process dies here."""


@contextmanager
def faults(after: int, error: Callable[[], BaseException] = Killed) -> Iterator[list[str]]:
    """Let the file operations of all stores end with an error, from a number of operations on; yield their names.

    A write that is killed leaves half of its unfinished file behind.
    """
    done: list[str] = []
    whole = {name: getattr(Files, name) for name in ("write", "_delete", "move")}

    def faulty(name: str) -> Callable[..., object]:
        def operation(self: Files, path: str, *arguments: Any) -> object:
            done.append(f"{name} {path}")
            if len(done) > after:
                if name == "write" and error is Killed:
                    Path(path).parent.mkdir(parents=True, exist_ok=True)
                    Path(path).with_name(f".{Path(path).name}.partial").write_bytes(bytes(arguments[0])[:100])
                raise error()
            return whole[name](self, path, *arguments)

        return operation

    for name in whole:
        setattr(Files, name, faulty(name))
    try:
        yield done
    finally:
        for name, method in whole.items():
            setattr(Files, name, method)


def equal(one: Mapping[TableName, pa.Table], other: Mapping[TableName, pa.Table]) -> bool:
    """Return whether two stores have equal rows; a column that is null throughout may be missing."""
    from clops_sweep.store.comparing import same_rows

    return all(same_rows(one[table], other[table]) for table in SCHEMAS)
