"""A simulated disk that loses what was not flushed, in all states that a power failure may leave at many moments."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

_Name = tuple[Path, str]
"""A folder and a name in it, both below the root."""


class Power:
    """Follows what a process flushes below a folder, and calls `failed` where the power might fail.

    POSIX guarantees for a file the content at its last flush, and for a folder the names at its last flush. Anything
    else may have reached the disk, in any order: a part of a file changed since its last flush, and each newer name of
    a folder or not.

    Args:
        root: the folder; its present content is on the disk.
        failed: called with this object before and after each call of fsync, rename and unlink below the root.
        monkeypatch: used to replace these calls.
    """

    def __init__(self, root: Path, failed: Callable[[Power], None], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._failed = failed
        self._flushed: dict[int, bytes] = {}  # by inode
        self._held: dict[int, int] = {}  # an open file keeps its inode number from being reused
        self._names: dict[int, dict[str, int]] = {}  # of folders, by inode: the target of each name
        for folder, _, files in os.walk(root):
            for path in (Path(folder), *(Path(folder, file) for file in files)):
                self._flush(path)
        for name in ("fsync", "replace", "rename", "unlink"):
            monkeypatch.setattr(os, name, self._around(name, getattr(os, name)))

    def _around(self, name: str, original: Callable[..., None]) -> Callable[..., None]:
        def call(target: int | str | Path, *rest: object, **options: object) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else target)
            if not path.is_relative_to(self.root):
                return original(target, *rest, **options)
            self._failed(self)
            original(target, *rest, **options)
            if name == "fsync":
                self._flush(path)
            self._failed(self)
            return None

        return call

    def _flush(self, path: Path) -> None:
        inode = path.stat().st_ino
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY)
        if path.is_dir():
            self._names[inode] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._flushed[inode] = path.read_bytes()

    def image(self, target: Path, draw: random.Random | None) -> None:
        """Write a possible content of the disk.

        Args:
            target: the folder to write to; its content is removed.
            draw: draws what has reached the disk beyond what was flushed; None for nothing.
        """
        shutil.rmtree(target, ignore_errors=True)
        self._write_folder(self.root, self.root.stat().st_ino, target, draw)

    def _write_folder(self, now: Path, inode: int, target: Path, draw: random.Random | None) -> None:
        target.mkdir()
        kept = self._names.get(inode, {})
        newer = {entry.name: entry.inode() for entry in os.scandir(now)} if now.is_dir() else {}
        for name in sorted(kept.keys() | newer.keys()):
            found = newer.get(name) if draw is not None and draw.random() < 0.5 else kept.get(name)
            if found is None:
                continue
            here = now / name
            if found in self._names or (newer.get(name) == found and here.is_dir()):
                self._write_folder(here, found, target / name, draw)
            elif (content := self._content(here, found, newer.get(name), draw)) is not None:
                (target / name).write_bytes(content)

    def _content(self, path: Path, inode: int, now: int | None, draw: random.Random | None) -> bytes | None:
        """Return the possible content of a file with this name; names may reach the disk before content does."""
        flushed = self._flushed.get(inode)
        if draw is None or now != inode:
            return flushed if flushed is not None else b""
        written = path.read_bytes()
        return (
            draw.choice([flushed or b"", written]) if written == flushed else written[: draw.randint(0, len(written))]
        )

    def close(self) -> None:
        """Close the files that were held open."""
        for handle in self._held.values():
            os.close(handle)
