"""A kill, or a full disk, at every file operation of every change of a store loses nothing and doubles nothing."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clops_sweep import merge
from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.merging import merge_runs
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import delete_checkpoints, delete_runs, files_of_no_run, without_damage
from clops_sweep.store.upkeep import faults as damages
from clops_sweep.store.writing import merge_parts
from tests.helpers.at_night import mostly_at_night
from tests.helpers.contents import Killed, Tables, add, content, equal, failed_row, faults, id_of, raw

Change = Callable[[RunStore], object]


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Runs 0 to 3 with predictions, 4 to 6 without; 7 failed."""
    store = RunStore(tmp_path / "store")
    store.open_for_writing()
    for first, last in ((0, 2), (2, 4), (4, 7)):
        for number in range(first, last):
            add(store, number, finished_tables, predicted=int(last <= 4))
        store.flush()
    store.add(id_of(7), {"runs": failed_row(7)})
    store.flush()
    return store


def changes(tmp_path: Path, tables: Tables) -> dict[str, Change]:
    def flush(store: RunStore) -> None:
        add(store, 7, tables)  # it replaces the failure
        add(store, 8, tables, predicted=2, mine=3)  # and this one brings columns that the other parts lack
        store.flush()

    def merged(store: RunStore) -> None:
        with store.locked():
            merge_parts(store.parts)

    def copied(store: RunStore) -> None:
        merge_runs(store, RunStore(tmp_path / "other"))

    return {
        "flush": flush,
        "merge parts": merged,
        "delete": lambda store: delete_runs(store, [id_of(number) for number in (1, 4, 5, 6, 7)]),
        "copy": copied,
    }


@pytest.mark.parametrize(
    ("name", "every"),
    mostly_at_night([("flush", 4), ("flush", 1), ("merge parts", 1), ("delete", 1), ("copy", 1)], lambda it: it[1] > 1),
)
def test_a_kill_at_every_file_operation_and_a_repetition(
    store: RunStore, tmp_path: Path, finished_tables: Tables, name: str, every: int
) -> None:
    """A kill at each file operation, or at every fourth one, the last one among them."""
    other = RunStore(tmp_path / "other")
    other.open_for_writing()
    add(other, 6, finished_tables, predicted=1)
    add(other, 9, finished_tables, mine=1.5)
    other.flush()
    change = changes(tmp_path, finished_tables)[name]
    before = content(store)

    def copy(place: str) -> RunStore:
        shutil.rmtree(tmp_path / place, ignore_errors=True)
        shutil.copytree(store.uri, tmp_path / place)
        return RunStore(tmp_path / place)

    whole = copy("whole")
    with faults(10_000) as operations:
        change(whole)
    expected = content(whole)
    assert not equal(expected, before) or name == "merge parts"
    assert equal(raw(whole), expected)
    count, full = len(operations), OSError(errno.ENOSPC, "No space left on device")
    assert count >= 8
    for at in range((count - 1) % every, count, every):
        killed = copy("killed")
        with faults(at), pytest.raises(Killed):
            change(killed)
        again = RunStore(killed.uri)
        again.open_for_writing()  # as the next launch does
        change(again)
        found = content(again)
        assert equal(found, expected), (at, operations[at])
        assert equal(raw(again), found), (at, operations[at])
        if at % 4 == 0 or every > 1:
            failing = copy("failing")
            with faults(at, lambda: full), pytest.raises((OSError, UsageError), match="No space left on device"):
                change(failing)
            change(failing)  # the same process tries again
            RunStore(failing.uri).open_for_writing()
            assert equal(raw(failing), expected), (at, operations[at])
    assert list(damages(RunStore(again.uri))) == []


def test_deleted_runs_lose_their_checkpoints(store: RunStore) -> None:
    paths = [Path(store.uri) / store.checkpoint_path(id_of(number)) for number in (1, 2, 99)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"checkpoint")
    assert delete_runs(store, [id_of(1), id_of(99)]) == 1  # the run of a pruned trial has no row
    assert [path.exists() for path in paths] == [False, True, False]


