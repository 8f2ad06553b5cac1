"""Several processes on one store, advanced by single file operations in any order that a test chooses."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

from clops_sweep.store.files import Files
from clops_sweep.store.run_store import RunStore


class _Killed(BaseException):
    """Raised in a worker to kill it."""


class Worker:
    """A thread with a store of its own that stops before every file operation.

    Args:
        root: the store's folder.
        work: the function to run.
    """

    def __init__(self, root: str, work: Callable[[RunStore], object]) -> None:
        self.done = False
        self.error: BaseException | None = None
        self._arrived, self._may_go = threading.Semaphore(0), threading.Semaphore(0)
        self._dies = False
        self._thread = threading.Thread(target=self._run, args=(_stepped(root, self._wait), work), daemon=True)
        self._thread.start()
        self._arrived.acquire()

    def step(self, operations: int = 1) -> None:
        """Let some file operations run."""
        for _ in range(operations):
            if not self.done:
                self._may_go.release()
                self._arrived.acquire()
        if self.error is not None:
            raise self.error

    def finish(self) -> None:
        """Let all remaining operations run."""
        while not self.done:
            self.step()

    def kill(self) -> None:
        """Kill the worker before its next file operation."""
        self._dies = True
        while not self.done:
            self._may_go.release()
            self._arrived.acquire()
        self._thread.join()

    def _run(self, store: RunStore, work: Callable[[RunStore], object]) -> None:
        try:
            work(store)
        except _Killed:
            pass
        except BaseException as error:  # raised by `step`
            self.error = error
        self.done = True
        self._arrived.release()

    def _wait(self) -> None:
        self._arrived.release()
        self._may_go.acquire()
        if self._dies:
            raise _Killed


def _stepped(root: str, before: Callable[[], None]) -> RunStore:
    """Return a store that calls `before` ahead of every file operation."""
    store = RunStore(root)
    files = _SteppedFiles(root, before)
    store._files = files
    for parts in store.parts.values():
        parts.files = files
    return store


class _SteppedFiles(Files):
    def __init__(self, root: str, before: Callable[[], None]) -> None:
        super().__init__(root)
        self._before = before

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """Return the names that are certain to be found, since listing a folder is not atomic.

        A name that appears or vanishes during the listing may be listed or not, and an object store lists in pages.
        """
        self._before()
        at_first = super().names(folder, beginning)
        self._before()
        in_the_end = set(super().names(folder, beginning))
        return [name for name in at_first if name in in_the_end]

    def exists(self, path: str) -> bool:
        self._before()
        return super().exists(path)

    def read(self, path: str) -> Any:
        self._before()
        return super().read(path)

    @contextlib.contextmanager
    def being_written(self, path: str) -> Iterator[IO[bytes]]:
        self._before()
        with super().being_written(path) as file:
            yield file
            self._before()  # written, but not yet under its name

    def _delete(self, path: str) -> None:
        if not path.rpartition("/")[2].startswith("."):  # an abandoned file belongs to the operation before
            self._before()
        super()._delete(path)
