"""Storage of studies: a journal file of Optuna beside the results.

| journal           | where                           | written by              | counts                               |
|-------------------|---------------------------------|-------------------------|--------------------------------------|
| of the results    | `optuna.journal` in the results | drivers; on S3, uploads | always, except for the next line     |
| local copy for S3 | `studies/` in the user's cache  | drivers of this machine | while S3 has what they uploaded last |
| copy of a reader  | a temporary folder              | `existing_journal`      | never                                |

Drivers upload before anything relies on the new lines: before the jobs of a trial, at pruning, and when a trial ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import ExperimentalWarning
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from clops_sweep.data.files.lock_holder import SECONDS_BEFORE_TOLD, say_waiting
from clops_sweep.errors import UsageError, one_line
from clops_sweep.search.journal_copy import JournalCopy
from clops_sweep.search.records import STUDIES, journal_of
from clops_sweep.store.run_store import RunStore


def journal_name(store: RunStore) -> str:
    """Return the name of the journal for messages."""
    return f"{store.files.shown}/{STUDIES}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence Optuna's log and experimental warnings in the block."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


@contextlib.contextmanager
def reading(store: RunStore) -> Iterator[None]:
    """Silence Optuna, and convert errors of reading a journal, which may be damaged or edited.

    Raises:
        UsageError: the journal cannot be used.
    """
    try:
        with quiet():
            yield
    except UsageError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, AssertionError, ArithmeticError) as error:
        raise UsageError(
            f"studies {journal_name(store)}: damaged, or edited ({type(error).__name__}: {one_line(error)}); put back "
            "a copy that Optuna has written, or move the file away: then searches begin anew, and finished runs stay"
        ) from None


@contextlib.contextmanager
def existing_journal(store: RunStore) -> Iterator[JournalStorage | None]:
    """Yield the journal of a store, None if it does not exist. Nothing is written beside it.

    Raises:
        UsageError: the journal cannot be used.
    """
    with reading(store), tempfile.TemporaryDirectory() as copied:
        content, copy = journal_of(store), Path(copied) / STUDIES
        if content is not None:
            copy.write_bytes(content)
        yield None if content is None else _opened(copy)


class DriverJournal(JournalStorage):
    """The journal of a driver: its lines are durable in a local file at once, and in an object store after `upload`.

    Args:
        store: the store of the results.
        path: the local file.
        lock: its lock.
        copy: the copy that the file is, if the results are in an object store.
    """

    def __init__(self, store: RunStore, path: Path, lock: DriverLock, copy: JournalCopy | None = None) -> None:
        super().__init__(JournalFileBackend(str(path), lock))
        self._store = store
        self._lock_of_file = lock
        self._copy = copy

    def in_use(self) -> AbstractContextManager[None]:
        """Silence Optuna in the block, and convert errors of a journal that is damaged meanwhile to a UsageError."""
        return reading(self._store)

    def upload(self) -> None:
        """Upload the lines to an object store; do nothing for results in a folder.

        Raises:
            UsageError: another machine has changed the journal there.
            OSError: the store cannot be written to.
        """
        if self._copy is not None:
            with holding(self._lock_of_file):
                self._copy.upload()


def open_journal(store: RunStore) -> DriverJournal:
    """Open the journal of a store, or create it. Only the driver may call this, since it writes.

    An unfinished last line, left by a killed driver, is removed, and so is Optuna's lock file.
    """
    locks = store.log_folder / "locks"
    if store.files.folder is not None:
        path = store.files.folder / STUDIES
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = DriverLock(path, locks / STUDIES)
        with holding(lock):
            _remove_unfinished_line(path, journal_of(store) or b"")
        return DriverJournal(store, path, lock)
    own = hashlib.sha256(store.files.shown.encode()).hexdigest()
    folder = store.log_folder / "studies" / own
    folder.mkdir(parents=True, exist_ok=True)
    copy = JournalCopy(store, folder)
    lock = DriverLock(folder / STUDIES, locks / f"{STUDIES}-{own}")
    with holding(lock):
        copy.refresh()
        _remove_unfinished_line(copy.path, copy.path.read_bytes())
    return DriverJournal(store, copy.path, lock, copy)


def _remove_unfinished_line(path: Path, content: bytes) -> None:
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)


@contextlib.contextmanager
def holding(lock: DriverLock) -> Iterator[None]:
    """Hold a lock in the block."""
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


class DriverLock(JournalFileOpenLock):
    """Lock of a journal among drivers, each of which writes its own search. It ends with the process that holds it.

    Optuna's lock is a file beside the journal. A driver that is killed while it writes a line leaves the file, and the
    next driver waits for 30 s. This lock belongs to the operating system, so such a file is removed at once. Optuna's
    lock remains the fallback on file systems without locks.

    Args:
        journal: the journal file.
        lock_file: the lock file, created with its folder if missing; it stays.
    """

    def __init__(self, journal: Path, lock_file: Path) -> None:
        super().__init__(str(journal))
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(lock_file, mode=0o664)
        self._journal = journal
        self._of_optuna = journal.with_name(f"{journal.name}.lock")
        self._is_supported = True

    def acquire(self) -> bool:
        """Wait until no other process holds the lock, and take it."""
        if self._is_supported:
            try:
                self._acquire()
            except (OSError, NotImplementedError):
                self._is_supported = False
            else:
                self._of_optuna.unlink(missing_ok=True)
                return True
        return super().acquire()

    def _acquire(self) -> None:
        """Take the lock; a wait of more than a second is announced on standard error."""
        try:
            self._lock.acquire(timeout=SECONDS_BEFORE_TOLD)
        except Timeout:
            say_waiting(Path(self._lock.lock_file), f"the studies in {self._journal}")
            self._lock.acquire(timeout=-1)

    def release(self) -> None:
        """Give the lock back."""
        if self._is_supported:
            self._lock.release()
        else:
            super().release()


def _opened(path: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(path), JournalFileOpenLock(str(path))))
