"""What is known of the frames of a preparation that goes on, beside the file in which they are.

A journal is a file of blocks, appended while frames are written. Each has the SHA-256 of what follows, its length (8
bytes), and that: a heading as JSON, and the arrays of several records. The heading says how many frames are in the
frames' file after each of these records, and the sum of all frames up to there. It may be ahead of that file, as nobody
waits for the disk: whoever uses a block sees first whether the frames have that sum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.arrays import bytes_of
from clops_sweep.data.reader import Signals
from clops_sweep.data.reading import FramesRead

_LENGTH = 8


@dataclass(frozen=True, eq=False)
class Entry:
    """A record: what stands for it, what was read of it but for its frames, and how many frames there are after it.

    `mark` is empty where its frames themselves are compared; `read` is None of a record that could not be read.
    """

    mark: str
    read: FramesRead | None
    after: int


@dataclass(frozen=True, eq=False)
class Block:
    """Records one after the other, the samples of a frame, and the sum of all frames up to the last one of them.

    `end` is where the block ends in the journal.
    """

    entries: Sequence[Entry]
    samples: int
    digest: bytes
    end: int = 0


def write(path: Path, block: Block) -> None:
    """Adds a block at the end of a journal."""
    heading = {
        "samples": block.samples,
        "sum": block.digest.hex(),
        "records": [_heading_of(entry) for entry in block.entries],
    }
    text = json.dumps(heading).encode()
    parts: list[bytes | memoryview] = [len(text).to_bytes(_LENGTH, "big"), text]
    parts += [bytes_of(array) for entry in block.entries for array in _arrays_of(entry)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with open(path, "ab") as file:
        file.write(digest.digest() + sum(map(len, parts)).to_bytes(_LENGTH, "big"))
        file.writelines(parts)


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a journal, up to the first one that is not whole."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        while True:
            digest, length = file.read(32), int.from_bytes(file.read(_LENGTH), "big")
            content = file.read(min(length, path.stat().st_size))
            if not content or hashlib.sha256(content).digest() != digest:
                return
            yield _block(content, file.tell())


def _heading_of(entry: Entry) -> list[object]:
    if entry.read is None:
        return [entry.mark, entry.after]
    signals = entry.read.signals
    recording = None if signals.recording is None else signals.recording.hex()
    rows = len(entry.read.statistics)
    return [entry.mark, entry.after, rows, signals.missing is not None, recording, entry.read.hashes]


def _arrays_of(entry: Entry) -> list[NDArray[Any]]:
    """What was read of a record as arrays; of one whose frames are compared, gain and offset are had with them."""
    if entry.read is None:
        return []
    signals = entry.read.signals
    known = [signals.gain, signals.offset, signals.missing] if entry.mark else []
    return [entry.read.statistics, *(array for array in known if array is not None)]


def _block(content: bytes, end: int) -> Block:
    begin = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
    heading = json.loads(content[_LENGTH:begin])
    arrays = _Arrays(content, begin)
    entries = []
    for mark, after, *rest in heading["records"]:
        if not rest:
            entries.append(Entry(mark, None, after))
            continue
        rows, masked, recording, hashes = rest
        statistics = arrays.take("<f8", 4 * rows).reshape(rows, 4)
        signals = Signals(
            np.empty((rows, 0)),
            arrays.take("<f4", rows if mark else 0),
            arrays.take("<f4", rows if mark else 0),
            arrays.take("?", rows) if mark and masked else None,
            None if recording is None else bytes.fromhex(recording),
        )
        entries.append(Entry(mark, FramesRead(signals, statistics, hashes, standing=True), after))
    return Block(entries, heading["samples"], bytes.fromhex(heading["sum"]), end)


class _Arrays:
    """Arrays that lie one after the other."""

    def __init__(self, content: bytes, begin: int) -> None:
        self._content, self._begin = content, begin

    def take(self, kind: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self._content, kind, count, self._begin)
        self._begin += found.nbytes
        return found
