"""What was read of records is kept until the frames are whole, so that a preparation that was killed goes on.

The frames of many records at a time are written to a part, a file that begins with the SHA-256 of the rest, in a hidden
folder beside the prepared one, named after the code that reads. A record is taken from a part if its reader knows the
same of it as before and its files have the size and time that they had. A part that is not whole counts for nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.manifest import FORMAT_VERSION, file_sha256, hash_of
from clops_sweep.data.reader import Reader, Signals, Source, Windows
from clops_sweep.machine import installed_version

PART_BYTES: Final = 2**24
"""Samples of a part; what was read of an unfinished one is read again."""

Read = tuple[Signals, dict[str, str]] | str
"""The frames of a source with the SHA-256 of its files, or why it could not be read."""
Pair = tuple[Source, Windows]


@contextmanager
def kept_reads(reader: Reader, folder: Path) -> Iterator[KeptReads | None]:
    """What is kept of a preparation of `folder`; None where another process keeps it just now.

    It is there no more once the block has ended well, or because of a disk that is full.
    """
    prefix = f".{folder.name}.read-"
    declared = DATASETS.declared(reader.name)
    key = hash_of(
        format=FORMAT_VERSION,
        packages=[installed_version(package) for package in ("numpy", "scipy", "wfdb", "pyarrow")],
        code=[file_sha256(file) for file in sorted(Path(__file__).parent.rglob("*.py"))],
        declared=declared.fingerprint if declared else None,
        options=reader.chosen,
    )
    place = folder.parent / f"{prefix}{key[:16]}"
    for other in folder.parent.glob(f"{prefix}*"):
        if other != place:
            with _locked(other) as mine:
                if mine:
                    shutil.rmtree(other, ignore_errors=True)
    place.mkdir(exist_ok=True)
    with _locked(place) as mine:
        if not mine:
            yield None
            return
        try:
            yield KeptReads(reader, place)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            raise
        finally:
            with contextlib.suppress(OSError):
                place.rmdir()  # where nothing is kept
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether this process has a folder for itself; a process that ends, however it ends, has it no more."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # its process has just removed it
        yield False
        return
    try:
        yield _lock(handle, folder)
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> bool:
    with contextlib.suppress(OSError):  # another process has it, or it is there no more
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(handle).st_ino == os.stat(folder).st_ino
    return False


class KeptReads:
    """The parts in a folder, of which each record is read from one if its files and windows are the same."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader, self._folder = reader, folder
        self._known = pickle.dumps(reader)
        self._found: dict[str, tuple[Path, int]] = {}
        self._open: tuple[Path, _Part] | None = None
        self._number = 0
        for path in sorted(folder.glob("*.part")):
            self._number = max(self._number, int(path.stem) + 1)
            part = self._part(path)
            if part is None:
                path.unlink()
            else:
                self._found |= {mark: (path, place) for place, mark in enumerate(part.marks)}

    def results(
        self,
        run: Callable[..., Iterator[Read]],
        read: Callable[[Pair], Read],
        pairs: Sequence[Pair],
    ) -> Iterator[Read]:
        """What `read` gives for each of the records, in their order, from a part or by an ordered map."""
        marks = [self._mark(source, windows) for source, windows in pairs]
        expected = sum(int(windows.length.sum()) for _, windows in pairs) * np.dtype(self._reader.stored_as).itemsize
        keeps = shutil.disk_usage(self._folder).free > 3 * expected
        fresh = run(read, (pair for pair, mark in zip(pairs, marks, strict=True) if mark not in self._found))
        new = _Part.empty()
        for mark in marks:
            if mark in self._found:
                yield self._kept(*self._found[mark])
                continue
            result = next(fresh)
            if isinstance(result, tuple) and keeps:
                if not new.fits(result[0]):
                    new = self._write(new)
                new.add(mark, *result)
                if new.bytes >= PART_BYTES:
                    new = self._write(new)
            yield result

    def _mark(self, source: Source, windows: Windows) -> str:
        """What stands for a record: all that its reader knows of it, its windows, and its files as they are now."""
        digest = hashlib.blake2b(self._known, digest_size=16)
        digest.update(pickle.dumps(source.detail))
        for array in (windows.begin, windows.length, windows.leads):
            digest.update(np.ascontiguousarray(array).data)
        states = []
        for file in source.files:
            with contextlib.suppress(OSError):
                status = os.stat(file)
                states.append([str(file), status.st_size, status.st_mtime_ns])
        return f"{digest.hexdigest()} {json.dumps([source.record, states])}"

    def _kept(self, path: Path, place: int) -> Read:
        if self._open is None or self._open[0] != path:
            part = self._part(path)
            assert part is not None, path  # it was whole a moment ago, and is this process's own
            self._open = path, part
        return self._open[1].results[place]

    def _write(self, part: _Part) -> _Part:
        payload = part.payload()
        path = self._folder / f"{self._number:06d}.part"
        with open(path, "wb") as file:
            file.write(hashlib.sha256(payload).digest())
            file.write(payload)
        self._number += 1
        return _Part.empty()

    def _part(self, path: Path) -> _Part | None:
        content = path.read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        return _Part.of(content[32:])


class _Part:
    """Frames of several records, with what stands for each."""

    def __init__(self, marks: list[str], results: list[tuple[Signals, dict[str, str]]]) -> None:
        self.marks, self.results = marks, results
        self.bytes = 0

    @classmethod
    def empty(cls) -> _Part:
        return cls([], [])

    def fits(self, signals: Signals) -> bool:
        """Whether frames can stand in one array with those before."""
        first = self.results[0][0] if self.results else signals
        return _form(first) == _form(signals)

    def add(self, mark: str, signals: Signals, hashes: dict[str, str]) -> None:
        self.marks.append(mark)
        self.results.append((signals, hashes))
        self.bytes += signals.stored.nbytes

    def payload(self) -> bytes:
        """Arrays as in an .npz file, none of them pickled; the rest as JSON."""
        every = [signals for signals, _ in self.results]
        known = {
            "marks": self.marks,
            "sizes": [len(signals.stored) for signals in every],
            "recordings": [signals.recording and signals.recording.hex() for signals in every],
            "hashes": [hashes for _, hashes in self.results],
        }
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in every]) for name in _arrays(every[0])
        }
        buffer = io.BytesIO()
        np.savez(buffer, known=np.frombuffer(json.dumps(known).encode(), np.uint8), **arrays)
        return buffer.getvalue()

    @classmethod
    def of(cls, payload: bytes) -> _Part:
        arrays = dict(np.load(io.BytesIO(payload), allow_pickle=False))
        known: dict[str, Any] = json.loads(arrays.pop("known").tobytes())
        ends = np.cumsum(known["sizes"])[:-1]
        cut = {name: np.split(array, ends) for name, array in arrays.items()}
        results = []
        for place, (recording, hashes) in enumerate(zip(known["recordings"], known["hashes"], strict=True)):
            fields: dict[str, Any] = {name: pieces[place] for name, pieces in cut.items()}
            digest = None if recording is None else bytes.fromhex(recording)
            results.append((Signals(**fields, recording=digest), hashes))
        return cls(known["marks"], results)


def _arrays(signals: Signals) -> Iterable[str]:
    return ("stored", "gain", "offset", *(() if signals.missing is None else ("missing",)))


def _form(signals: Signals) -> tuple[Any, ...]:
    return signals.stored.dtype, signals.stored.shape[1:], signals.missing is None
