"""A wait for the store's lock is announced, with the process that holds it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clops_sweep.data.files.lock_holder import holder_of
from clops_sweep.search.storage import DriverLock
from clops_sweep.store.run_store import RunStore

HOLDER = """
import sys
import time
from clops_sweep.data.files.folder import locked
from pathlib import Path

with locked(Path(sys.argv[1])) as holder:
    print(holder.name, flush=True)
    sys.stdin.read()
"""


def _holding(lock: Path) -> subprocess.Popen[str]:
    """Start a process that holds a lock until its standard input is closed."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "HERE\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists locks")
def test_a_wait_for_a_store_names_the_lock_and_its_holder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = RunStore(tmp_path)
    lock = store.log_folder / "lock"
    process = _holding(lock)
    holder = f"process {process.pid} on {socket.gethostname()}"
    assert holder_of(lock) == holder
    threading.Timer(1.5, _end, [process]).start()
    with store.locked():
        assert holder_of(lock) == f"process {os.getpid()} on {socket.gethostname()}"
    said = capfd.readouterr().err
    assert said == f"waiting for the lock of results {store.files.shown}, {lock}, held by {holder}\n"


def test_a_short_wait_is_silent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = RunStore(tmp_path)
    process = _holding(store.log_folder / "lock")
    threading.Timer(0.3, _end, [process]).start()
    with store.locked():
        pass
    assert capfd.readouterr().err == ""


def test_a_wait_for_the_journal_of_studies_is_announced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "locks" / "journal"
    process = _holding(lock)
    threading.Timer(1.5, _end, [process]).start()
    of_driver = DriverLock(tmp_path / "optuna.journal", lock)
    assert of_driver.acquire()
    of_driver.release()
    said = capfd.readouterr().err
    assert said.startswith(f"waiting for the lock of the studies in {tmp_path / 'optuna.journal'}, {lock}, ")


def test_an_unknown_holder_is_another_process(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert holder_of(tmp_path / "lock") is None
    assert holder_of(tmp_path / "absent") is None


def test_a_store_that_cannot_be_locked_is_named_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder in place of the lock stands for a file system without locks: both make locking fail."""
    store = RunStore(tmp_path)
    lock = store.log_folder / "lock"
    lock.mkdir(parents=True)
    for _ in range(2):
        with store.locked():
            pass
    (said,) = capfd.readouterr().err.splitlines()
    assert said.startswith(f"results {store.files.shown}: {lock} cannot be locked")