def test_the_checkpoint_of_a_run_that_another_launch_computes_stays(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(store.uri) / store.checkpoint_path(id_of(99))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"checkpoint")
    under_way = [UnderWay(id_of(99), "a trial of a search")]
    launch = LaunchFile(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        launch.begin([])
        launch.write(under_way)
    delete_checkpoints(store, [id_of(99)])
    assert path.exists()
    launch.write(under_way)  # by this process: its file is older than the end of the run
    delete_checkpoints(store, [id_of(99)])
    assert not path.exists()


@pytest.mark.nightly
def test_every_flipped_bit_is_noticed_or_harmless(store: RunStore, tmp_path: Path) -> None:
    before = content(store)
    files = list(Path(store.uri).rglob("*.parquet"))
    for path in files:
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 3)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(UsageError, match=path.name):
                content(store)
        path.write_bytes(whole)
    marks = Path(store.work_folder) / "verified.json"
    text = marks.read_bytes()
    for at in range(3, len(text), len(text) // 8):
        marks.write_bytes(text[:at] + bytes([text[at] ^ 4]) + text[at + 1 :])
        assert equal(content(store), before)


@pytest.mark.nightly
def test_two_writers_of_the_same_runs(store: RunStore, finished_tables: Tables) -> None:
    writers = [RunStore(store.uri) for _ in range(2)]
    for writer in writers:
        writer.open_for_writing()
    for number in range(8, 14):
        for writer in writers:
            add(writer, number, finished_tables, mine=number)
        for writer in writers if number % 2 else reversed(writers):
            writer.flush()
    assert content(store)["runs"]["run_id"].to_pylist() == [id_of(number) for number in range(14)]
    assert equal(raw(store), content(store))


@pytest.mark.nightly
def test_copied_stores_are_read_whole_and_what_is_doubled_is_named(
    store: RunStore, tmp_path: Path, finished_tables: Tables
) -> None:
    """As `cp` and rsync copy them: the parts of several stores in one folder."""
    other = RunStore(tmp_path / "other")
    other.open_for_writing()
    for number in (20, 21):
        add(other, number, finished_tables)
    other.flush()
    shutil.copytree(other.uri, store.uri, dirs_exist_ok=True)
    assert equal(raw(store), content(store))
    assert len(content(store)["runs"]) == 10
    assert list(damages(RunStore(store.uri))) == []
    third = RunStore(tmp_path / "third")
    third.open_for_writing()
    for number in (3, 22):
        add(third, number, finished_tables, mine=number)
    third.flush()
    shutil.copytree(third.uri, store.uri, dirs_exist_ok=True)
    assert len(content(store)["runs"]) == 11, "each run once"
    said = list(damages(RunStore(store.uri)))
    assert [text.split(";")[0] for text in said] == [
        f"1 runs are there twice, such as {id_of(3)}",
        "the parts of runs have different columns, as after copying files",
    ]
    again = RunStore(store.uri)
    again.open_for_writing()
    assert equal(raw(store), content(store)), "also before a run is added"
    add(again, 23, finished_tables)
    again.flush()
    assert equal(raw(store), content(store))
    assert list(damages(RunStore(store.uri))) == []


def as_a_launch(store: RunStore) -> None:
    store.open_for_writing()
    with store.locked():
        merge_parts(store.parts)


def merge_alone(store: RunStore) -> None:
    """As a launch does at its end if the files were copied while it ran."""
    with store.locked():
        merge_parts(store.parts)


def delete_one(store: RunStore) -> None:
    delete_runs(store, [id_of(1)])


def went_on_apart(tmp_path: Path, tables: Tables) -> RunStore:
    """Two stores of one origin that repeated its failed run, in one folder: both name the file of the finished run."""
    store = RunStore(tmp_path / "one")
    store.open_for_writing()
    add(store, 0, tables, predicted=1)
    store.add(id_of(1), {"runs": failed_row(1)})
    store.flush()
    shutil.copytree(store.uri, tmp_path / "other")
    for number, folder in ((2, "one"), (3, "other")):
        copy = RunStore(tmp_path / folder)
        copy.open_for_writing()
        add(copy, 1, tables, predicted=1)
        add(copy, number, tables)
        copy.flush()
    shutil.copytree(tmp_path / "other", tmp_path / "one", dirs_exist_ok=True)
    return RunStore(tmp_path / "one")


def renamed_copy(tmp_path: Path, tables: Tables) -> RunStore:
    """A part whose files of all tables were copied under names of another launch."""
    store = RunStore(tmp_path / "one")
    store.open_for_writing()
    add(store, 0, tables, predicted=1)
    add(store, 1, tables, predicted=1)
    store.flush()
    for file in sorted(Path(store.uri).glob("*/*.parquet")):
        written, _, number, digest = file.name.split("-")
        shutil.copy(file, file.with_name(f"{written}-90000000-{number}-{digest}"))
    return RunStore(store.uri)


@pytest.mark.parametrize(
    "change", mostly_at_night([as_a_launch, merge_alone, delete_one], lambda change: change is as_a_launch)
)
@pytest.mark.parametrize("copied", [went_on_apart, renamed_copy])
def test_files_that_two_parts_name_stay_until_no_part_names_them(
    tmp_path: Path, finished_tables: Tables, change: Change, copied: Callable[[Path, Tables], RunStore]
) -> None:
    store = copied(tmp_path, finished_tables)
    (said,) = damages(store)
    assert said.partition(" such as")[0] == "2 runs are there twice,"
    before = content(store)
    change(RunStore(store.uri))
    if change is delete_one:
        before = {table: rows.filter(pc.not_equal(rows["run_id"], id_of(1))) for table, rows in before.items()}
    assert equal(content(store), before)
    as_a_launch(RunStore(store.uri))
    assert equal(content(store), before)
    assert equal(raw(store), before), "other readers see each run once"
    assert list(damages(RunStore(store.uri))) == []


def test_of_two_copies_of_a_run_the_one_with_predictions_stays(tmp_path: Path, finished_tables: Tables) -> None:
    for folder, predicted in (("one", 1), ("other", 0)):
        store = RunStore(tmp_path / folder)
        store.open_for_writing()
        add(store, 0, finished_tables, predicted=predicted)
        store.flush()
        time.sleep(1.1)  # names of parts have seconds
    shutil.copytree(tmp_path / "other", tmp_path / "one", dirs_exist_ok=True)
    before = content(RunStore(tmp_path / "one"))
    assert before["predictions"].num_rows
    as_a_launch(RunStore(tmp_path / "one"))
    assert equal(content(RunStore(tmp_path / "one")), before)


def test_copies_of_a_run_with_other_numbers_are_named_and_none_is_lost(
    store: RunStore, tmp_path: Path, finished_tables: Tables
) -> None:
    """As rsync brings them from a machine where the code of a method was another."""
    before = content(store)
    other = RunStore(tmp_path / "other")
    other.open_for_writing()
    add(other, 2, finished_tables, predicted=1)
    add(other, 4, finished_tables, auc=0.25)
    other.flush()
    for file in sorted(Path(other.uri).glob("*/*.parquet")):
        shutil.copy(file, Path(store.uri) / file.parent.name)
    (twice, differing) = damages(RunStore(store.uri))
    assert twice.startswith("2 runs are there twice, such as ")
    assert differing.startswith(f"1 run of these, such as {id_of(4)}: the numbers differ")
    read_now = content(store)
    as_a_launch(RunStore(store.uri))
    assert equal(content(store), read_now)
    assert list(damages(RunStore(store.uri))) == []
    left = [pq.read_table(file) for file in Path(store.work_folder, "left").glob("runs-*")]
    of_run = [rows.filter(pc.equal(rows["run_id"], id_of(4)))["auc"].to_pylist() for rows in left]
    kept = [value for values in of_run for value in values]
    now = read_now["runs"].filter(pc.equal(read_now["runs"]["run_id"], id_of(4)))["auc"].to_pylist()
    first = before["runs"].filter(pc.equal(before["runs"]["run_id"], id_of(4)))["auc"].to_pylist()
    assert sorted(kept + now) == sorted([0.25, *first])


def test_a_copy_that_lacks_parts_of_runs_is_not_called_complete(store: RunStore) -> None:
    """As rsync leaves it if it is interrupted: the folder `runs` is copied last."""
    assert files_of_no_run(store) == 0
    files = list(store.parts.live()[0].files.values())
    Path(store.parts.path("runs", store.parts.live()[0].name)).unlink()
    copy = RunStore(store.uri)
    assert list(damages(copy)) == []
    assert files_of_no_run(copy) == sum(map(len, files)) > 0
    printed = CliRunner().invoke(command, ["check", "--results", store.uri]).output
    assert f"{files_of_no_run(copy)} files of other tables without a part of runs" in printed


@pytest.mark.parametrize("is_cut", [True, False])
def test_the_intact_copy_of_a_run_stays_if_the_newest_one_is_damaged(
    store: RunStore, tmp_path: Path, finished_tables: Tables, is_cut: bool
) -> None:
    """As after an rsync that was interrupted: a launch of other runs removed the only intact rows."""
    before = content(store)
    other = RunStore(tmp_path / "other")
    other.open_for_writing()
    time.sleep(1.1)  # names of parts have seconds
    add(other, 2, finished_tables, predicted=1)
    other.flush()
    for file in sorted(Path(other.uri).glob("*/*.parquet")):
        copy = Path(shutil.copy(file, Path(store.uri) / file.parent.name))
        if file.parent.name == "r_matrix" and is_cut:
            os.truncate(copy, 100)
        elif file.parent.name == "r_matrix":
            copy.unlink()
    RunStore(store.uri).open_for_writing()
    assert len(list(damages(RunStore(store.uri)))) == 2, "the damaged file, and the run that is there twice"
    told: list[str] = []
    assert without_damage(RunStore(store.uri), [id_of(2)], told.append)
    assert len(told) == 1
    assert equal(content(RunStore(store.uri)), before)


def test_numbers_that_differ_are_not_merged(store: RunStore, tmp_path: Path, finished_tables: Tables) -> None:
    other = RunStore(tmp_path / "other")
    other.open_for_writing()
    add(other, 2, finished_tables, auc=0.5)
    add(other, 30, finished_tables)
    other.flush()
    before = content(store)
    with pytest.raises(UsageError, match=f"run {id_of(2)}: its numbers in table runs differ between "):
        merge(store.uri, other.uri)
    assert equal(content(store), before)
