"""Compaction during writes, reads and other compactions, killed at any moment."""

from __future__ import annotations

import io
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from preloaded import Preloaded
from stepping import Worker

from clops_sweep import RunConfig
from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.columns import config_row
from clops_sweep.store import compaction as compaction_module
from clops_sweep.store.part_names import Part, parsed
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.upkeep import background
from clops_sweep.store.upkeep.background import BackgroundCompaction
from tests.conftest import MEMORY

Tables = Callable[..., dict[str, pa.Table]]

TABLES: tuple[TableName, ...] = ("runs", "r_matrix", "curves", "instances")


def _id(number: int) -> str:
    return f"{number:024x}"


def _failed(run_id: str) -> pa.Table:
    row = {"run_id": run_id, **config_row(RunConfig()), "status": "failed", "error": "ValueError: no"}
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"])


def _write(store: RunStore, numbers: range, tables: Tables) -> None:
    for number in numbers:
        store.write_finished(_id(number), tables(_id(number), RunConfig(seed=number), auc=number / 100))


def _content(store: RunStore) -> dict[TableName, pd.DataFrame]:
    return {name: store.read(name) for name in TABLES}


def _same(one: dict[TableName, pd.DataFrame], other: dict[TableName, pd.DataFrame]) -> None:
    for name in TABLES:
        pd.testing.assert_frame_equal(one[name], other[name])


def _parts(root: str | Path, table: str = "runs") -> list[str]:
    return sorted(path.name for path in (Path(root) / table).iterdir())


# --- what it does -----------------------------------------------------------------------------------------------------


