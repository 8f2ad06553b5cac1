"""Files of running launches: written, read, outdated or invalid; and launches that would compute the same runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.errors import UsageError
from clops_sweep.experiment.events import Progress
from clops_sweep.store.launches import STALE, LaunchFile, UnderWay, runs_under_way
from clops_sweep.store.run_store import RunStore

RUNS = [UnderWay("a1", "CLOPS, seed 1", Progress(2, "b", 4, 3, 5), 1e9), UnderWay("c3", "finetune, seed 0")]


def launch(store: RunStore, *run_ids: str) -> LaunchFile:
    file = LaunchFile(store)
    file.begin(run_ids)
    return file


def folder(store: RunStore) -> Path:
    return Path(store.work_folder, "launches")


def edit(store: RunStore, **changes: Any) -> None:
    """Change the content of the only launch."""
    (path,) = folder(store).glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def age(store: RunStore) -> None:
    for path in folder(store).iterdir():
        os.utime(path, (time.time() - STALE - 5,) * 2)


def test_all_launches_are_read_until_they_end(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    assert runs_under_way(store) == ()
    first, second = launch(store), launch(store)
    first.write(RUNS[:1])
    second.write(RUNS[1:])
    assert set(runs_under_way(store)) == set(RUNS)
    first.write([])
    assert runs_under_way(store) == (RUNS[1],)
    second.remove()
    assert runs_under_way(store) == ()


def test_a_launch_of_the_same_runs_is_refused_until_the_other_has_ended(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first = launch(store, "a1", "b2", "c3")
    launch(store, "d4").remove()  # other runs, such as another shard
    with pytest.raises(UsageError, match=r"another launch \(process \d+ on .+\) is computing 2 runs of these; wait"):
        launch(store, "b2", "c3", "d4")
    first.remove()
    launch(store, "b2", "c3", "d4")


@pytest.mark.parametrize("how", ["old", "killed here", "killed here and not waited for"])
def test_what_a_killed_launch_has_left_is_ignored_and_removed_by_the_next(tmp_path: Path, how: str) -> None:
    store = RunStore(tmp_path)
    launch(store, "a1").write(RUNS)
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie from now on
        if how == "old":
            edit(store, machine="elsewhere")
            age(store)
        else:
            edit(store, pid=2**22 + 1 if how == "killed here" else child.pid)
        assert runs_under_way(store) == ()
        again = launch(store, "a1")
        age(store)
        again.remove()
        assert list(folder(store).iterdir()) == []
