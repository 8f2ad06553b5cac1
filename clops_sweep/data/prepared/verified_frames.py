"""Whether `frames.npy` is what the preparation wrote: its content is read once for each machine and change."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.files.folder import one_sentence, write_file
from clops_sweep.data.prepared.freshness import state_of
from clops_sweep.data.prepared.manifest import Manifest, check_content
from clops_sweep.regular_files import METADATA_LIMIT, open_regular

VERIFIED: Final = "verified.json"
"""Beside the frames: the SHA-256 that they were last found to have, and the state of their file at that time."""

_FRAMES: Final = "frames.npy"
_verified: dict[Path, list[Any]] = {}
"""The same for this process, as a folder may be read-only."""


def check_frames(folder: Path, manifest: Manifest) -> None:
    """Compare `frames.npy` with the manifest, unless it was whole before and its file has not been touched since.

    Raises:
        DamagedStore: the frames are not what was written.
    """
    mark = _mark(folder, manifest)
    if mark not in (_verified.get(folder), _remembered(folder)):
        check_content(folder, _FRAMES, manifest.files[_FRAMES])
        if mark == _mark(folder, manifest):
            _remember(folder, mark)


def frames_written(folder: Path, manifest: Manifest) -> None:
    """Remember that this process has just written the frames, and computed their SHA-256 while writing."""
    _remember(folder, _mark(folder, manifest))


def _mark(folder: Path, manifest: Manifest) -> list[Any]:
    with one_sentence(folder / _FRAMES):
        return [manifest.files[_FRAMES].sha256, *state_of(folder / _FRAMES)]


def _remembered(folder: Path) -> Any:
    with contextlib.suppress(OSError, ValueError), open_regular(folder / VERIFIED, METADATA_LIMIT) as file:
        return json.load(file)
    return None


def _remember(folder: Path, mark: list[Any]) -> None:
    _verified[folder] = mark
    with contextlib.suppress(OSError):  # a read-only folder: the next process reads the frames again
        write_file(folder / VERIFIED, json.dumps(mark).encode())
