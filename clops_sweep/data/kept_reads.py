"""What was read of records is kept until the frames are whole, so that a preparation that was killed goes on.

What is read of many records at a time is written to a part (`kept_part`), a file with its checksums, in a hidden folder
beside the prepared one, named after the code that reads. A record is taken from a part if its reader knows the
same of it as before and its files have the size and time that they had, or, where it comes from no file, all of its
samples are the same. A part that is not whole counts for nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import tee
from pathlib import Path
from typing import Final

import numpy as np

from clops_sweep.data import kept_part
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.manifest import FORMAT_VERSION, file_sha256, hash_of
from clops_sweep.data.reader import Reader, Source, Windows
from clops_sweep.data.reading import FramesRead, Read
from clops_sweep.errors import BadInput
from clops_sweep.machine import installed_version

PART_BYTES: Final = 2**24
"""Samples of a part; what was read of an unfinished one is read again."""

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
    """The parts in a folder, from which a record is read if its windows, and its files or samples, are the same."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader, self._folder = reader, folder
        self._known = pickle.dumps(reader)
        self._found: dict[str, tuple[Path, int]] = {}
        self._open: tuple[Path, list[FramesRead]] | None = None
        self._number = 0
        for path in sorted(folder.glob("*.part")):
            self._number = max(self._number, int(path.stem) + 1)
            self._found |= {mark: (path, place) for place, mark in enumerate(kept_part.marks(path))}

    def results(
        self,
        run: Callable[..., Iterator[Read]],
        read: Callable[[Pair], Read],
        pairs: Sequence[Pair],
    ) -> Iterator[Read]:
        """What `read` gives for each of the records, in their order, from a part or by an ordered map."""
        expected = sum(int(windows.length.sum()) for _, windows in pairs) * np.dtype(self._reader.stored_as).itemsize
        keeps = shutil.disk_usage(self._folder).free > 3 * expected
        if not (keeps or self._found):
            yield from run(read, pairs)
            return
        marked, ahead = tee((pair, self._mark(*pair)) for pair in pairs)  # where `run` is `map`, each when it is read
        fresh = run(read, (pair for pair, mark in ahead if mark not in self._found))
        new: list[tuple[str, FramesRead]] = []
        size = 0
        for pair, mark in marked:
            if mark in self._found:
                yield self._kept(*self._found[mark]) or read(pair)
                continue
            result = next(fresh)
            if keeps and mark is not None and isinstance(result, FramesRead):
                new.append((mark, result))
                size += result.signals.stored.nbytes
                if size >= PART_BYTES:
                    kept_part.write(self._folder / f"{self._number:06d}.part", new)
                    self._number += 1
                    new, size = [], 0
            yield result

    def _mark(self, source: Source, windows: Windows) -> str | None:
        """What stands for a record: all that its reader knows of it, its windows, and its files as they are now.

        Of one in memory its content; None where that is not to be had, of which whoever reads it says why.
        """
        digest = hashlib.blake2b(self._known, digest_size=16)
        for array in (windows.begin, windows.length, windows.leads):
            digest.update(np.ascontiguousarray(array).data)
        try:
            content = self._reader.content(source)
        except BadInput:
            return None
        if content is not None:
            digest.update(content)
            return digest.hexdigest()
        digest.update(pickle.dumps(source.detail))
        states = []
        for file in source.files:
            with contextlib.suppress(OSError):
                status = os.stat(file)
                states.append([str(file), status.st_size, status.st_mtime_ns])
        return f"{digest.hexdigest()} {json.dumps([source.record, states])}"

    def _kept(self, path: Path, place: int) -> FramesRead | None:
        """What was read of a record; None where the part is damaged."""
        if self._open is None or self._open[0] != path:
            self._open = path, kept_part.read(path)
        return self._open[1][place] if self._open[1] else None
