"""A store of version 0.2 gets the ids and columns of this version; every number stays, also after kills."""

from __future__ import annotations

import contextlib
import hashlib
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from stepping import Worker

from clops_sweep import RunConfig
from clops_sweep.errors import DamagedStore, OtherFormat, UsageError
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.plugins.registry import BUILT_IN
from clops_sweep.store import parts as parts_module
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.files import Files
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName
from clops_sweep.store.upkeep import rewriting as rewriting_module
from clops_sweep.store.upkeep.migration import migrate
from clops_sweep.store.upkeep.rewriting import finish_interrupted, same_rows
from clops_sweep.store.upkeep.verification import damages

Tables = Callable[..., dict[str, pa.Table]]
DATA = "a" * 64
TABLES: tuple[TableName, ...] = (*EVERY_RUN, "predictions")


def new_id(config: RunConfig) -> str:
    return config.run_id(DATA, 1)


def old_id(config: RunConfig) -> str:
    return hashlib.sha256(f"0.2 {new_id(config)}".encode()).hexdigest()[:24]


def row(config: RunConfig, run_id: str, **values: Any) -> pa.Table:
    """Return a row of `runs` as written by version 0.2."""
    from clops_sweep.experiment.columns import config_row

    found = {**config_row(config), "run_id": run_id, "data_hash": DATA, "semantics_version": 1, "lockstep": 3, **values}
    schema = SCHEMAS["runs"]
    return pa.Table.from_pylist([{name: found.get(name) for name in schema.names}], schema=schema)


def predictions(run_id: str) -> pa.Table:
    rows = [{"run_id": run_id, "trained_on": 1, "evaluated_on": 1, "instance": at} for at in range(3)]
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["predictions"])
    return table.append_column("probability_0", pa.array([0.25, float("nan"), 0.5], pa.float32()))


