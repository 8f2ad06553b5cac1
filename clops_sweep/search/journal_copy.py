"""The drivers' local copy of a journal on an object store, which cannot append to a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from clops_sweep.data.files.folder import write_file
from clops_sweep.errors import UsageError
from clops_sweep.search.records import STUDIES, journal_of
from clops_sweep.store.run_store import RunStore

_ABSENT = "absent"
"""Takes the place of a digest if the object does not exist."""


class JournalCopy:
    """The copy of a journal that the drivers of this machine share and upload.

    The object in the store counts, with one exception: if it is still what this machine last downloaded or uploaded,
    the copy counts. It may have lines that are not uploaded yet, of a driver that runs now or was killed.

    If another machine or a user has changed the object, a copy under a new name begins. A driver that still writes to
    the former copy reads its own lines only, and can no longer upload.

    Args:
        store: the store, at a URI.
        folder: the folder of the copies and of the file that tells which one counts.

    Attributes:
        path: the copy; known after `refresh`.

    Every method expects that the caller holds the lock of the journal.
    """

    def __init__(self, store: RunStore, folder: Path) -> None:
        self.path = folder
        self._store = store
        self._folder = folder
        self._state = folder / "uploaded"

    def refresh(self) -> None:
        """Choose the copy that counts, and download the object if that has changed."""
        content = journal_of(self._store)
        stored = _digest(content)
        name, known = self._read_state()
        self.path = self._folder / name
        if stored in known and self.path.is_file():
            return
        self.path = self._folder / f"{stored}.journal"
        write_file(self.path, content or b"")
        self._write_state(stored)

    def upload(self) -> None:
        """Upload the copy, unless nothing has changed.

        Raises:
            UsageError: another machine or a user has changed the object; it stays as it is.
        """
        content = self.path.read_bytes()
        stored = _digest(journal_of(self._store))
        name, known = self._read_state()
        if name != self.path.name or stored not in known:
            raise UsageError(
                f"studies {self._store.files.shown}/{STUDIES}: changed by another machine or a user during this "
                "search; expected searches on an object store to run on one machine at a time"
            )
        new = _digest(content)
        if new != stored:
            self._write_state(stored, new)  # both: if killed here, it is not known whether the upload has ended
            self._store.files.write(f"{self._store.files.root}/{STUDIES}", content)
            self._write_state(new)

    def _read_state(self) -> tuple[str, list[str]]:
        """Return the name of the copy that counts, and the digests that the object may have."""
        if not self._state.is_file():
            return "", []
        name, *known = self._state.read_text().split() or [""]
        return name, known

    def _write_state(self, *known: str) -> None:
        write_file(self._state, "\n".join([self.path.name, *known]).encode())


def _digest(content: bytes | None) -> str:
    return _ABSENT if content is None else hashlib.sha256(content).hexdigest()
