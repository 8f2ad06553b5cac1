"""What is read of a record, or why it could not be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.folder import one_sentence
from clops_sweep.data.manifest import file_sha256
from clops_sweep.data.normalization import frame_statistics
from clops_sweep.data.reader import Reader, Signals, Source, Windows
from clops_sweep.errors import BadInput


@dataclass(frozen=True, eq=False)
class FramesRead:
    """Frames of a source, the `frame_statistics` of each [m, 4], and the SHA-256 of its files by their keys."""

    signals: Signals
    statistics: NDArray[np.float64]
    hashes: dict[str, str]


Read = FramesRead | str
"""What was read of a source, or why it could not be read."""


def windows_or_reason(reader: Reader, source: Source) -> Windows | str:
    """The windows of a source, or why they are not known."""
    try:
        with one_sentence(source.files[0] if source.files else source.record):
            return reader.windows(source)
    except BadInput as problem:
        return str(problem)


def read_frames(reader: Reader, pair: tuple[Source, Windows]) -> Read:
    """Read the frames of a source at the given windows; the reason, where the source cannot be read."""
    source, windows = pair
    try:
        with one_sentence(source.files[0] if source.files else source.record):
            signals = reader.signals(source, windows)
            hashes = {reader.file_key(file): file_sha256(file) for file in source.files}
            return FramesRead(signals, frame_statistics(signals.stored), hashes)
    except BadInput as problem:
        return str(problem)


def apart_where_bad(
    reader: Reader, source: Source, windows: Windows, result: Read
) -> Iterator[tuple[Source, Windows, Read]]:
    """What was read of a source; record by record where it stands for several and one of them is bad."""
    if isinstance(result, FramesRead) or len(source.names) == 1:
        yield source, windows, result
        return
    for single in reader.apart(source):
        windows = reader.windows(single)
        yield single, windows, read_frames(reader, (single, windows))
