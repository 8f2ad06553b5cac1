"""The journal of the searches of a store."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend, JournalStorage

from clops_sweep import OptunaSearch, RunConfig, SearchSpace
from clops_sweep.errors import UsageError
from clops_sweep.search.records import STUDIES
from clops_sweep.search.storage import DriverJournal, DriverLock, open_journal, quiet
from clops_sweep.search.study import open_study
from clops_sweep.search.trials import read_study
from clops_sweep.store.run_store import RunStore
from tests.helpers.s3_server import serving_s3

BUCKET = "studies-of-tests"
SEARCH = OptunaSearch({"learning_rate": (1e-4, 1e-2)}, n_trials=3, pruning=True)
SPACE = SearchSpace("searched", RunConfig(), search=SEARCH)

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


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of an S3 server."""
    with serving_s3(BUCKET) as port:
        yield port


@pytest.fixture
def on_machine(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], RunStore]:
    """Opens a store on S3, as on the machine of a name; each machine has its own cache."""

    def opened(machine: str = "first") -> RunStore:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        return RunStore(f"s3://{BUCKET}/{tmp_path.name}?{options}")

    return opened


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


@pytest.mark.nightly
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


# --- on an object store -----------------------------------------------------------------------------------------------


def _created(journal: DriverJournal, name: str) -> optuna.Study:
    with quiet():
        return optuna.create_study(study_name=name, storage=journal, load_if_exists=True)


def _names(store: RunStore) -> dict[str, int]:
    """The studies that a machine without a copy reads, and their numbers of trials."""
    with quiet():
        return {study.study_name: study.n_trials for study in optuna.get_all_study_summaries(open_journal(store))}


def test_searches_on_one_machine_keep_the_lines_of_each_other_on_s3(on_machine: Callable[[str], RunStore]) -> None:
    first = open_journal(on_machine("first"))
    study = _created(first, "one")
    study.ask()
    second = open_journal(on_machine("first"))  # what the first driver has written is not uploaded yet
    other = _created(second, "two")
    study.tell(study.ask(), 1.0)
    other.tell(other.ask(), 1.0)
    second.upload()
    first.upload()
    assert _names(on_machine("second")) == {"one": 2, "two": 1}


@pytest.mark.nightly
def test_drivers_of_two_processes_on_s3_lose_no_line(on_machine: Callable[[str], RunStore]) -> None:
    script = DRIVER.replace("study.ask(), 1.0)", "study.ask(), 1.0)\n        storage.upload()")
    uri = on_machine("first").uri
    drivers = [subprocess.Popen([sys.executable, "-c", script, uri, name]) for name in ("one", "two")]
    assert [driver.wait(60) for driver in drivers] == [0, 0]
    assert _names(on_machine("second")) == {"one": 20, "two": 20}


def test_what_a_killed_driver_had_not_uploaded_to_s3_is_there(on_machine: Callable[[str], RunStore]) -> None:
    study = open_study(SPACE, on_machine("first"), {})
    study.tell(study.ask(), "complete", [0.5])
    trial = study.ask()
    trial.report(0.25, 1)  # killed here
    trials = read_study(SPACE, on_machine("first"), {}).trials  # as uploaded
    assert [trial.state for trial in trials] == ["complete"]
    (left,) = open_study(SPACE, on_machine("first"), {}).running()
    assert (left.number, left.labels, left.tasks_reported) == (1, trial.labels, 1)


def test_another_machine_continues_what_jobs_and_pruning_relied_on(on_machine: Callable[[str], RunStore]) -> None:
    study = open_study(SPACE, on_machine("first"), {})
    trials = [study.ask(), study.ask()]
    for trial in trials:
        trial.record_runs([f"{trial.number:024x}"])
    assert not trials[0].prune(0.75, 1)
    assert trials[1].prune(0.25, 1)
    first, second = open_study(SPACE, on_machine("second"), {}).running()
    assert (first.labels, first.tasks_reported, first.unfinished_pruning()) == (trials[0].labels, 1, None)
    assert (second.labels, second.tasks_reported, second.unfinished_pruning()) == (trials[1].labels, 1, 1)


def test_a_journal_that_another_machine_changed_is_not_overwritten(on_machine: Callable[[str], RunStore]) -> None:
    journal = open_journal(on_machine("first"))
    study = _created(journal, "one")
    journal.upload()
    elsewhere = open_journal(on_machine("second"))
    _created(elsewhere, "two")
    elsewhere.upload()
    study.ask()
    with pytest.raises(UsageError, match="changed by another machine or a user during this search"):
        journal.upload()
    again = open_journal(on_machine("first"))  # begins from the journal in the store
    _created(again, "one").ask()
    study.ask()  # the earlier driver still runs, in a file of its own
    again.upload()
    with pytest.raises(UsageError, match="changed by another machine or a user during this search"):
        journal.upload()
    assert _names(on_machine("third")) == {"one": 1, "two": 0}


def test_a_journal_that_is_moved_away_begins_anew_on_s3(on_machine: Callable[[str], RunStore]) -> None:
    store = on_machine("first")
    journal = open_journal(store)
    _created(journal, "one")
    journal.upload()
    store.files.delete([f"{store.files.root}/{STUDIES}"])
    assert _names(on_machine("first")) == {}


def test_an_upload_of_which_the_driver_did_not_see_the_end_counts(on_machine: Callable[[str], RunStore]) -> None:
    store = on_machine("first")
    journal = open_journal(store)
    _created(journal, "one")
    with pytest.MonkeyPatch.context() as patch:
        written = type(store.files).write

        def dies(files: object, path: str, content: bytes) -> None:
            written(files, path, content)
            raise KeyboardInterrupt

        patch.setattr(type(store.files), "write", dies)
        with pytest.raises(KeyboardInterrupt):
            journal.upload()
    study = _created(open_journal(on_machine("first")), "one")
    study.ask()
    journal.upload()
    assert _names(on_machine("second")) == {"one": 1}


# --- two drivers of one search ----------------------------------------------------------------------------------------


def test_a_trial_that_another_driver_ended_takes_nothing_more(tmp_path: Path) -> None:
    """Both run it where the file system has no locks."""
    study = open_study(SPACE, RunStore(tmp_path), {})
    study.ask()
    other = open_study(SPACE, RunStore(tmp_path), {})
    ((mine,), (theirs,)) = study.running(), other.running()
    other.tell(theirs, "complete", [0.5])
    mine.record_runs(["0" * 24])
    mine.report(0.25, 1)
    mine.record_error("lost")
    mine.prune(0.25, 1)
    assert not study.tell(mine, "failed", error="a worker died")
    (trial,) = read_study(SPACE, RunStore(tmp_path), {}).trials
    assert (trial.state, trial.values, trial.error, dict(trial.intermediate)) == ("complete", (0.5,), None, {})
