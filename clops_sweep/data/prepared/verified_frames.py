"""Check that `frames.npy` is as written: its content is read once per machine, and after each change."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.files.folder import one_sentence, write_file
from clops_sweep.data.files.regular_files import read_json
from clops_sweep.data.prepared.freshness import state_of
from clops_sweep.data.prepared.manifest import FileRecord, check_content

VERIFIED: Final = "verified.json"
"""File beside the frames with the SHA-256 at the last check, and the state of the frames' file at that time."""

_verified: dict[Path, list[Any]] = {}
"""The same for this process, since a folder may be read-only."""


def check_array(folder: Path, name: str, record: FileRecord) -> None:
    """Compare an .npy file with its record, unless an earlier check passed and the file has not changed since.

    The folder holds one such file.

    Raises:
        DamagedStore: the array differs from what was written.
    """
    mark = _mark(folder / name, record)
    if mark not in (_verified.get(folder), _remembered(folder)):
        check_content(folder, name, record)
        if mark == _mark(folder / name, record):
            _remember(folder, mark)


def array_written(folder: Path, name: str, record: FileRecord) -> None:
    """Record that this process has just written an array, whose SHA-256 it computed while writing."""
    _remember(folder, _mark(folder / name, record))


def _mark(path: Path, record: FileRecord) -> list[Any]:
    with one_sentence(path):
        return [record.sha256, *state_of(path)]


def _remembered(folder: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return read_json(folder / VERIFIED)
    return None


def _remember(folder: Path, mark: list[Any]) -> None:
    _verified[folder] = mark
    with contextlib.suppress(OSError):  # in a read-only folder, the next process reads the frames again
        write_file(folder / VERIFIED, json.dumps(mark).encode())
