"""The files that say which runs are being computed: written, read, outdated, and whatever else may lie there."""

from __future__ import annotations

import json
import os
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


def test_what_a_killed_launch_has_left_is_ignored_and_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    UnderWayFile(store).write(RUNS)
    now = time.time()
    monkeypatch.setattr("clops_sweep.store.under_way.time.time", lambda: now + STALE + 1)
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
