"""The journal of the searches of a store."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend, JournalStorage

from clops_sweep.search.records import STUDIES
from clops_sweep.search.storage import DriverLock, open_journal, quiet
from clops_sweep.store.run_store import RunStore

DRIVER = """
import sys

import optuna

from clops_sweep.search.storage import open_journal, quiet
from clops_sweep.store.run_store import RunStore

with quiet():
    storage = open_journal(RunStore(sys.argv[1]))
    study = optuna.create_study(study_name=sys.argv[2], storage=storage, load_if_exists=True)
    for _ in range(20):
        study.tell(study.ask(), 1.0)
"""


def _study(store: RunStore, name: str) -> optuna.Study:
    """A study in the journal of a store."""
    with quiet():
        return optuna.create_study(study_name=name, storage=open_journal(store), load_if_exists=True)


def _tell_trials(folder: Path, name: str, many: int) -> None:
    """Add trials to a study, as a driver does."""
    study = _study(RunStore(folder), name)
    for _ in range(many):
        study.tell(study.ask(), 1.0)


def test_the_lock_file_of_a_killed_driver_does_not_delay_the_next(tmp_path: Path) -> None:
    """Optuna waits for 30 s before it removes such a file."""
    _tell_trials(tmp_path, "tuned", 1)
    left = tmp_path / f"{STUDIES}.lock"
    left.touch()
    began = time.monotonic()
    _tell_trials(tmp_path, "tuned", 1)
    assert time.monotonic() - began < 10
    assert not left.exists()
    assert len(_study(RunStore(tmp_path), "tuned").trials) == 2


def test_drivers_of_several_searches_write_whole_lines(tmp_path: Path) -> None:
    _tell_trials(tmp_path, "first", 1)
    drivers = [subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path), name]) for name in ("first", "second")]
    assert [driver.wait(60) for driver in drivers] == [0, 0]
    assert [len(_study(RunStore(tmp_path), name).trials) for name in ("first", "second")] == [21, 20]


@pytest.mark.parametrize("is_supported", [True, False])
def test_a_journal_without_locks_of_the_file_system_uses_optunas(tmp_path: Path, is_supported: bool) -> None:
    """A folder where the lock file should be stands for a file system without locks."""
    lock_file = tmp_path / "locks" / STUDIES
    if not is_supported:
        lock_file.mkdir(parents=True)
    journal = tmp_path / STUDIES
    lock = DriverLock(journal, lock_file)
    assert lock.acquire()
    assert (tmp_path / f"{STUDIES}.lock").exists() is not is_supported
    lock.release()
    with quiet():
        study = optuna.create_study(storage=JournalStorage(JournalFileBackend(str(journal), lock)))
    study.tell(study.ask(), 1.0)
    assert len(study.trials) == 1
    assert not (tmp_path / f"{STUDIES}.lock").exists()
