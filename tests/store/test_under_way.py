"""Files of running launches: written, read, outdated or invalid."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.store.run_store import RunStore
from clops_sweep.store.under_way import STALE, UnderWay, UnderWayFile, runs_under_way

RUNS = [UnderWay(("a1", "b2"), "CLOPS, 2 seeds", 2, 4, 3, 5, 1e9), UnderWay(("c3",), "finetune, seed 0")]


def test_all_launches_are_read_until_they_end(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    assert runs_under_way(store) == ()
    first, second = UnderWayFile(store), UnderWayFile(store)
    first.write(RUNS[:1])
    second.write(RUNS[1:])
    assert set(runs_under_way(store)) == set(RUNS)
    first.write([])
    assert runs_under_way(store) == (RUNS[1],)
    second.remove()
    assert runs_under_way(store) == ()


def test_what_a_killed_launch_has_left_is_ignored_and_removed_by_the_next(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    UnderWayFile(store).write(RUNS)
    age(store)
    assert runs_under_way(store) == ()
    UnderWayFile(store).remove()
    assert list(Path(store.work_folder, "under_way").iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"[1, 2]",
        b"[" * 100_000,
        b'{"runs": 3}',
        {"runs": [1, None, {}, {"run_ids": []}, {"run_ids": [1], "name": "x"}, {"run_ids": ["a"], "name": 3}]},
        {"runs": [{"run_ids": ["a"], "name": "x", "task": "1"}]},
        {"runs": [{"run_ids": ["a"], "name": "x", "task": 1, "tasks": 1, "epoch": 1, "epochs": 1, "ends_at": 1e999}]},
    ],
    ids=lambda it: str(it)[:30],
)
def test_anything_else_is_passed_over(content: Any, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    UnderWayFile(store).write(RUNS)
    text = content if isinstance(content, bytes) else json.dumps({"written_at": time.time(), **content}).encode()
    Path(store.work_folder, "under_way", "other.json").write_bytes(text)
    os.mkfifo(Path(store.work_folder, "under_way", "pipe.json"))
    assert set(runs_under_way(store)) == set(RUNS)


def test_a_folder_that_cannot_be_written_to_disturbs_nobody(tmp_path: Path) -> None:
    Path(tmp_path, ".work").write_text("no folder")
    file = UnderWayFile(RunStore(tmp_path))
    file.write(RUNS)
    file.remove()


def test_results_that_are_deleted_in_mid_sweep_are_not_made_again(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    file = UnderWayFile(store)
    shutil.rmtree(store.files.root)
    file.write(RUNS)
    file.remove()
    assert list(tmp_path.iterdir()) == []


# --- leases -----------------------------------------------------------------------------------------------------------


def age(store: RunStore) -> None:
    """Give all files the time of launches that were killed long ago."""
    for path in Path(store.work_folder, "under_way").iterdir():
        os.utime(path, (time.time() - STALE - 5,) * 2)


def other_machine(store: RunStore, pid: int = 1, **changes: Any) -> None:
    """Make the only file one of a launch on another machine."""
    (path,) = Path(store.work_folder, "under_way").iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"machine": "another", "pid": pid} | changes))


def test_runs_that_another_launch_has_taken(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = UnderWayFile(store), UnderWayFile(store)
    first.write(RUNS[:1], ["d4"])
    second.write(RUNS[1:], ["e5"])
    assert first.taken_elsewhere() == {"c3", "e5"}
    assert second.taken_elsewhere() == {"a1", "b2", "d4"}


def test_a_lease_whose_launch_was_killed_on_this_machine_counts_no_more(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    child = os.fork()
    if child == 0:
        UnderWayFile(store).write(RUNS)
        os._exit(0)
    os.waitpid(child, 0)
    assert (UnderWayFile(store).taken_elsewhere(), runs_under_way(store)) == (set(), ())
    other_machine(store, child)
    assert UnderWayFile(store).taken_elsewhere() == {"a1", "b2", "c3"}


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_lease_expires_although_clocks_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """The other machine's clock is wrong; on Lustre, so is the modification time of its file."""
    store = RunStore(tmp_path)
    theirs, own = UnderWayFile(store), UnderWayFile(store)
    clock = [0.0]
    monkeypatch.setattr("clops_sweep.store.under_way.time.monotonic", lambda: clock[0])

    def beat(moment: float) -> None:
        theirs.write(RUNS[1:])
        other_machine(store, written_at=moment + 3600 * hours)
        (path,) = Path(store.work_folder, "under_way").iterdir()
        os.utime(path, (time.time() + 3600 * hours,) * 2)

    beat(0.0)
    own.taken_elsewhere()
    beat(2.0)
    clock[0] = 3.0
    assert own.taken_elsewhere() == {"c3"}, "it has changed"
    clock[0] = STALE + 2
    assert own.taken_elsewhere() == {"c3"}
    clock[0] = STALE + 5
    assert own.taken_elsewhere() == set(), "it has not changed for a minute"
    beat(STALE + 6)
    clock[0] = STALE + 8
    assert own.taken_elsewhere() == {"c3"}


def test_an_old_lease_does_not_count_from_the_first_look_on(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    UnderWayFile(store).write(RUNS)
    other_machine(store)
    age(store)
    own = UnderWayFile(store)
    own.write([])
    assert own.taken_elsewhere() == set()


def test_shards_of_one_division_do_not_read_the_files_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    shards = [UnderWayFile(store, f"{index}/100") for index in range(1, 101)]
    for index, shard in enumerate(shards):
        shard.write([UnderWay((f"{index:02}",), "x")])
    UnderWayFile(store, "1/2").write([], ["half"])
    UnderWayFile(store).write([], ["whole"])
    again = UnderWayFile(store, "3/100")
    counted: list[str] = []
    read = type(store.files).read
    monkeypatch.setattr(type(store.files), "read", lambda self, path: (counted.append(path), read(self, path))[1])
    assert again.taken_elsewhere() == {"02", "half", "whole"}
    assert len(counted) == 3
    assert UnderWayFile(store).taken_elsewhere() > {f"{index:02}" for index in range(100)}


def test_looks_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeds look before each job; a folder of many files on a slow server takes at most 1 % of their time."""
    store = RunStore(tmp_path)
    own, listings = UnderWayFile(store), 0
    clock, takes = [0.0], 0.001
    monkeypatch.setattr("clops_sweep.store.under_way.time.monotonic", lambda: clock[0])
    names = type(store.files).names

    def counted(self: Any, *arguments: Any) -> list[str]:
        nonlocal listings
        listings += 1
        clock[0] += takes
        return names(self, *arguments)

    monkeypatch.setattr(type(store.files), "names", counted)
    for seconds, expected in ((0.01, 100), (1.0, 1)):
        takes, listings, end = seconds, 0, clock[0] + 100
        while clock[0] < end:
            own.taken_elsewhere()
            clock[0] += 0.01
        assert 0.9 * expected <= listings <= expected + 1


def test_time_left_is_that_of_the_launch_although_clocks_differ(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    now = time.time()
    UnderWayFile(store).write([UnderWay(("a1",), "x", 1, 2, 3, 4, now + 120)])
    content_shift = -3600
    (path,) = Path(store.work_folder, "under_way").iterdir()
    content = json.loads(path.read_text())
    content["written_at"] += content_shift
    content["runs"][0]["ends_at"] += content_shift
    path.write_text(json.dumps(content))
    (it,) = runs_under_way(store)
    assert it.ends_at - now == pytest.approx(120, abs=31)
