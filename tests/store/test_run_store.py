from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from preloaded import Preloaded

from clops_sweep import RunConfig
from clops_sweep.errors import DamagedStore, UsageError
from clops_sweep.experiment.columns import config_from_row, config_row
from clops_sweep.store.files import Files
from clops_sweep.store.part_names import compacted as part_of
from clops_sweep.store.part_names import single
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS
from clops_sweep.store.upkeep.verification import damages

Tables = Callable[..., dict[str, pa.Table]]

A = "a" * 24
B = "b" * 24


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


def _failed_row(run_id: str, config: RunConfig, error: str = "ValueError: no") -> pa.Table:
    row = {"run_id": run_id, **config_row(config), "status": "failed", "error": error}
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"])


# --- what is written is what pandas reads -----------------------------------------------------------------------------


def test_the_query_of_three_lines(tmp_path: Path, store: RunStore, finished_tables: Tables) -> None:
    for index, (b, a) in enumerate([(0.1, 0.25), (0.1, 1.0), (0.5, 0.25), (0.5, 1.0)]):
        config = RunConfig(storage_fraction=b, acquisition_fraction=a)
        store.write_finished(f"{index:024}", finished_tables(f"{index:024}", config, auc=b + a / 10))

    runs = pd.read_parquet(tmp_path / "results" / "runs")
    table = runs.pivot_table("auc", "storage_fraction", "acquisition_fraction")

    assert table.index.tolist() == [0.1, 0.5]
    assert table.columns.tolist() == [0.25, 1.0]
    assert table.to_numpy().ravel().tolist() == [0.125, 0.2, 0.525, 0.6]


def test_reading_leaves_no_thread_of_arrow(tmp_path: Path, store: RunStore, finished_tables: Tables) -> None:
    """Such a thread may free a buffer of Python's while Python exits; the process is then aborted."""
    store.write_finished(A, finished_tables(A, RunConfig()))
    read = (
        "import os, sys, pyarrow as pa, clops_sweep.store.run_store as it; pa.array([1])  # starts its allocator's\n"
        "before = os.listdir('/proc/self/task'); assert it.RunStore(sys.argv[1]).rows('runs', ['auc'])\n"
        "assert os.listdir('/proc/self/task') == before"
    )
    subprocess.run([sys.executable, "-c", read, str(tmp_path / "results")], check=True)


@pytest.mark.parametrize("name", EVERY_RUN)
def test_every_table_is_a_folder_that_pandas_reads(
    tmp_path: Path, store: RunStore, finished_tables: Tables, name: str
) -> None:
    tables = finished_tables(A, RunConfig())
    store.write_finished(A, tables)
    read = pd.read_parquet(tmp_path / "results" / name)
    assert list(read.columns) == SCHEMAS[name].names
    pd.testing.assert_frame_equal(read, tables[name].to_pandas())


def test_a_table_without_runs_is_empty_and_has_its_columns(store: RunStore) -> None:
    for name in ("runs", "r_matrix", "curves", "instances"):
        frame = store.read(name)
        assert len(frame) == 0
        assert list(frame.columns) == SCHEMAS[name].names
    assert store.statuses() == {}
    assert store.rows("runs", ["run_id"]) == []


@pytest.mark.parametrize(
    ("results", "options"),
    [
        ("results", ""),
        ("my results", " --results 'my results'"),
        ("{here}/out", " --results out"),
        ("{here}/../other", " --results {elsewhere}"),
    ],
)
def test_commands_to_type_name_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = RunStore(results.format(here=tmp_path)).command("logs", "RUN_ID")
    assert command == f"clops-sweep logs RUN_ID{options.format(elsewhere=tmp_path.parent / 'other')}"


def test_a_store_that_is_not_there_reads_as_empty(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "nowhere")
    assert store.statuses() == {}
    assert len(store.read("runs")) == 0
    assert not (tmp_path / "nowhere").exists()


def test_the_runs_table_has_every_field_under_its_own_name() -> None:
    assert set(RunConfig.model_fields) <= set(SCHEMAS["runs"].names)


@pytest.mark.parametrize("task_order", ["sequential", 3, (2, 0, 1)])
def test_a_row_gives_its_config_back(store: RunStore, finished_tables: Tables, task_order: object) -> None:
    config = RunConfig(storage_fraction=0.1, task_order=task_order, seed=7)
    store.write_finished(A, finished_tables(A, config))
    (row,) = store.rows("runs", SCHEMAS["runs"].names)
    assert config_from_row(row) == config


def test_reading_some_runs_only(store: RunStore, finished_tables: Tables) -> None:
    for run_id in (A, B):
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
    assert store.read("r_matrix", [B])["run_id"].unique().tolist() == [B]
    assert len(store.read("r_matrix", [])) == 0


