"""A small part has its rows twice, as Parquet and as Arrow has them in memory: both are the same, or it is damaged."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clops_sweep import RunConfig
from clops_sweep.store.part_bytes import UNSEALED, check_seal, rows_at_once, sealed
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN

Tables = Callable[..., dict[str, pa.Table]]
A = "a" * 24


def _file(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"digest": UNSEALED})
    return sink.getvalue()


def _sealed(table: pa.Table, rows: pa.Table | None) -> pa.Buffer:
    return pa.py_buffer(sealed(_file(table), "runs/x", rows))


@pytest.mark.parametrize("name", EVERY_RUN)
def test_both_have_the_same_rows(tmp_path: Path, finished_tables: Tables, name: str) -> None:
    tables = finished_tables(A, RunConfig())
    tables["instances"] = tables["instances"].set_column(
        tables["instances"].column_names.index("beta_trajectory"),
        "beta_trajectory",
        pa.array([[1.0, 0.5], None, []], pa.list_(pa.float32())),
    )
    RunStore(tmp_path).write_finished(A, tables)
    (path,) = (tmp_path / name).iterdir()
    content = pa.py_buffer(path.read_bytes())
    assert pq.read_table(path).equals(tables[name])
    assert rows_at_once(content).equals(tables[name])
    assert pq.read_table(io.BytesIO(path.read_bytes()), use_threads=False).num_rows == tables[name].num_rows


def test_many_rows_are_there_once() -> None:
    few, many = (pa.table({"x": pa.array(range(count))}) for count in (100, 100_000))
    assert rows_at_once(_sealed(few, few)).equals(few)
    for table, rows in ((many, many), (few, None), (few.slice(0, 0), few.slice(0, 0))):
        content = _sealed(table, rows)
        check_seal(content, "runs/x")
        assert rows_at_once(content) is None
        assert pq.read_table(pa.BufferReader(content)).equals(table)


def test_whatever_is_changed_is_seen_by_the_seal_and_harms_nobody(finished_tables: Tables) -> None:
    table = finished_tables(A, RunConfig())["curves"]
    content = _sealed(table, table).to_pybytes()
    draw = random.Random(1)
    for _ in range(300):
        changed = bytearray(content)
        changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        with pytest.raises(pa.ArrowInvalid, match=r"it (is not what was written there|has no digest)"):
            check_seal(pa.py_buffer(bytes(changed)), "runs/x")
        try:  # somebody who means harm would have sealed it
            found = rows_at_once(pa.py_buffer(bytes(changed)))
        except (pa.ArrowException, OSError):
            continue
        if found is not None:
            found.to_pylist()
    with pytest.raises(pa.ArrowInvalid):
        check_seal(pa.py_buffer(content), "runs/y")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff\xff\xff\xffPAR1", b"rows, as Arrow's\0\0\0\0PAR1"])
def test_what_is_no_part_has_no_digest_and_no_rows(content: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid, match="it has no digest"):
        check_seal(pa.py_buffer(content), "runs/x")
    assert rows_at_once(pa.py_buffer(content)) is None


def test_a_store_of_before_is_read_and_goes_on(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {letter * 24: finished_tables(letter * 24, RunConfig()) for letter in "abc"}
    with monkeypatch.context() as before:
        before.setattr("clops_sweep.store.part_bytes._MOST_BYTES", 0)  # rows were there once
        for run_id in sorted(tables)[:2]:
            RunStore(tmp_path).write_finished(run_id, tables[run_id])
    store = RunStore(tmp_path)
    assert rows_at_once(store.files.read(f"{store.folder('runs')}/finished-{A}.parquet")) is None
    store.write_finished("c" * 24, tables["c" * 24])
    for compact in (False, True):
        if compact:
            store.compact()
        for name in EVERY_RUN:
            assert store.table(name).equals(pa.concat_tables(it[name] for it in tables.values()))
        assert store.table("runs", columns=["auc"]).num_columns == 1
        assert set(store.statuses()) == set(tables)
