"""A preparation that was killed goes on: the frames that it had written are kept, and what is known of them.

Frames are written to a file in a hidden folder beside the prepared one, named after all that makes them but for the
records, with a journal (`kept_journal`). The next attempt goes through the same records in the same order. A record in
files is not read again as long as these have the size and time that they had; one in memory that is resampled, as long
as all of its samples are the same; of others the frames are made, and compared with those in the file. With the first
record that is another, the file is cut, and written from there on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import tee
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data import kept_journal
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frame_file import FrameFile, add_frames, data_begin
from clops_sweep.data.kept_journal import Block, Entry
from clops_sweep.data.manifest import FORMAT_VERSION, digest_of_array, file_sha256, hash_of
from clops_sweep.data.reader import OnError, Reader, Signals, Source, Windows
from clops_sweep.data.reading import FramesRead, Read
from clops_sweep.errors import BadInput
from clops_sweep.machine import installed_version

BLOCK_BYTES: Final = 2**24
"""Frames of a block of the journal; those of an unfinished one are made again."""

Pair = tuple[Source, Windows]

_NONE: Final = np.empty((0, 0), np.float32)
_COMPARED: Final = Signals(_NONE, _NONE.reshape(0), _NONE.reshape(0))
"""In the place of what is had with the frames that are compared."""


@contextmanager
def kept_frames(reader: Reader, folder: Path, expected: int, on_error: OnError) -> Iterator[KeptFrames | None]:
    """What is kept of a preparation of `folder`; None where another process keeps it just now.

    It is there no more once the block has ended well, or because of the disk, or where it is not worth it.
    """
    prefix = f".{folder.name}.unfinished-"
    declared = DATASETS.declared(reader.name)
    key = hash_of(
        code=_code(),
        declared=declared.fingerprint if declared else None,
        reader=hashlib.sha256(pickle.dumps(reader)).hexdigest(),
        frames=expected,
        on_error=on_error,
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
        kept = KeptFrames(reader, place, expected)
        worth_keeping = False
        try:
            yield kept
        except BaseException as error:
            of_the_disk = isinstance(error, OSError) or isinstance(error.__context__, OSError)
            worth_keeping = kept.journal.exists() and not of_the_disk
            raise
        finally:
            if not worth_keeping:
                shutil.rmtree(place, ignore_errors=True)


@cache
def _code() -> str:
    packages = [installed_version(package) for package in ("numpy", "scipy", "wfdb", "pyarrow")]
    files = [file_sha256(file) for file in sorted(Path(__file__).parent.rglob("*.py"))]
    return hash_of(format=FORMAT_VERSION, packages=packages, code=files)


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


class KeptFrames:
    """The frames and the journal in a folder.

    Attributes:
        frames: the file that frames are written to.
        journal: what is known of them.
    """

    def __init__(self, reader: Reader, folder: Path, expected: int) -> None:
        self.frames, self.journal = folder / "frames.npy", folder / "journal"
        self._reader, self._expected = reader, expected
        self._new: list[Entry] = []
        self._marked = self._end = 0
        with contextlib.suppress(FileNotFoundError):
            # Killed once the frames had appeared, perhaps: nobody writes to what may be in use.
            if os.stat(self.frames).st_nlink > 1:
                self.frames.unlink()

    def also_in(self, folder: Path) -> Path:
        """Has the frames, which are whole, in another folder too: a kill in what is still to do loses nothing.

        Where a file cannot have two names, they are in that folder alone.
        """
        place = folder / self.frames.name
        try:
            os.link(self.frames, place)
        except OSError:
            os.rename(self.frames, place)
        return place

    def results(
        self, file: FrameFile, run: Callable[..., Iterator[Read]], read: Callable[..., Read], pairs: Sequence[Pair]
    ) -> Iterator[Read]:
        """What `read` gives for each of the records, in their order, or what was known of it, as it is asked for.

        Whoever asks for the next one has added the frames of the one before to the file.
        """
        done = 0
        with contextlib.closing(self._followed(file)) as entries:
            for entry, pair in zip(entries, pairs, strict=False):
                mark = self._mark(pair)
                if entry.mark != mark:
                    break
                result = self._again(file, read, pair, entry)
                yield result
                done += 1
                self._new.append(_entry(mark, result, file.count))
                if file.count != entry.after:
                    break
        file.leave()
        if self.journal.exists():
            os.truncate(self.journal, self._end)
        marked, ahead = tee((pair, self._mark(pair)) for pair in pairs[done:])  # before it is read
        results = run(read, (pair for pair, _ in ahead))
        for (_, mark), result in zip(marked, results, strict=True):
            yield result
            self._new.append(_entry(mark, result, file.count))
            if (file.count - self._marked) * file.samples * file.dtype.itemsize >= BLOCK_BYTES:
                self._marked = file.count
                file.then(partial(self._write, self._new, file.samples))
                self._new = []

    def _followed(self, file: FrameFile) -> Generator[Entry, None, None]:
        """The records of an earlier attempt whose frames are whole in the file."""
        with ThreadPoolExecutor(1) as beside:
            blocks = self._whole_blocks(file.dtype)
            following = beside.submit(next, blocks, None)
            while (found := following.result()) is not None:
                block, digest = found
                following = beside.submit(next, blocks, None)
                file.follow(block.entries[-1].after, block.samples, digest)
                yield from block.entries
                self._end, self._marked, self._new = block.end, file.count, []

    def _whole_blocks(self, dtype: np.dtype[Any]) -> Iterator[tuple[Block, hashlib._Hash]]:
        """Blocks of which the frames are in the file, with the sum of all frames up to there."""
        digest, count = None, 0
        for block in kept_journal.blocks(self.journal):
            digest = digest or digest_of_array(dtype, (self._expected, block.samples))
            row, begin = block.samples * dtype.itemsize, data_begin(dtype)
            after = block.entries[-1].after
            with open(self.frames, "rb", buffering=0) as file:
                add_frames(digest, file, begin + count * row, begin + after * row)
            if digest.digest() != block.digest:
                return
            count = after
            yield block, digest.copy()

    def _again(self, file: FrameFile, read: Callable[..., Read], pair: Pair, entry: Entry) -> Read:
        """What was read of a record, or is read now where that is not known."""
        if entry.read is None:
            return read(pair)
        if entry.mark:
            return entry.read
        known, frames = entry.read.statistics, entry.after - file.count

        def statistics(stored: NDArray[Any]) -> NDArray[np.float64] | None:
            return known if len(stored) == frames == len(known) and file.stands(stored) else None

        return read(pair, known=statistics)

    def _write(self, entries: Sequence[Entry], samples: int, digest: bytes) -> None:
        kept_journal.write(self.journal, Block(entries, samples, digest))

    def _mark(self, pair: Pair) -> str:
        """What stands for a record: its windows, what its reader knows of it, and its files as they are now.

        Of one in memory its content, or nothing where its frames are to be compared, or where it cannot be had, of
        which whoever reads it says why.
        """
        source, windows = pair
        try:
            content = self._reader.content(source)
        except BadInput:
            return ""
        if content is None and not source.files:
            return ""
        digest = hashlib.blake2b(pickle.dumps(source.detail) if content is None else content, digest_size=16)
        for array in (windows.begin, windows.length, windows.leads):
            digest.update(np.ascontiguousarray(array).data)
        states = []
        for path in source.files:
            with contextlib.suppress(OSError):
                status = os.stat(path)
                states.append([str(path), status.st_size, status.st_mtime_ns])
        return f"{digest.hexdigest()} {json.dumps([source.record, states])}"


def _entry(mark: str, result: Read, after: int) -> Entry:
    """What is written down of a record."""
    if isinstance(result, str):
        return Entry(mark, None, after)
    known = result.signals
    signals = Signals(_NONE, known.gain, known.offset, known.missing, known.recording) if mark else _COMPARED
    return Entry(mark, FramesRead(signals, result.statistics, result.hashes), after)