@pytest.mark.parametrize("compacted", [False, True])
def test_parts_of_an_earlier_version_are_read(store: RunStore, finished_tables: Tables, compacted: bool) -> None:
    """Columns are only ever added: an older part has nulls there, and its whole numbers may be narrower."""
    for run_id in (A, B):
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
    path = Path(store.folder("runs")) / f"finished-{A}.parquet"
    old = pq.read_table(path).drop_columns(["backend", "host"])
    position = old.schema.get_field_index("seed")
    old = old.set_column(position, "seed", old["seed"].cast(pa.int32()))
    PartFolder(store.files, store.folder("runs"), old.schema).write_single(single("finished", A), old)
    if compacted:
        store.compact()
        assert len(list(path.parent.iterdir())) == 1
    for columns in (None, ["host", "seed", "run_id"]):
        frame = store.read("runs", columns=columns)
        assert list(frame.columns) == (columns or SCHEMAS["runs"].names)
        assert frame["run_id"].tolist() == [A, B]
        assert frame["host"].isna().all()
        assert frame["seed"].tolist() == [0, 0]
    assert store.read("runs", [A], ["seed"])["seed"].tolist() == [0]


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("own_columns", [False, True])
def test_a_renamed_column_of_an_old_part_is_read(
    tmp_path: Path, finished_tables: Tables, compacted: bool, own_columns: bool
) -> None:
    """`lockstep` was called `stack`, in parts and in the file that lists added columns."""
    store = RunStore(tmp_path)
    schema = SCHEMAS["runs"]
    position = schema.get_field_index("lockstep")
    old = PartFolder(store.files, store.folder("runs"), schema.set(position, pa.field("stack", pa.int64())))
    rows = {}
    for run_id, together in ((A, 3), (B, 5)):
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
        path = Path(store.folder("runs")) / f"finished-{run_id}.parquet"
        table = pq.read_table(path)
        table = table.set_column(position, "stack", pa.array([together], pa.int64()))
        rows[run_id] = table.append_column("mine", pa.array([together])) if own_columns else table
        path.unlink()
    if own_columns:
        old.add_columns([pa.field("mine", pa.int64())])
    if compacted:
        old.write_compacted(part_of((A, B)), pa.concat_tables(rows.values()), (A, B))
    else:
        for run_id, table in rows.items():
            old.write_single(single("finished", run_id), table)
    for _ in range(2):
        for columns in (None, ["lockstep", "run_id"]):
            frame = RunStore(tmp_path).read("runs", columns=columns)
            assert frame.set_index("run_id")["lockstep"].to_dict() == {A: 3, B: 5}
            assert "stack" not in frame
        RunStore(tmp_path).compact()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_column_that_an_old_part_lacks_reads_as_its_default(
    tmp_path: Path, finished_tables: Tables, compacted: bool
) -> None:
    """A field that is added to the config later: runs that were stored before held its default."""
    before = RunStore(tmp_path)
    for run_id in (A, B):
        before.write_finished(run_id, finished_tables(run_id, RunConfig()))
    if compacted:
        before.compact()
    schema = SCHEMAS["runs"].append(pa.field("label_smoothing", pa.float64()))
    runs = PartFolder(before.files, before.folder("runs"), schema, {"label_smoothing": 0.25, "no_column": 1})
    listing = runs.listing()
    for columns in (None, ["run_id", "label_smoothing"], ["run_id", "seed"]):
        if compacted:
            table = runs.read(listing.compacts[0], columns)
        else:
            table = pa.concat_tables([runs.read(part, columns) for part in listing.singles])
        assert table.column_names == (columns or schema.names)
        if columns != ["run_id", "seed"]:
            assert table["label_smoothing"].to_pylist() == [0.25, 0.25]


def _with(tables: dict[str, pa.Table], **columns: object) -> dict[str, pa.Table]:
    runs = tables["runs"]
    for name, value in columns.items():
        runs = runs.append_column(name, pa.array([value]))
    return {**tables, "runs": runs}