def test_compaction_changes_nothing_but_the_number_of_files(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    _write(store, range(7), finished_tables)
    store.write_failed(_id(8), _failed(_id(8)))
    before, statuses = _content(store), store.statuses()
    assert store.compact() == 28
    for reader in (store, RunStore(tmp_path)):
        _same(_content(reader), before)
        assert reader.statuses() == statuses
    assert [name[:10] for name in _parts(tmp_path)] == ["compact-7-", "failed-000"]
    for name in TABLES:
        assert len(_parts(tmp_path, name)) == (2 if name == "runs" else 1)
        read = pd.read_parquet(tmp_path / name).sort_values("run_id", kind="stable", ignore_index=True)
        pd.testing.assert_frame_equal(read, before[name])
    assert store.compact() == 0
    some = [_id(5), _id(2), _id(8), _id(99)]
    for name in TABLES:
        expected = before[name][before[name]["run_id"].isin(some)].reset_index(drop=True)
        pd.testing.assert_frame_equal(store.read(name, some), expected)
        columns = ["auc"] if "auc" in expected else ["label", "stored"]
        pd.testing.assert_frame_equal(store.read(name, some, columns), expected[columns])


def test_what_comes_later_joins_small_compacted_parts(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    for start in (0, 3, 6):
        _write(store, range(start, start + 3), finished_tables)
        store.compact()
    assert [name[:10] for name in _parts(tmp_path)] == ["compact-9-"]
    assert store.read("runs")["seed"].tolist() == list(range(9))


def test_parts_have_a_largest_size(tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    _write(store, range(10), finished_tables)
    before = _content(store)
    monkeypatch.setattr(compaction_module, "RUNS_PER_PART", 4)
    store.compact()
    assert sorted(name[:10] for name in _parts(tmp_path)) == ["compact-2-", "compact-4-", "compact-4-"]
    _same(_content(store), before)


def test_large_parts_stay_as_they_are(tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    _write(store, range(3), finished_tables)
    store.write_finished(_id(3), finished_tables(_id(3), RunConfig(seed=3), instances=40_000))
    before = _content(store)
    monkeypatch.setattr(compaction_module, "LARGE", 60_000)
    store.compact()
    assert [name.split("-")[0] for name in _parts(tmp_path, "instances")] == ["compact", "finished"]
    assert [name[:10] for name in _parts(tmp_path, "runs")] == ["compact-4-"]
    _same(_content(store), before)


def test_a_sweep_compacts_when_there_are_many(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    for module in ("compaction", "run_store"):
        monkeypatch.setattr(f"clops_sweep.store.{module}.FEW", 4)
    _write(store, range(3), finished_tables)
    store.compact_if_many()
    assert len(_parts(tmp_path)) == 3
    _write(store, range(3, 4), finished_tables)
    store.compact_if_many()
    assert len(_parts(tmp_path)) == 1


def test_compacted_gradually_a_run_is_written_anew_once_a_level(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_module, "FEW", 3)
    monkeypatch.setattr(compaction_module, "RUNS_PER_PART", 9)
    monkeypatch.setattr("clops_sweep.store.run_store.FEW", 3)
    written: Counter[tuple[str, str]] = Counter()
    write = PartFolder.write_portions

    def counted(self: PartFolder, part: Part, portions: Iterable[pa.Table], run_ids: Iterable[str]) -> None:
        written.update((self.folder, run_id) for run_id in run_ids)
        write(self, part, portions, run_ids)

    monkeypatch.setattr(PartFolder, "write_portions", counted)
    store = RunStore(tmp_path)
    for number in range(31):
        _write(store, range(number, number + 1), finished_tables)
        store.compact_if_many()
        assert sorted(pd.read_parquet(tmp_path / "runs")["seed"]) == list(range(number + 1))
        parts = _parts(tmp_path)
        assert sum(name.startswith("finished-") for name in parts) < 3
        assert len(parts) <= number // 9 + 3 + 2
    assert set(written.values()) == {1, 2}
    assert [store.read(table)["run_id"].nunique() for table in TABLES] == [31] * 4
    assert sorted(part.runs for part in store.parts["curves"].listing().compacts) == [3, 9, 9, 9]


def test_parts_that_share_runs_become_one_however_large_they_are(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for numbers in (range(5), range(3, 7)):
        part = RunStore(tmp_path / str(numbers))
        _write(part, numbers, finished_tables)
        part.compact()
        shutil.copytree(part.uri, tmp_path / "store", dirs_exist_ok=True)
    monkeypatch.setattr(compaction_module, "RUNS_PER_PART", 3)
    store = RunStore(tmp_path / "store")
    before = _content(store)
    assert [name[:10] for name in _parts(store.uri)] == ["compact-4-", "compact-5-"]
    store.compact()
    assert [name[:10] for name in _parts(store.uri)] == ["compact-7-"]
    _same(_content(store), before)


def test_a_process_beside_a_sweep_compacts_its_store(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("compaction", "run_store", "upkeep.background"):
        monkeypatch.setattr(f"clops_sweep.store.{module}.FEW", 4)
    store = RunStore(tmp_path / "results")
    with BackgroundCompaction(store) as compaction:
        for number in range(4):
            assert compaction._process is None
            _write(store, range(number, number + 1), finished_tables)
            compaction.recorded(1)
        assert compaction._process is not None
    assert compaction._process.returncode == 0
    assert len(_parts(store.uri)) == 4  # these are few for that process
    monkeypatch.setattr(signal, "signal", lambda *arguments: None)
    monkeypatch.setattr(os, "nice", lambda by: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(store.uri))
    background.main()
    assert [name[:10] for name in _parts(store.uri)] == ["compact-4-"]


def test_what_a_killed_writer_left_is_not_put_together(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    _write(store, range(4), finished_tables)
    left = Worker(store.uri, lambda other: _write(other, range(9, 10), finished_tables))
    while f"finished-{_id(9)}.parquet" not in _parts(tmp_path, "curves"):
        left.step()
    left.kill()
    store.compact()
    assert f"finished-{_id(9)}.parquet" in _parts(tmp_path, "curves")
    assert _id(9) not in store.statuses()
    store.write_finished(_id(9), finished_tables(_id(9), RunConfig(seed=9), auc=0.5))  # repeated, so it counts
    assert store.read("r_matrix", [_id(9)])["auc"].tolist() == [0.5] * 36


def test_a_failure_made_good_goes(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    _write(store, range(2), finished_tables)
    store.write_failed(_id(5), _failed(_id(5)))
    late = (tmp_path / "runs" / f"failed-{_id(5)}.parquet").read_bytes()
    _write(store, range(5, 6), finished_tables)
    (tmp_path / "runs" / f"failed-{_id(5)}.parquet").write_bytes(late)  # by a driver that had listed parts before
    store.compact()
    assert [name[:10] for name in _parts(tmp_path)] == ["compact-3-"]


@pytest.mark.parametrize("damage", ["cut", "empty", "without its list of runs"])
def test_a_damaged_compacted_part_is_named_and_nothing_is_deleted(
    tmp_path: Path, finished_tables: Tables, damage: str
) -> None:
    store = RunStore(tmp_path)
    _write(store, range(4), finished_tables)
    store.compact()
    (part,) = (tmp_path / "runs").iterdir()
    content = part.read_bytes()
    if damage == "without its list of runs":
        pq.write_table(pq.read_table(part), part)
    else:
        part.write_bytes(content[:-50] if damage == "cut" else b"")
    _write_anyway(tmp_path, finished_tables)
    files = _parts(tmp_path)
    for work in (RunStore(tmp_path).statuses, RunStore(tmp_path).compact, lambda: RunStore(tmp_path).read("runs")):
        with pytest.raises(DamagedStore) as raised:
            work()
        assert str(raised.value).startswith(f"{part}: not a whole Parquet file")
    RunStore(tmp_path).compact_if_many()
    assert _parts(tmp_path) == files


def _write_anyway(root: Path, tables: Tables) -> None:
    """Write two runs by a writer that had listed the parts before the damage."""
    elsewhere = RunStore(root / "elsewhere")
    _write(elsewhere, range(20, 22), tables)
    for path in (root / "elsewhere" / "runs").iterdir():
        shutil.move(path, root / "runs" / path.name)


# --- kills and concurrency --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_before_any_file_operation_nothing_is_lost(tmp_path: Path, finished_tables: Tables, every: int) -> None:
    full = RunStore(tmp_path / "full")
    _write(full, range(2), finished_tables)
    full.compact()
    _write(full, range(2, 4), finished_tables)
    before = _content(full)
    for deaths in itertools.count(step=every):
        root = tmp_path / f"killed-{deaths}"
        shutil.copytree(full.uri, root)
        worker = Worker(str(root), RunStore.compact)
        worker.step(deaths)
        if worker.done:
            break
        worker.kill()
        for name in TABLES:
            assert RunStore(root).read(name, columns=["run_id"])["run_id"].equals(before[name]["run_id"])
        RunStore(root).compact()
        _same(_content(RunStore(root)), before)
        assert [[part[:10] for part in _parts(root, name)] for name in TABLES] == [["compact-4-"]] * 4
        shutil.rmtree(root)
    assert deaths > 40, "hardly any operation was looked at"


COMPACTOR = """
import sys
from clops_sweep.store.run_store import RunStore
from pathlib import Path
import shutil

root, source = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while True:
    RunStore(root).compact()
    for table in ("r_matrix", "curves", "instances", "runs"):  # as if all had been written anew, the compacted last
        for part in (source / table).iterdir():
            shutil.copy(part, root / table / f".{part.name}")
            (root / table / f".{part.name}").rename(root / table / part.name)
"""


def test_a_compaction_that_is_killed_at_any_moment_loses_nothing(
    tmp_path: Path, finished_tables: Tables, environment: dict[str, str], commands: Preloaded
) -> None:
    _write(RunStore(tmp_path / "source"), range(20), finished_tables)
    results = tmp_path / "results"
    shutil.copytree(tmp_path / "source", results)
    before = _content(RunStore(results))
    moments = random.Random(0)
    for _ in range(2):
        compactor = commands.start(tmp_path, environment, str(results), str(tmp_path / "source"), program=COMPACTOR)
        try:
            assert compactor.stdout.readline() == "ready\n"
            end = time.monotonic() + moments.uniform(0.05, 0.3)
            while time.monotonic() < end:  # also during a compaction
                assert set(RunStore(results).statuses().values()) == {"finished"}
                assert len(RunStore(results).statuses()) == 20
                assert len(RunStore(results).read("runs")) == 20
        finally:
            compactor.send_signal(signal.SIGKILL)
            compactor.communicate()
        _same(_content(RunStore(results)), before)
    RunStore(results).compact()
    assert [name[:11] for name in _parts(results) if not name.startswith(".")] == ["compact-20-"]


def test_two_compactions_at_the_same_moment(tmp_path: Path, finished_tables: Tables) -> None:
    """One lists the runs before two more are finished, the other afterwards; both merge them."""
    store = RunStore(tmp_path)
    _write(store, range(4), finished_tables)
    early = Worker(store.uri, RunStore.compact)
    early.step(12)
    _write(store, range(4, 6), finished_tables)
    before = _content(store)
    late = Worker(store.uri, RunStore.compact)
    while not any(name.startswith(".compact-6-") for name in _parts(tmp_path)):
        late.step()  # it has read everything into memory
    early.finish()
    assert next(name[:10] for name in _parts(tmp_path) if name.endswith(".parquet")) == "compact-4-"
    _same(_content(RunStore(tmp_path)), before)
    late.finish()
    _same(_content(RunStore(tmp_path)), before)
    store.compact()
    for name in TABLES:
        assert [part[:10] for part in _parts(tmp_path, name)] == ["compact-6-"]
    _same(_content(store), before)


def test_a_compaction_between_the_writing_and_the_deleting_of_another(tmp_path: Path, finished_tables: Tables) -> None:
    """Of two parts with the same runs, both must choose the same one to keep."""
    store = RunStore(tmp_path)
    for numbers in (range(2), range(2, 4)):
        elsewhere = RunStore(tmp_path / "elsewhere" / str(numbers))
        _write(elsewhere, numbers, finished_tables)
        elsewhere.compact()
        shutil.copytree(elsewhere.uri, tmp_path, dirs_exist_ok=True)
    before = _content(store)
    assert [name[:10] for name in _parts(tmp_path)] == ["compact-2-", "compact-2-"]
    one = Worker(store.uri, RunStore.compact)
    while len(_parts(tmp_path)) < 3 or any(name.startswith(".") for name in _parts(tmp_path)):
        one.step()
    other = Worker(store.uri, RunStore.compact)
    while len(_parts(tmp_path)) == 3 and not other.done:
        other.step()  # it has deleted a part
    one.finish()
    _same(_content(RunStore(tmp_path)), before)
    other.finish()
    _same(_content(RunStore(tmp_path)), before)


def test_runs_that_are_put_together_while_the_folder_is_listed_are_found(
    tmp_path: Path, finished_tables: Tables
) -> None:
    store = RunStore(tmp_path)
    _write(store, range(3), finished_tables)
    found: list[object] = []
    reader = Worker(store.uri, lambda other: found.extend([other.statuses(), other.read("runs")["seed"].tolist()]))
    reader.step()  # it has listed the parts of single runs, and must miss the one that appears now
    store.compact()
    reader.finish()
    assert found == [store.statuses(), [0, 1, 2]]


def test_runs_that_are_in_several_compacted_parts_count_once(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path / "store")
    _write(store, range(9), finished_tables)
    before = _content(store)
    shutil.rmtree(tmp_path / "store")
    for numbers in (range(4), range(2, 7), range(6, 8), range(3, 5)):
        part = RunStore(tmp_path / str(numbers))
        _write(part, numbers, finished_tables)
        part.compact()
        shutil.copytree(part.uri, tmp_path / "store", dirs_exist_ok=True)
    _write(store, range(8, 9), finished_tables)
    assert len(_parts(store.uri)) == 5
    _same(_content(store), before)
    few = [_id(number) for number in (2, 4, 6, 8)]
    assert store.read("curves", few)["run_id"].tolist() == [one for one in few for _ in range(6)]
    store.compact()
    _same(_content(store), before)
    RunStore(store.uri).compact()
    assert [name[:10] for name in _parts(store.uri)] == ["compact-9-"]
    _same(_content(store), before)


class Neighbours(RuleBasedStateMachine):
    """Writers and compactions of one store, whose file operations interleave in any order; any of them may be
    killed."""

    RUNS = 6

    def __init__(self, finished_tables: Tables) -> None:
        super().__init__()
        self.tables = finished_tables
        self.folder = tempfile.mkdtemp(prefix="clops-sweep-test-", dir=MEMORY)
        self.workers: list[tuple[int | None, Worker]] = []
        self.begun: set[int] = set()
        self.finished: set[int] = set()

    def teardown(self) -> None:
        for _, worker in self.workers:
            worker.kill()
        shutil.rmtree(self.folder)

    @rule(number=st.integers(0, RUNS - 1))
    def somebody_writes_a_run(self, number: int) -> None:
        self.begun.add(number)
        tables = self.tables(_id(number), RunConfig(seed=number), auc=number / 100)
        self.workers.append((number, Worker(self.folder, lambda store: store.write_finished(_id(number), tables))))

    @rule(numbers=st.sets(st.integers(0, RUNS - 1), min_size=1))
    def runs_are_written(self, numbers: set[int]) -> None:
        for number in numbers:
            self.somebody_writes_a_run(number)
            self.workers[-1][1].finish()
            self._settle()

    @rule(gradually=st.booleans())
    def somebody_compacts(self, gradually: bool) -> None:
        self.workers.append((None, Worker(self.folder, lambda store: store.compact(gradually=gradually))))

    @rule()
    def somebody_reads(self) -> None:
        at_least = {_id(number) for number in self.finished}

        def read(store: RunStore) -> None:
            assert at_least <= store.statuses().keys()
            assert at_least <= store.finished(sorted(at_least))
            assert at_least <= set(store.read("runs", columns=["run_id"])["run_id"])

        self.workers.append((None, Worker(self.folder, read)))

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), operations=st.integers(1, 25))
    def one_goes_on(self, data: st.DataObject, operations: int) -> None:
        data.draw(st.sampled_from(self.workers))[1].step(operations)
        self._settle()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def one_is_killed(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.workers) - 1))
        self.workers.pop(index)[1].kill()

    @rule(name=st.sampled_from(TABLES), number=st.integers(0, RUNS - 1))
    def a_killed_process_has_left_half_a_file(self, name: str, number: int) -> None:
        (Path(self.folder) / name).mkdir(exist_ok=True)
        (Path(self.folder) / name / f".finished-{_id(number)}.parquet.0").write_bytes(b"PAR1")

    def _settle(self) -> None:
        for number, worker in self.workers:
            if worker.done and number is not None:
                self.finished.add(number)
        self.workers = [(number, worker) for number, worker in self.workers if not worker.done]

    @invariant()
    def every_finished_run_is_there_once(self) -> None:
        store = RunStore(self.folder)
        there = {int(run_id, 16) for run_id, status in store.statuses().items() if status == "finished"}
        assert self.finished <= there <= self.begun
        self.finished = there  # a run that was seen finished stays finished
        assert {int(run_id, 16) for run_id in store.finished([_id(number) for number in range(self.RUNS)])} == there
        ids = sorted(map(_id, there))
        assert store.read("runs")["run_id"].tolist() == ids
        for name, rows in (("r_matrix", 36), ("curves", 6), ("instances", 3)):
            assert store.read(name, ids, ["run_id"])["run_id"].tolist() == [one for one in ids for _ in range(rows)]
        assert store.read("r_matrix", ids).groupby("run_id")["auc"].mean().round(9).tolist() == [
            number / 100 for number in sorted(there)
        ]


@pytest.mark.parametrize("histories", [5, pytest.param(30, marks=pytest.mark.slow)])
def test_neighbours_do_not_harm_each_other(
    finished_tables: Tables, monkeypatch: pytest.MonkeyPatch, histories: int
) -> None:
    for module in ("compaction", "run_store"):
        monkeypatch.setattr(f"clops_sweep.store.{module}.FEW", 2)
    monkeypatch.setattr(compaction_module, "RUNS_PER_PART", 4)
    run_state_machine_as_test(
        lambda: Neighbours(finished_tables),
        settings=settings(max_examples=histories, stateful_step_count=20, suppress_health_check=list(HealthCheck)),
    )


def test_readers_go_on_while_runs_are_written_and_put_together(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    store.open_for_writing()
    written = 0

    def work() -> None:
        nonlocal written
        for start in range(0, 32, 4):
            _write(store, range(start, start + 4), finished_tables)
            written = start + 4
            RunStore(tmp_path).compact()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        looks = 0
        while not done.done():
            at_least = written
            reader = RunStore(tmp_path)
            assert at_least <= len(reader.statuses()) <= written + 4
            assert at_least <= len(reader.read("runs", columns=["run_id"])["run_id"].unique())
            assert not reader.read("runs", columns=["run_id"])["run_id"].duplicated().any()
            looks += 1
        done.result()
    assert looks > 5
    assert [parsed(name).runs for name in _parts(tmp_path)] == [32]  # type: ignore[union-attr]
