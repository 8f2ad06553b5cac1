"""What is added is read again: by this class, and by other programs from the folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep import FloatOption, IntOption, RunConfig, delete, merge, strategy
from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.store import parts, run_store, writing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS
from clops_sweep.store.upkeep import faults, without_damage
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.contents import Tables, add, content, equal, failed_row, id_of, raw
from tests.helpers.stores import record_result


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


def test_every_program_reads_every_column_of_every_run(store: RunStore, finished_tables: Tables) -> None:
    """Runs of plug-ins with other columns are added by three launches, in parts of their own."""
    for launch, columns in enumerate([{}, {"mine": 3}, {"mine": 2.5, "yours": "x"}]):
        writer = RunStore(store.uri)
        for number in (2 * launch, 2 * launch + 1):
            add(writer, number, finished_tables, predicted=launch + 1, **columns)
        writer.flush()
    expected = content(store)
    assert len(list((Path(store.uri) / "runs").glob("*"))) == 3
    assert expected["runs"]["mine"].to_pylist() == [None, None, 3.0, 3.0, 2.5, 2.5]
    assert expected["runs"]["yours"].to_pylist() == [None] * 4 + ["x"] * 2
    assert [name for name in expected["predictions"].column_names if name[-1].isdigit()] == [
        *(f"probability_{output}" for output in range(3)), *(f"target_{output}" for output in range(3))
    ]  # fmt: skip
    assert equal(raw(store), expected)
    for table, rows in expected.items():
        by_pandas = pd.read_parquet(Path(store.uri) / table).sort_values("run_id", kind="stable", ignore_index=True)
        pd.testing.assert_frame_equal(by_pandas, rows.to_pandas())


def test_a_table_without_runs_is_empty_and_has_its_columns(store: RunStore, tmp_path: Path) -> None:
    for it in (store, RunStore(tmp_path / "nowhere")):
        for name in SCHEMAS:
            assert it.read(name).columns.tolist() == SCHEMAS[name].names
        assert it.statuses() == {}
        assert it.rows("runs", ["run_id"]) == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("task_order", ["sequential", 3, (2, 0, 1)])
def test_a_row_gives_its_config_back(store: RunStore, finished_tables: Tables, task_order: object) -> None:
    config = RunConfig(storage_fraction=0.1, task_order=task_order, seed=7)
    store.add(id_of(1), finished_tables(id_of(1), config))
    (row,) = store.rows("runs", SCHEMAS["runs"].names)
    assert config_from_row(row) == config


def test_options_that_a_run_does_not_use_are_null(store: RunStore) -> None:
    strategy("shrinking", options={"shrink": FloatOption(0.5, gt=0), "rounds": IntOption(None, ge=1)})(
        type("Shrinking", (FineTuning,), {})
    )
    try:
        frames = tiny_frames("class_il", tasks=2)
        base = tiny_config("class_il", epochs_per_task=1)
        given = [{"strategy": "shrinking"}, {"strategy": "er", "memory_size": 3}]
        given += [{"strategy": "shrinking", "rounds": 4}]
        configs = {it.run_id(frames.data_hash): it for it in (base.replace(**each) for each in given)}
        from clops_sweep import ContinualRun

        for run_id, config in configs.items():
            record_result(store, {run_id: config}, ContinualRun(config, frames).run(), lambda _: frames.data_hash, {})
        for row in pd.read_parquet(Path(store.uri) / "runs").to_dict("records"):
            config = configs[row["run_id"]]
            names = ("shrink", "rounds", "memory_size")
            assert {name: row[name] for name in names if not pd.isna(row[name])} == {
                name: config.options[name] for name in names if config.options.get(name) is not None
            }
            assert config_from_row({str(name): it for name, it in row.items()}).identity == config.identity
    finally:
        STRATEGIES.forget("shrinking")


def test_rows_of_a_run_keep_their_order(store: RunStore) -> None:
    """In parts of several row groups, whose runs are not in the order of their ids."""
    draws, order = np.random.default_rng(0), [3, 0, 2, 1]
    curves = {}
    for number in order:
        loss = draws.normal(size=9_000)
        table = pa.table({"run_id": [id_of(number)] * 9_000, "loss": loss})
        curves[number] = loss
        empty = {name: SCHEMAS[name].empty_table() for name in EVERY_RUN}
        at = SCHEMAS["runs"].get_field_index("status")
        row = failed_row(number).set_column(at, "status", pa.array(["finished"]))
        store.add(id_of(number), {**empty, "runs": row, "curves": parts.conform(table, SCHEMAS["curves"])})
    store.flush()
    for number in order:
        assert store.read("curves", id_of(number), "loss")["loss"].tolist() == curves[number].tolist()


# --- finished, failed, kept -------------------------------------------------------------------------------------------


def test_the_first_of_two_equal_runs_stays_and_a_failure_is_replaced(store: RunStore, finished_tables: Tables) -> None:
    add(store, 1, finished_tables, auc=0.1)
    store.add(id_of(2), {"runs": failed_row(2)})
    store.add(id_of(3), {"runs": failed_row(3, "first")})
    store.flush()
    assert store.statuses() == {id_of(1): "finished", id_of(2): "failed", id_of(3): "failed"}
    other = RunStore(store.uri)
    add(other, 1, finished_tables, auc=0.9)
    add(other, 2, finished_tables)
    other.add(id_of(3), {"runs": failed_row(3, "second")})
    other.flush()
    other.add(id_of(2), {"runs": failed_row(2)})  # too late
    other.flush()
    found = content(store)["runs"]
    assert found["status"].to_pylist() == ["finished", "finished", "failed"]
    assert found["auc"].to_pylist()[:2] == [0.1, 0.02]
    assert found["error"].to_pylist()[2] == "second"
    assert equal(raw(store), content(store))


# --- flushing and merging ---------------------------------------------------------------------------------------------


def test_rows_wait_for_twenty_times_as_long_as_the_last_flush_took(
    store: RunStore, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(run_store.time, "monotonic", lambda: clock[0])
    written = run_store.write
    seconds = [0.2, 3.0, 0.1]

    def slow(*given: Any) -> None:
        clock[0] += seconds.pop(0)
        written(*given)

    monkeypatch.setattr(run_store, "write", slow)

    def stored_after(wait: float) -> int:
        clock[0] += wait
        store.flush_if_due()
        return len(RunStore(store.uri).statuses())

    store.add(id_of(1), finished_tables(id_of(1), RunConfig()))
    assert stored_after(0.0) == 1, "the first run of a launch is stored at once"
    store.add(id_of(2), finished_tables(id_of(2), RunConfig()))
    assert [stored_after(3.9), stored_after(0.2)] == [1, 2]
    store.add(id_of(3), finished_tables(id_of(3), RunConfig()))
    assert [stored_after(9.9), stored_after(0.2)] == [2, 3], "ten seconds at most"


def test_rows_are_written_when_due_when_somebody_reads_or_when_they_are_large(
    store: RunStore, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(run_store.time, "monotonic", lambda: clock[0])
    checkpoint = Path(store.checkpoint_path(id_of(1)))
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"state")
    store.add(id_of(1), finished_tables(id_of(1), RunConfig()), str(checkpoint))
    assert (RunStore(store.uri).statuses(), checkpoint.exists()) == ({}, True)
    store.flush_if_due()
    assert (RunStore(store.uri).statuses(), checkpoint.exists()) == ({id_of(1): "finished"}, False)
    add(store, 2, finished_tables)
    assert len(store.read("runs")) == 2
    monkeypatch.setattr(run_store, "BYTES_PER_FLUSH", 1)
    add(store, 3, finished_tables)
    store.flush_if_due()
    assert len(RunStore(store.uri).statuses()) == 3


@pytest.mark.nightly
def test_merging_changes_nothing_but_the_number_of_files(
    store: RunStore, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "MANY_PARTS", 4)
    monkeypatch.setattr(writing, "RUNS_PER_PART", 10)
    most = 0
    for number in range(30):
        add(store, number, finished_tables, predicted=number % 2)
        store.flush()
        most = max(most, len(list((Path(store.uri) / "runs").iterdir())))
    assert most <= 3 + 4
    before = content(store)
    with store.locked():
        writing.merge_parts(store.parts)
    assert len(list((Path(store.uri) / "runs").iterdir())) == 3
    assert equal(content(store), before)
    assert equal(raw(store), before)
    assert list(faults(RunStore(store.uri))) == []


@pytest.mark.nightly
def test_reading_goes_on_while_parts_are_merged(store: RunStore, finished_tables: Tables) -> None:
    program = (
        "import sys\nfrom clops_sweep.store.run_store import RunStore\n"
        "from clops_sweep.store.writing import merge_parts\n"
        "store = RunStore(sys.argv[1])\n"
        "for _ in range(20):\n    with store.locked():\n        merge_parts(store.parts)\n"
    )
    for number in range(12):
        add(store, number, finished_tables)
        store.flush()
    process = subprocess.Popen([sys.executable, "-c", program, store.uri])
    reads = 0
    for number in range(12, 24):
        add(store, number, finished_tables)
        assert store.read("curves")["run_id"].nunique() == number + 1
        reads += 1
    assert process.wait() == 0
    assert reads == 12


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped"])
@pytest.mark.parametrize("table", ["runs", "curves"])
def test_a_damaged_part_is_named_and_its_runs_are_computed_again(
    store: RunStore, finished_tables: Tables, table: str, damage: str
) -> None:
    for number in range(3):
        add(store, number, finished_tables)
        store.flush()
    part = sorted((Path(store.uri) / table).iterdir())[1]
    whole = part.read_bytes()
    flipped = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
    part.write_bytes({"cut": whole[:-9], "empty": b"", "flipped": flipped}[damage])
    with pytest.raises(DamagedStore, match=f"^{part}: .*; a launch sets it aside") as raised:
        RunStore(store.uri).read(table)  # type: ignore[arg-type]
    assert str(raised.value) in list(faults(RunStore(store.uri)))
    said: list[str] = []
    assert without_damage(RunStore(store.uri), None, said.append)
    assert len(said) == 1
    assert RunStore(store.uri).statuses() == {id_of(0): "finished", id_of(2): "finished"}
    aside = {path.name for path in (Path(store.work_folder) / "damaged").iterdir()}
    assert f"{table}-{part.name}" in aside
    again = RunStore(store.uri)
    again.open_for_writing()
    add(again, 1, finished_tables)
    assert sorted(again.statuses()) == [id_of(number) for number in range(3)]
    assert list(faults(again)) == []


def test_a_missing_file_makes_its_runs_pending(store: RunStore, finished_tables: Tables) -> None:
    for number in range(2):
        add(store, number, finished_tables)
        store.flush()
    lost = sorted((Path(store.uri) / "instances").iterdir())[0]
    lost.unlink()
    again = RunStore(store.uri)
    assert again.statuses() == {id_of(1): "finished"}
    assert any(str(lost) in fault for fault in faults(again))
    with pytest.raises(DamagedStore, match=f"{lost.name}: is missing"):
        again.read("instances")
    assert without_damage(again, [id_of(0)], lambda text: None)
    assert len(again.read("instances")) == 3


# --- any sequence -----------------------------------------------------------------------------------------------------

ACTION = st.one_of(
    st.tuples(st.just("finish"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("fail"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("flush"), st.just(0), st.booleans()),
    st.tuples(st.just("merge"), st.just(0), st.just(False)),
    st.tuples(st.just("delete"), st.integers(0, 5), st.just(False)),
    st.tuples(st.just("copy"), st.just(0), st.just(False)),
)


@settings(max_examples=12, deadline=None)
@given(actions=st.lists(ACTION, max_size=14))
def test_any_sequence_of_changes_leaves_what_a_dictionary_would(
    actions: list[tuple[str, int, bool]], tmp_path_factory: pytest.TempPathFactory, finished_tables: Tables
) -> None:
    root = tmp_path_factory.mktemp("any")
    store, expected, copies = RunStore(root / "0"), {}, 0
    store.open_for_writing()
    for action, number, flag in actions:
        match action:
            case "finish":
                add(store, number, finished_tables, predicted=int(flag))
                status, predicted = expected.get(number, ("", False))
                expected[number] = ("finished", predicted or flag if status == "finished" else flag)
                store.flush()
            case "fail":
                store.add(id_of(number), {"runs": failed_row(number)})
                expected.setdefault(number, ("failed", False))
                store.flush()
            case "flush":
                store.flush()
                if flag:
                    store = RunStore(store.uri)
                    store.open_for_writing()
            case "merge":
                with store.locked():
                    writing.merge_parts(store.parts)
            case "delete" if number in expected:
                assert delete(store.uri, f"seed == {number}") == 1
                del expected[number]
            case "copy":
                copies += 1
                assert merge(root / str(copies), store.uri) == len(expected)
                store = RunStore(root / str(copies))
    found = content(store)
    assert dict(zip(found["runs"]["run_id"].to_pylist(), found["runs"]["status"].to_pylist(), strict=True)) == {
        id_of(number): status for number, (status, _) in sorted(expected.items())
    }
    assert RunStore(store.uri).predicted() == {id_of(number) for number, (_, has) in expected.items() if has}
    assert found["r_matrix"].num_rows == 36 * sum(status == "finished" for status, _ in expected.values())
    assert equal(raw(store), found)
    assert list(faults(RunStore(store.uri))) == []
