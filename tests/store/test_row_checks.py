"""A value that the program never writes is one sentence in every command, whatever sealed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, read
from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

Tables = Callable[..., dict[str, pa.Table]]
A, B = "a" * 24, "b" * 24

WRONG: list[tuple[str, str, Any]] = [
    ("runs", "status", "weird"),
    ("runs", "status", None),
    ("runs", "task_order", "[1, "),
    ("runs", "task_order", "weird"),
    ("runs", "task_order", '["a"]'),
    ("runs", "task_classes", '{"a": 1}'),
    ("runs", "task_classes", "[" * 100_000),
    ("runs", "plugins", "not JSON"),
    ("runs", "plugins", '{"strategy x": ["a", "b", "c", "d"]}'),
    ("runs", "plugins", "[1]"),
    ("runs", "dataset", None),
    ("runs", "strategy", None),
    ("runs", "seed", None),
    ("r_matrix", "trained_on", -5),
    ("r_matrix", "evaluated_on", 10**15),
    ("r_matrix", "split", "weird"),
    ("curves", "epoch", -1),
    ("instances", "instance", -1),
]


def _with(table: pa.Table, column: str, value: Any) -> pa.Table:
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pa.array([value] * table.num_rows, table.schema.types[at]))


@pytest.fixture
def harmed(tmp_path: Path, finished_tables: Tables) -> Callable[[str, str, Any], RunStore]:
    """Makes a store of two runs, one of which holds a value that is never written."""

    def make(table: str, column: str, value: Any) -> RunStore:
        store = RunStore(tmp_path / "results")
        store.write_finished(A, finished_tables(A, RunConfig()))  # type: ignore[arg-type]
        tables = finished_tables(B, RunConfig(seed=1))
        store.write_finished(B, tables | {table: _with(tables[table], column, value)})  # type: ignore[arg-type]
        return store

    return make


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(("table", "column", "value"), WRONG, ids=lambda it: str(it)[:12])
def test_it_is_one_sentence_that_names_run_column_and_value(
    harmed: Callable[..., RunStore], table: str, column: str, value: Any, compacted: bool
) -> None:
    store = harmed(table, column, value)
    if compacted:
        store.compact()
    with pytest.raises(UsageError, match=f": run {B}: {column} = .* in table {table}; expected ") as refused:
        read(store.uri, table)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
    assert store.read(table, [A])["run_id"].unique().tolist() == [A]  # type: ignore[arg-type]
    others = [name for name in store.table(table, [A]).column_names if name != column]  # type: ignore[arg-type]
    assert len(read(store.uri, table, columns=others[:1])) > 0  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [["show", B], ["rerun", B], ["report"], ["claims"]], ids=lambda it: it[0])
@pytest.mark.parametrize(("table", "column", "value"), [WRONG[0], WRONG[2], WRONG[7]])
def test_no_command_traces_back(
    harmed: Callable[..., RunStore], arguments: list[str], table: str, column: str, value: Any
) -> None:
    store = harmed(table, column, value)
    done = CliRunner().invoke(command, [*arguments, "--results", store.uri])
    assert isinstance(done.exception, UsageError)
    assert f": run {B}: {column} = " in str(done.exception)
