"""Whether `frames.npy` is what the preparation wrote: its content is read once for each machine and change."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.files.folder import one_sentence, write_file
from clops_sweep.data.prepared.freshness import state_of
from clops_sweep.data.prepared.manifest import FRAMES, FileRecord, Manifest, check_content
from clops_sweep.regular_files import METADATA_LIMIT, open_regular

VERIFIED: Final = "verified.json"
"""Beside the frames: the SHA-256 that they were last found to have, and the state of their file at that time."""

_verified: dict[Path, list[Any]] = {}
"""The same for this process, as a folder may be read-only."""


def check_frames(folder: Path, manifest: Manifest) -> None:
    """Compare `frames.npy` with the manifest, unless it was whole before and its file has not been touched since.

    Raises:
        DamagedStore: the frames are not what was written.
    """
    check_array(folder, FRAMES, manifest.files[FRAMES])


def check_array(folder: Path, name: str, record: FileRecord) -> None:
    """The same of any array that has a folder of its own."""
    mark = _mark(folder / name, record)
    if mark not in (_verified.get(folder), _remembered(folder)):
        check_content(folder, name, record)
        if mark == _mark(folder / name, record):
            _remember(folder, mark)


def frames_written(folder: Path, manifest: Manifest) -> None:
    """Remember that this process has just written the frames, and computed their SHA-256 while writing."""
    array_written(folder, FRAMES, manifest.files[FRAMES])


def array_written(folder: Path, name: str, record: FileRecord) -> None:
    """The same of any array that has a folder of its own."""
    _remember(folder, _mark(folder / name, record))


def _mark(path: Path, record: FileRecord) -> list[Any]:
    with one_sentence(path):
        return [record.sha256, *state_of(path)]


def _remembered(folder: Path) -> Any:
    with contextlib.suppress(OSError, ValueError), open_regular(folder / VERIFIED, METADATA_LIMIT) as file:
        return json.load(file)
    return None


def _remember(folder: Path, mark: list[Any]) -> None:
    _verified[folder] = mark
    with contextlib.suppress(OSError):  # a read-only folder: the next process reads the frames again
        write_file(folder / VERIFIED, json.dumps(mark).encode())