@pytest.mark.parametrize("compacted", [False, True])
def test_what_a_strategy_counts_is_a_column(tmp_path: Path, finished_tables: Tables, compacted: bool) -> None:
    C = "c" * 24
    for run_id, columns in ((B, {}), (C, {"skipped": 3, "note": "x"}), (A, {"skipped": 0.5})):
        RunStore(tmp_path).write_finished(run_id, _with(finished_tables(run_id, RunConfig()), **columns))
    if compacted:
        RunStore(tmp_path).compact()
    store = RunStore(tmp_path)
    for frame in (store.read("runs"), pd.read_parquet(tmp_path / "runs").sort_values("run_id", ignore_index=True)):
        assert frame["run_id"].tolist() == [A, B, C]
        assert frame["skipped"].fillna(-1).tolist() == [0.5, -1, 3]
        assert [None if pd.isna(note) else note for note in frame["note"]] == [None, None, "x"]
        assert list(frame)[: len(SCHEMAS["runs"])] == SCHEMAS["runs"].names
    assert store.read("runs", [C], ["skipped", "auc"])["skipped"].tolist() == [3]
    assert "skipped" not in store.read("curves")
    assert store.statuses() == dict.fromkeys([A, B, C], "finished")
    assert damages(store) == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_store_of_version_0_1_is_refused(tmp_path: Path, finished_tables: Tables, compacted: bool) -> None:
    old = "a" * 20  # digits that an id of that version had
    (tmp_path / "runs").mkdir()
    table = finished_tables(old, RunConfig())["runs"]
    name = f"compact-1-{'0' * 16}.parquet" if compacted else f"finished-{old}.parquet"
    with pq.ParquetWriter(tmp_path / "runs" / name, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"clops_sweep.run_ids": old})
    store = RunStore(tmp_path)
    for look in (store.statuses, lambda: store.read("runs"), lambda: store.find("a"), store.compact):
        with pytest.raises(
            UsageError, match=r"holds runs of clops-sweep 0\.1, .*; .* new runs need another --results$"
        ):
            look()
    assert pd.read_parquet(tmp_path / "runs")["run_id"].tolist() == [old]


# --- a run counts once ------------------------------------------------------------------------------------------------


def test_writing_twice_leaves_the_first(store: RunStore, finished_tables: Tables) -> None:
    for auc in (0.1, 0.9):
        store.write_finished(A, finished_tables(A, RunConfig(), auc=auc))
    assert store.read("runs")["auc"].tolist() == [0.1]
    assert len(store.read("r_matrix")) == 36


def test_a_failed_run_that_is_finished_later_is_finished(
    tmp_path: Path, store: RunStore, finished_tables: Tables
) -> None:
    store.write_failed(A, _failed_row(A, RunConfig(), "ValueError: no"))
    assert store.statuses() == {A: "failed"}
    assert store.read("runs")[["status", "error"]].to_numpy().tolist() == [["failed", "ValueError: no"]]
    store.write_finished(A, finished_tables(A, RunConfig()))
    assert store.statuses() == {A: "finished"}
    assert pd.read_parquet(tmp_path / "results" / "runs")["status"].tolist() == ["finished"]


def test_a_finished_run_does_not_fail_any_more(store: RunStore, finished_tables: Tables) -> None:
    store.write_finished(A, finished_tables(A, RunConfig()))
    store.write_failed(A, _failed_row(A, RunConfig()))
    assert store.statuses() == {A: "finished"}
    assert store.read("runs")["status"].tolist() == ["finished"]


def test_a_failure_and_a_success_written_at_the_same_moment_count_as_a_success(
    store: RunStore, finished_tables: Tables
) -> None:
    other = RunStore(store.uri)
    other.write_failed(A, _failed_row(A, RunConfig()))
    failed = Path(store.folder("runs")) / f"failed-{A}.parquet"
    content = failed.read_bytes()
    store.write_finished(A, finished_tables(A, RunConfig()))
    failed.write_bytes(content)  # the other writer had looked before, and its part arrives last
    assert store.statuses() == {A: "finished"}
    assert store.read("runs")["status"].tolist() == ["finished"]


def test_without_its_part_in_runs_a_run_is_not_finished(store: RunStore, finished_tables: Tables) -> None:
    store.write_finished(A, finished_tables(A, RunConfig()))
    (Path(store.folder("runs")) / f"finished-{A}.parquet").unlink()
    assert store.statuses() == {}


# --- nothing torn is ever visible -------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from clops_sweep import RunConfig
from clops_sweep.store.files import Files
from clops_sweep.store.part_names import compacted as part_of, single
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.experiment.columns import config_row
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS
from clops_sweep.store.upkeep.verification import damages
import numpy as np
import pyarrow as pa

store, rows = RunStore(sys.argv[1]), 200_000
noise = np.random.default_rng(0).random(rows)  # hardly compressible: a part of more than a megabyte
runs = {}
for number in range(5):
    run_id, tables = f"{number:024}", {}
    for name, count in {"r_matrix": 36, "curves": 6, "instances": rows, "runs": 1}.items():
        columns = {field: pa.nulls(count, SCHEMAS[name].field(field).type) for field in SCHEMAS[name].names}
        columns["run_id"] = pa.array([run_id] * count)
        if name == "instances":
            columns["s"] = pa.array(noise)
        tables[name] = pa.table(columns, schema=SCHEMAS[name])
    runs[run_id] = tables
