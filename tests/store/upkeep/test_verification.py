"""Damaged parts are always detected and set aside, and their runs are pending again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.errors import DamagedStore, UsageError
from clops_sweep.store.part_bytes import UNSEALED, sealed
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.verification import damages, faults, without_damage

Tables = Callable[..., dict[str, pa.Table]]
TABLES = ("runs", "r_matrix", "curves", "instances")
IDS = [letter * 24 for letter in "abcd"]


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Four finished runs."""
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    for run_id in IDS:
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
    return store


def _part(store: RunStore, table: str) -> Path:
    """Return the first run's part, or the one that all share."""
    return min(Path(store.folder(table)).iterdir())  # type: ignore[arg-type]


def _everything(store: RunStore) -> dict[str, pa.Table]:
    return {table: store.table(table) for table in TABLES}  # type: ignore[arg-type]


def _flip(path: Path, position: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize("table", TABLES)
def test_every_flipped_bit_of_a_run_is_seen(store: RunStore, table: str) -> None:
    path = _part(store, table)
    whole = path.read_bytes()
    draw = random.Random(table)
    positions = [*range(0, len(whole), 111), *range(len(whole) - 20, len(whole))]
    for position in positions:
        _flip(path, position, draw.randrange(8))
        with pytest.raises(DamagedStore, match=path.name):
            RunStore(store.uri).table(table, [IDS[0]])  # type: ignore[arg-type]
        path.write_bytes(whole)
    assert damages(RunStore(store.uri)) == []


@pytest.mark.parametrize("table", TABLES)
def test_every_flipped_bit_of_a_compacted_part_is_found_by_a_check(store: RunStore, table: str) -> None:
    store.compact()
    path = _part(store, table)
    whole = path.read_bytes()
    draw = random.Random(table)
    for position in [*range(0, len(whole), 291), *range(len(whole) - 10, len(whole))]:
        _flip(path, position, draw.randrange(8))
        (found,) = damages(RunStore(store.uri))
        assert found.table == table
        assert path.name in found.reason
        path.write_bytes(whole)


@pytest.mark.parametrize("table", TABLES)
def test_no_flipped_bit_of_a_footer_changes_what_is_read(store: RunStore, table: str) -> None:
    """Parquet has no checksum of its footer, so statistics, offsets and the list of runs could be wrong."""

    def answers() -> list[object]:
        fresh = RunStore(store.uri)
        tables = [fresh.table(table), fresh.table(table, IDS[1:3]), fresh.table(table, columns=["run_id"])]  # type: ignore[arg-type]
        return [*(it.to_pylist() for it in tables), fresh.statuses()]

    store.compact()
    path = _part(store, table)
    expected, whole = answers(), path.read_bytes()
    draw = random.Random(table)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused: list[str] = []
    positions = draw.sample(range(footer - 100, len(whole)), 250)
    for position in positions:
        _flip(path, position, draw.randrange(8))
        try:
            assert answers() == expected, position
        except DamagedStore as error:
            refused.append(str(error))
        path.write_bytes(whole)
    assert len(refused) > len(positions) * 0.7
    assert not any("\n" in sentence for sentence in refused)


def test_a_compacted_part_without_a_digest_of_its_footer_is_read_whole(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions wrote no digest."""
    expected = _everything(store)
    store.compact()
    path = _part(store, "curves")
    sink = pa.BufferOutputStream()
    metadata = pq.read_metadata(path).metadata
    with pq.ParquetWriter(sink, expected["curves"].schema, write_page_checksum=True) as writer:
        writer.write_table(expected["curves"])
        writer.add_key_value_metadata({"clops_sweep.run_ids": metadata[b"clops_sweep.run_ids"], "digest": UNSEALED})
    with monkeypatch.context() as before:
        before.setattr("clops_sweep.store.part_bytes._OF_FOOTER", b"")
        whole = sealed(sink.getvalue(), f"curves/{path.name}")
    path.write_bytes(whole)
    assert _everything(RunStore(store.uri)) == expected
    assert damages(RunStore(store.uri)) == []
    assert RunStore(store.uri).statuses() == dict.fromkeys(IDS, "finished")
    for position in range(len(whole) - int.from_bytes(whole[-8:-4], "little") - 8, len(whole), 11):
        _flip(path, position, 2)
        with pytest.raises(DamagedStore, match=path.name):
            RunStore(store.uri).table("curves", IDS[:1])
        path.write_bytes(whole)


@pytest.mark.parametrize("harm", ["flipped", "gone"])
def test_columns_of_plug_ins_are_not_lost_with_the_file_that_lists_them(
    store: RunStore, finished_tables: Tables, harm: str
) -> None:
    for run_id, count in zip(("e" * 24, "f" * 24), (1, 2), strict=True):
        tables = finished_tables(run_id, RunConfig())
        tables["runs"] = tables["runs"].append_column("seen", pa.array([count]))
        store.write_finished(run_id, tables)  # type: ignore[arg-type]
    path = Path(store.folder("runs"), "all-columns.parquet")
    whole = path.read_bytes()
    if harm == "flipped":
        refused = []
        for position in range(len(whole)):
            _flip(path, position, 1)
            try:
                assert RunStore(store.uri).table("runs", columns=["seen"])["seen"].drop_null().to_pylist() == [1, 2]
            except DamagedStore as error:
                refused.append(str(error))
            path.write_bytes(whole)
        assert len(refused) > len(whole) / 2
        assert all(sentence.startswith(f"{path}: damaged (") for sentence in refused)
        _flip(path, len(whole) // 2, 1)
        assert [fault.partition(":")[0] for fault in faults(RunStore(store.uri))] == [str(path)]
    else:
        path.unlink()
        said = "has columns that all-columns.parquet does not list (['seen']); `clops-sweep compact` lists them"
        assert [fault.partition(": ")[2] for fault in faults(RunStore(store.uri))] == [said, said]
    RunStore(store.uri).compact()
    assert RunStore(store.uri).table("runs", columns=["seen"])["seen"].drop_null().to_pylist() == [1, 2]
    assert path.read_bytes() == whole
    assert list(faults(RunStore(store.uri))) == []


@pytest.mark.parametrize("compacted", [False, True])
def test_pages_are_checked_when_some_runs_are_read(store: RunStore, compacted: bool) -> None:
    if compacted:
        store.compact()
    path = _part(store, "curves")
    expected = _everything(store)["curves"]
    seen = 0
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    positions = range(4, len(whole) - footer, 5)
    for position in positions:
        _flip(path, position, 3)
        try:
            assert RunStore(store.uri).table("curves").equals(expected)
        except DamagedStore:
            seen += 1
        path.write_bytes(whole)
    assert seen > len(positions) / 2


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("harm", ["flipped", "cut", "empty", "foreign", "gone"])
@pytest.mark.parametrize("table", TABLES)
def test_a_launch_sets_it_aside_and_the_runs_are_pending(
    store: RunStore, finished_tables: Tables, table: str, harm: str, compacted: bool
) -> None:
    if compacted:
        store.compact()
    expected = _everything(store)
    path = _part(store, table)
    harmed = path.read_bytes()
    if harm == "flipped":
        _flip(path, len(harmed) // 2, 0)
    elif harm == "foreign":  # complete, but written by another program
        pq.write_table(pa.table({"run_id": IDS if compacted else IDS[:1]}), path)
    elif harm == "gone":
        path.unlink()
    else:
        path.write_bytes(harmed[: len(harmed) // 2 * (harm == "cut")])
    if harm != "gone":
        harmed = path.read_bytes()
    store = RunStore(store.uri)
    said: list[str] = []
    assert without_damage(store, IDS, said.append) == (harm != "gone")
    assert len(said) == (harm != "gone")
    assert all(path.name in text and "\n" not in text for text in said)
    lost = set(IDS if compacted else IDS[:1])
    assert store.statuses() == dict.fromkeys(sorted(set(IDS) - lost), "finished")
    assert store.finished(IDS) == set(IDS) - lost
    kept = [file.read_bytes() for file in Path(store.work_folder, "damaged").glob("*")]
    assert kept == ([] if harm == "gone" else [harmed])
    for run_id in lost:
        store.write_finished(run_id, finished_tables(run_id, RunConfig()))
    assert _everything(RunStore(store.uri)) == expected
    assert not without_damage(RunStore(store.uri), IDS, said.append)
    store.compact()
    assert _everything(RunStore(store.uri)) == expected


def test_what_was_whole_and_has_not_changed_is_not_read_again(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    verify = type(store.parts["runs"]).verify

    def counted(self: object, part: object) -> None:
        read.append(part.name)  # type: ignore[attr-defined]
        verify(self, part)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.parts["runs"]), "verify", counted)
    for expected in (2 * 4, 0):
        read.clear()
        assert damages(RunStore(store.uri), IDS[:2]) == []
        assert len(read) == expected
    path = _part(store, "curves")
    before = path.stat()
    _flip(path, 50, 1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    read.clear()
    (found,) = damages(RunStore(store.uri), IDS[:2])
    assert (found.table, read) == ("curves", [path.name])
    assert len(damages(RunStore(store.uri))) == 1  # for all runs, every part is read


def test_a_compaction_believes_no_list_of_runs_that_its_rows_do_not_bear_out(store: RunStore) -> None:
    """Without the check, a part that claimed many runs would make a compaction delete theirs."""
    crafted = Path(store.folder("runs"), f"compact-9999-{'0' * 16}.parquet")
    table = store.table("runs")
    with pq.ParquetWriter(crafted, table.schema) as writer:
        writer.write_table(table.slice(0, 1))
        writer.add_key_value_metadata({"clops_sweep.run_ids": ",".join(IDS)})
    before = {path: path.read_bytes() for path in Path(store.uri).rglob("*.parquet")}
    with pytest.raises(DamagedStore, match=crafted.name):
        RunStore(store.uri).compact()
    assert {path: path.read_bytes() for path in Path(store.uri).rglob("*.parquet")} == before
    assert without_damage(RunStore(store.uri), IDS, lambda text: None)
    assert not crafted.exists()
    assert RunStore(store.uri).compact() == 4 * 4
    assert RunStore(store.uri).table("runs").equals(table)


def test_a_damaged_part_is_not_put_together_with_others(store: RunStore) -> None:
    path = _part(store, "instances")
    _flip(path, 60, 2)
    with pytest.raises(DamagedStore, match=path.name):
        RunStore(store.uri).compact()
    assert path.exists()


def test_the_command_says_what_is_damaged_and_changes_nothing(store: RunStore) -> None:
    def check(status: int) -> list[str]:
        done = CliRunner().invoke(command, ["check", "--results", store.uri])
        assert done.exit_code == status, done.output
        return done.output.splitlines()

    assert check(0) == [f"every part in {store.uri} is intact: 4 runs"]
    path = _part(store, "curves")
    _flip(path, 50, 1)
    _part(store, "instances").unlink()
    before = {path: path.read_bytes() for path in Path(store.uri).rglob("*") if path.is_file()}
    damaged, incomplete = check(1)
    assert damaged.startswith(f"{path}: not a whole Parquet file (it is not what was written there); ")
    assert incomplete == f"run {IDS[0]}: it has no part in instances; a launch that requests it computes it again"
    assert {path: path.read_bytes() for path in Path(store.uri).rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("compacted", [False, True])
def test_a_check_goes_on_behind_what_it_cannot_read(
    store: RunStore, without_privilege: list[str], console_script: str, compacted: bool
) -> None:
    if compacted:
        store.compact()
    locked, damaged = _part(store, "runs"), _part(store, "instances")
    locked.chmod(0)
    _flip(damaged, 60, 1)
    before = {path: path.stat().st_mtime_ns for path in Path(store.uri).rglob("*")}
    done = subprocess.run(
        [*without_privilege, console_script, "check", "--results", store.uri], capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    assert first == f"{locked}: permission is denied; make it a file that can be read"
    assert second.startswith(f"{damaged}: not a whole Parquet file (")
    assert (done.returncode, done.stderr) == (1, "")
    Path(store.folder("curves")).chmod(0)
    done = subprocess.run(
        [*without_privilege, console_script, "check", "--results", store.uri], capture_output=True, text=True
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 3)
    Path(store.folder("curves")).chmod(0o755)
    assert {path: path.stat().st_mtime_ns for path in Path(store.uri).rglob("*")} == before


@pytest.mark.parametrize("step", [-10 * 365 * 86_400, -1, 0, 10 * 365 * 86_400])
def test_a_part_that_was_whole_is_not_trusted_by_its_size_and_time_alone(store: RunStore, step: int) -> None:
    """After a restored backup of a damaged part or a clock change, the size is equal and the time arbitrary."""
    assert damages(RunStore(store.uri), IDS) == []
    path = _part(store, "curves")
    before = path.stat()
    _flip(path, 50, 1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + step * 10**9))
    (found,) = damages(RunStore(store.uri), IDS)
    assert found.part.name == path.name


def test_an_older_backup_over_a_store_gives_nothing_wrong(
    store: RunStore, finished_tables: Tables, tmp_path: Path
) -> None:
    """The restored files keep their times and are all older than the others; some parts exist again."""
    expected = _everything(store)
    shutil.copytree(store.uri, tmp_path / "singles")
    store.compact()
    shutil.copytree(store.uri, tmp_path / "compacted")
    later = [letter * 24 for letter in "ef"]
    for run_id in later:
        store.write_finished(run_id, finished_tables(run_id, RunConfig(), auc=0.5))
    store.compact()
    complete = _everything(store)
    assert damages(RunStore(store.uri), [*IDS, *later]) == []
    shutil.copytree(store.uri, tmp_path / "now")
    for backup in ("singles", "compacted"):  # everything old beside everything new
        shutil.copytree(tmp_path / backup, store.uri, dirs_exist_ok=True)
        assert _everything(RunStore(store.uri)) == complete
    shutil.rmtree(store.folder("curves"))  # one table old, the others new
    shutil.copytree(tmp_path / "compacted" / "curves", store.folder("curves"))
    assert RunStore(store.uri).statuses() == dict.fromkeys(IDS, "finished")
    assert damages(RunStore(store.uri), [*IDS, *later]) == []
    assert RunStore(store.uri).table("curves").equals(expected["curves"])
    for run_id in later:
        store.write_finished(run_id, finished_tables(run_id, RunConfig(), auc=0.5))
    RunStore(store.uri).compact()
    assert _everything(RunStore(store.uri)) == complete
    assert list(faults(RunStore(store.uri))) == []


def test_what_cannot_be_set_aside_is_said(store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _flip(_part(store, "runs"), 50, 1)
    Path(store.work_folder).mkdir(exist_ok=True)
    Path(store.work_folder, "damaged").write_text("a file")
    with pytest.raises(UsageError, match=r"it cannot be set aside \("):
        without_damage(RunStore(store.uri), IDS, pytest.fail)


@pytest.mark.parametrize("compacted", [False, True])
def test_what_may_not_be_read_is_not_damaged(store: RunStore, without_privilege: list[str], compacted: bool) -> None:
    if compacted:
        store.compact()
    path = _part(store, "runs")
    path.chmod(0)
    code = "import sys; from clops_sweep import read; read(sys.argv[1])"
    said = subprocess.run(
        [*without_privilege, sys.executable, "-c", code, store.uri], capture_output=True, text=True
    ).stderr.splitlines()[-1]
    assert said.endswith(f"UnreadableFile: {path}: permission is denied; make it a file that can be read")
