"""Check that `frames.npy` is as written: its content is read once per machine, and after each change."""

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
"""File beside the frames with the SHA-256 at the last check, and the state of the frames' file at that time."""

_verified: dict[Path, list[Any]] = {}
"""The same for this process, since a folder may be read-only."""


def check_frames(folder: Path, manifest: Manifest) -> None:
    """Compare `frames.npy` with the manifest, unless an earlier check passed and the file has not changed since.

    Raises:
        DamagedStore: the frames differ from what was written.
    """
    check_array(folder, FRAMES, manifest.files[FRAMES])


def check_array(folder: Path, name: str, record: FileRecord) -> None:
    """Check any array that has a folder of its own in the same way."""
    mark = _mark(folder / name, record)
    if mark not in (_verified.get(folder), _remembered(folder)):
        check_content(folder, name, record)
        if mark == _mark(folder / name, record):
            _remember(folder, mark)


def frames_written(folder: Path, manifest: Manifest) -> None:
    """Record that this process has just written the frames, whose SHA-256 it computed while writing."""
    array_written(folder, FRAMES, manifest.files[FRAMES])


def array_written(folder: Path, name: str, record: FileRecord) -> None:
    """Record the same for any array that has a folder of its own."""
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
    with contextlib.suppress(OSError):  # in a read-only folder, the next process reads the frames again
        write_file(folder / VERIFIED, json.dumps(mark).encode())