print("ready", flush=True)
while True:
    for run_id, tables in runs.items():
        store.write_finished(run_id, tables)
        Path(f"{sys.argv[1]}/runs/finished-{run_id}.parquet").unlink()  # or it would not be written again
"""


def test_a_writer_killed_at_any_moment_leaves_no_torn_part(
    tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    results = tmp_path / "results"
    moments = random.Random(0)
    torn = kills = 0
    while kills < 2 or (torn == 0 and kills < 40):  # whether a kill comes before the end of a write is chance
        writer = commands.start(tmp_path, environment, str(results), program=WRITER)
        try:
            assert writer.stdout.readline() == "ready\n"
            end = time.monotonic() + moments.uniform(0.05, 0.4)
            while time.monotonic() < end:
                _check_whole(results)
            before = _unfinished(results)
            while kills % 2 and _unfinished(results) <= before:  # every second time in the middle of a write
                assert writer.poll() is None
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        _check_whole(results)
        torn += len(_unfinished(results) - before)
        kills += 1
    assert torn > 0, "no kill hit a write: the test has shown nothing"


def _unfinished(results: Path) -> set[str]:
    """Files that are being written, or were when their writer was killed."""
    return {path.name for path in (results / "instances").glob(".*")}


def _check_whole(results: Path) -> None:
    """What pandas reads at this moment: every part whole."""
    for name, rows in (("r_matrix", 36), ("curves", 6), ("instances", 200_000)):
        if any((results / name).glob("*.parquet")):
            found = pd.read_parquet(results / name).groupby("run_id").size()
            assert (found == rows).all()


def test_a_write_that_fails_leaves_nothing(store: RunStore, finished_tables: Tables) -> None:
    blocked = Path(store.folder("curves")) / f"finished-{A}.parquet"
    blocked.mkdir()
    with pytest.raises(OSError, match="curves"):
        store.write_finished(A, finished_tables(A, RunConfig()))
    assert store.statuses() == {}
    assert [path.name for path in Path(store.folder("curves")).iterdir()] == [blocked.name]


def test_reading_goes_on_while_a_retry_makes_failures_good(store: RunStore, finished_tables: Tables) -> None:
    failed, finished = _failed_row(A, RunConfig()), finished_tables(A, RunConfig())

    def retry() -> None:
        for _ in range(60):
            store.write_failed(A, failed)
            store.write_finished(A, finished)
            (Path(store.folder("runs")) / f"finished-{A}.parquet").unlink()

    with ThreadPoolExecutor(1) as writer:
        done = writer.submit(retry)
        reads = 0
        while not done.done():
            assert len(store.read("runs")) <= 1
            assert len(store.rows("runs", ["run_id"])) <= 2
            reads += 1
        done.result()
    assert reads > 5


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "empty", "overwritten"])
def test_a_damaged_part_is_named(store: RunStore, finished_tables: Tables, damage: str) -> None:
    for run_id in (A, B):
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
    part = Path(store.folder("runs")) / f"finished-{B}.parquet"
    content = part.read_bytes()
    part.write_bytes({"cut": content[:-9], "empty": b"", "overwritten": b"\x00" * len(content)}[damage])
    for read in (lambda: store.read("runs"), lambda: store.rows("runs", ["run_id"])):
        with pytest.raises(DamagedStore) as raised:
            read()
        assert str(raised.value).startswith(f"{part}: not a whole Parquet file")
        assert "\n" not in str(raised.value)


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "results"):
        with pytest.raises(UsageError, match=r"^results .*file.*: cannot be written to"):
            RunStore(place).open_for_writing()


def test_a_file_system_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^results 'nothing://x': "):
        RunStore("nothing://x")


def test_a_recorded_run_takes_two_listings_however_many_processes_share_the_store(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process lists a folder that grows with the work of all; a network file system reads it anew each time."""
    listings: list[str] = []
    names = Files.names
    monkeypatch.setattr(
        Files, "names", lambda self, folder, *beginning: (listings.append(folder), names(self, folder, *beginning))[1]
    )
    processes = [RunStore(tmp_path / "results") for _ in range(4)]
    began = time.monotonic()
    for number in range(40):
        store = processes[number % len(processes)]
        run_id = f"{number:024x}"
        assert store.finished([run_id], lately=True) == set()
        store.write_finished(run_id, finished_tables(run_id, RunConfig(seed=number)))
        assert store.finished([run_id], lately=True) == {run_id}
    looks = 1 + (time.monotonic() - began) / 0.2
    assert len(listings) <= 2 * (40 + looks * len(processes))
    assert {Path(it).name for it in listings} == {"runs"}