class Old:
    """A store as written by version 0.2: other ids, another name of a column, no version in its parts.

    Attributes:
        store: the store to write with.
        configs: configs of the finished runs, by new id.
    """

    def __init__(self, root: Path | str, tables: Tables) -> None:
        self.store = RunStore(root)
        self.configs: dict[str, RunConfig] = {}
        self._tables = tables
        files = self.store.files
        schema = SCHEMAS["runs"].set(SCHEMAS["runs"].get_field_index("lockstep"), pa.field("stack", pa.int64()))
        self._schemas = {**SCHEMAS, "runs": schema}
        self.store._parts = {name: PartFolder(files, self.store.folder(name), it) for name, it in self._schemas.items()}

    def write(self, config: RunConfig, auc: float = 0.5, run_id: str | None = None, **values: Any) -> None:
        """Record a finished run, with predictions."""
        run_id = run_id or old_id(config)
        tables = dict(self._tables(run_id, config, auc=auc))
        seconds = {"seconds": 2.5, "auc": auc, "bwt": float("nan")}
        tables["runs"] = self._renamed(row(config, run_id, status="finished", **seconds, **values))
        tables["predictions"] = predictions(run_id)
        with self._as_0_2():
            self.store.write_finished(run_id, tables)  # type: ignore[arg-type]
        self.configs[new_id(config)] = config

    def write_failed(self, config: RunConfig) -> None:
        """Record a failed run."""
        failed = self._renamed(row(config, old_id(config), status="failed", error="ValueError: no"))
        with self._as_0_2():
            self.store.write_failed(old_id(config), failed)

    def compact(self) -> None:
        """Compact the parts."""
        with self._as_0_2():
            self.store.compact()

    @contextlib.contextmanager
    def _as_0_2(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as context:
            context.setattr(parts_module, "FORMAT_MARK", "no version")
            context.setattr(parts_module, "FORMAT", 2)
            context.setitem(SCHEMAS, "runs", self._schemas["runs"])  # type: ignore[arg-type]
            yield

    @staticmethod
    def _renamed(table: pa.Table) -> pa.Table:
        return table.rename_columns(["stack" if name == "lockstep" else name for name in table.column_names])


@pytest.fixture
def old(tmp_path: Path, finished_tables: Tables) -> Old:
    """Four runs in compacted parts, two in single parts, and one that failed."""
    found = Old(tmp_path / "old", finished_tables)
    fill(found)
    return found


def fill(old: Old) -> None:
    for seed in range(6):
        old.write(RunConfig(seed=seed), auc=seed / 10)
        if seed == 3:
            old.compact()
    old.write_failed(RunConfig(seed=9))


def content(store: RunStore) -> dict[str, pa.Table]:
    return {table: RunStore(store.uri).table(table) for table in TABLES}


def check_migrated(root: str, configs: dict[str, RunConfig], tables: Tables, failed: bool = True) -> None:
    store = RunStore(root)
    seeds = {run_id: config.seed for run_id, config in configs.items()}
    expected = dict.fromkeys(seeds, "finished") | ({new_id(RunConfig(seed=9)): "failed"} if failed else {})
    assert store.statuses() == expected
    assert not store.is_from_0_2()
    assert damages(store) == []
    for found in store.rows("runs"):
        assert found["lockstep"] == 3
        assert found["status"] == "failed" or found["auc"] == seeds[found["run_id"]] / 10
    ids = sorted(seeds)
    for table in ("r_matrix", "curves", "instances"):
        wanted = [tables(run_id, configs[run_id], auc=seeds[run_id] / 10)[table] for run_id in ids]
        assert store.table(table).equals(pa.concat_tables(wanted))  # type: ignore[arg-type]
    assert same_rows(store.table("predictions"), pa.concat_tables(map(predictions, ids)))


def test_a_migrated_store_has_new_ids_and_the_same_numbers(old: Old, finished_tables: Tables) -> None:
    assert RunStore(old.store.uri).is_from_0_2()
    done = migrate(RunStore(old.store.uri))
    assert (done.runs, len(done.new_ids), done.dropped, done.unknown) == (7, 7, {}, {})
    check_migrated(old.store.uri, old.configs, finished_tables)
    before = content(old.store)
    again = migrate(RunStore(old.store.uri))
    assert (again.new_ids, again.parts) == ({}, 0)
    assert RunStore(old.store.uri).compact() > 0
    for table, rows in content(old.store).items():
        assert same_rows(rows, before[table])


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_before_any_file_operation_it_can_be_repeated(
    old: Old, finished_tables: Tables, tmp_path: Path, kills: int
) -> None:
    shutil.copytree(old.store.uri, tmp_path / "whole")
    whole, operations = Worker(str(tmp_path / "whole"), migrate), 0
    while not whole.done:
        whole.step()
        operations += 1
    assert operations > 100
    for deaths in random.Random(1).sample(range(operations), kills):
        root = tmp_path / "killed"
        shutil.copytree(old.store.uri, root)
        worker = Worker(str(root), migrate)
        worker.step(deaths)
        worker.kill()
        there = RunStore(root).recorded().keys()
        assert old.configs.keys() <= there or {old_id(it) for it in old.configs.values()} <= there
        migrate(RunStore(root))
        check_migrated(str(root), old.configs, finished_tables)
        shutil.rmtree(root)


MIGRATE = """
import sys
from clops_sweep.store.upkeep.migration import migrate
from clops_sweep.store.run_store import RunStore

print("ready", flush=True)
migrate(RunStore(sys.argv[1]))
"""


def test_a_killed_process_can_be_repeated(old: Old, finished_tables: Tables, tmp_path: Path) -> None:
    moments = random.Random(0)
    for attempt in range(3):
        root = tmp_path / f"killed-{attempt}"
        shutil.copytree(old.store.uri, root)
        command = [sys.executable, "-c", MIGRATE, str(root)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(moments.uniform(0, 0.1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        migrate(RunStore(root))
        check_migrated(str(root), old.configs, finished_tables)


def test_a_committed_change_is_finished_by_the_next_command(
    old: Old, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(rewriting_module, "finish", lambda store: None)
        migrate(RunStore(old.store.uri))  # killed right after the commit
    assert len(RunStore(old.store.uri).statuses()) == 7
    finish_interrupted(RunStore(old.store.uri))
    check_migrated(old.store.uri, old.configs, finished_tables)
    assert [path.name for path in (Path(old.store.uri) / ".work").iterdir() if path.is_file()] == ["rewriting"]


def test_of_equal_runs_the_one_that_finished_first_stays(old: Old, finished_tables: Tables) -> None:
    config = RunConfig(seed=20)
    late, early = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 2))
    old.write(config, 0.1, "b" * 24, started_at=late)
    old.write(config, 2.0, "c" * 24, started_at=early)
    old.compact()
    old.write(config, 0.2, "d" * 24, started_at=late)
    done = migrate(RunStore(old.store.uri))
    kept = new_id(config)
    assert done.dropped == {"b" * 24: kept, "d" * 24: kept}
    old.configs[kept] = RunConfig(seed=20)
    check_migrated(old.store.uri, old.configs, finished_tables)


def test_runs_of_unknown_plug_ins_keep_their_ids(old: Old) -> None:
    strange = "e" * 24
    old.write(RunConfig(seed=21), run_id=strange, strategy="of_another_file")
    old.compact()
    done = migrate(RunStore(old.store.uri))
    assert done.unknown == {"strategy 'of_another_file' not registered": 1}
    store = RunStore(old.store.uri)
    assert store.statuses()[strange] == "finished"
    assert len(store.read("r_matrix", strange)) == 36
    assert (len(done.new_ids), store.is_from_0_2()) == (7, False)


def test_columns_and_checkpoints_move_too(old: Old) -> None:
    failed = RunConfig(seed=9)
    CheckpointFile(old.store, [old_id(failed)]).save({"epoch": 3})
    migrate(RunStore(old.store.uri))
    store = RunStore(old.store.uri)
    assert CheckpointFile(store, [new_id(failed)]).load() == {"epoch": 3}
    assert not store.has_checkpoint([old_id(failed)])
    assert "stack" not in store.read("runs")


def test_without_room_on_the_disk_nothing_changes(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> list[Path]:
        return sorted(path for path in Path(old.store.uri).rglob("*.parquet"))

    before = files()
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UsageError, match=r"need about 1\.\d MB, and the disk has 0\.0 MB free"):
        migrate(RunStore(old.store.uri))
    monkeypatch.undo()

    def full(self: PartFolder, *arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PartFolder, "write_portions", full)
    with pytest.raises(UsageError, match=r"No space left on device\); nothing changed"):
        migrate(RunStore(old.store.uri))
    assert files() == before


def test_a_full_disk_after_the_commit_leaves_the_rest_to_the_next_command(
    old: Old, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Files, source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(Files, "move", full)
        for work in (migrate, finish_interrupted):
            with pytest.raises(UsageError, match="the change is committed, and the next command finishes it"):
                work(RunStore(old.store.uri))  # type: ignore[operator]
    finish_interrupted(RunStore(old.store.uri))
    check_migrated(old.store.uri, old.configs, finished_tables)


def test_a_damaged_part_stops_it_and_nothing_changes(old: Old) -> None:
    before = sorted(Path(old.store.uri).rglob("*.parquet"))
    part = next((Path(old.store.uri) / "curves").glob("finished-*"))
    part.write_bytes(part.read_bytes()[:-60])
    with pytest.raises(DamagedStore, match="not a whole Parquet file"):
        migrate(RunStore(old.store.uri))
    assert sorted(Path(old.store.uri).rglob("*.parquet")) == before


def test_a_forged_journal_deletes_nothing_outside_of_the_tables(old: Old, tmp_path: Path) -> None:
    victim = tmp_path / "finished-aa.parquet"
    victim.write_text("not yours")
    journal = Path(old.store.uri) / ".work" / "rewriting.json"
    journal.parent.mkdir(exist_ok=True)
    for table, name in (("..", victim.name), ("runs", f"../../{victim.name}"), ("runs", 3)):
        entry = f'"{name}"' if isinstance(name, str) else name
        journal.write_text(f'{{"added": [], "removed": [["{table}", {entry}]]}}')
        with pytest.raises(DamagedStore, match="is not what was written there"):
            migrate(RunStore(old.store.uri))
    assert victim.exists()


def test_a_store_at_work_is_not_rewritten(old: Old) -> None:
    store = RunStore(old.store.uri)
    with store.rewriting(shared=True), pytest.raises(UsageError, match="a sweep, a compaction or the like is at work"):
        migrate(RunStore(old.store.uri))
    with store.rewriting(), pytest.raises(UsageError, match="`delete` or `merge` is at work"):
        RunStore(old.store.uri).compact()


def test_an_old_store_is_recognised_where_it_would_be_written_to(old: Old) -> None:
    for write in (RunStore.open_for_writing, RunStore.compact, RunStore.check_format):
        with pytest.raises(OtherFormat, match=r"written by clops-sweep 0\.2, .* `clops-sweep migrate "):
            write(RunStore(old.store.uri))  # type: ignore[operator]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_newer_store_is_refused(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    store = RunStore(tmp_path)
    with monkeypatch.context() as context:
        context.setattr(parts_module, "FORMAT_MARK", "format 12 of clops-sweep's parts")
        for seed in range(2):
            store.write_finished(f"{seed:024x}", finished_tables(f"{seed:024x}", RunConfig(seed=seed)))  # type: ignore[arg-type]
        if compacted:
            context.setattr(parts_module, "FORMAT", 12)
            store.compact()
    works: list[Callable[[], object]] = [
        lambda: RunStore.named(str(tmp_path)),
        lambda: RunStore(tmp_path).read("r_matrix"),
        lambda: RunStore(tmp_path).compact(),
        lambda: damages(RunStore(tmp_path)),
    ]
    for work in works:
        with pytest.raises(OtherFormat, match=r"written by a newer version of clops-sweep \(format 12; "):
            work()


def test_a_store_written_by_version_0_2_keeps_every_number(tmp_path: Path) -> None:
    """Runs of the gallery in the documentation, one per strategy, scenario and `leads`."""
    root = tmp_path / "store"
    shutil.copytree(Path(__file__).parent / "store-0.2", root)
    before = {table: RunStore(root).table(table) for table in ("runs", "r_matrix")}
    done = migrate(RunStore(root))
    assert not RunStore(root).is_from_0_2()
    assert (len(done.new_ids), done.dropped, done.unknown) == (before["runs"].num_rows, {}, {})
    changed = [*BUILT_IN, "leads"]
    for table, rows in before.items():
        ids = [done.new_ids[it] for it in rows["run_id"].to_pylist()]
        renamed = rows.set_column(0, "run_id", pa.array(ids))
        expected = renamed.take(pa.compute.sort_indices(renamed["run_id"]))
        found = RunStore(root).table(table)
        kept = [name for name in expected.column_names if table != "runs" or name not in changed]
        assert same_rows(found.select(kept), expected.select(kept))
        if table == "runs":
            _check_changed(found.to_pylist(), expected.to_pylist())


def _check_changed(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    for now, before in zip(found, expected, strict=True):
        config = config_from_row(now)
        assert config == config_from_row(before)
        assert now["leads"] == {"one": "single", "all": "all"}[before["leads"]]
        assert config.run_id(now["data_hash"], now["semantics_version"]) == now["run_id"]
        for name in BUILT_IN:
            assert now[name] == (before[name] if name in config.options else None)


def test_values_are_compared_one_by_one() -> None:
    def table(*values: Any, lists: Any = ([1.0, float("nan")], None, [])) -> pa.Table:
        return pa.table({"a": pa.array(values, pa.float64()), "b": pa.array(lists, pa.list_(pa.float32()))})

    nan = float("nan")
    assert same_rows(table(1.0, nan, None), table(1.0, nan, None))
    for other in (table(1.0, nan, 0.0), table(1.0, 0.0, None), table(nan, 1.0, None), table(2.0, nan, None)):
        assert not same_rows(table(1.0, nan, None), other)
    lists = ([[1.0, 2.0], None, []], [[1.0], [nan], []], [[1.0, nan], [], []])
    for changed in lists:
        assert not same_rows(table(1.0, nan, None), table(1.0, nan, None, lists=changed))
