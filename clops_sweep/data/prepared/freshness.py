"""Check in milliseconds whether prepared frames still match the code and files that they were made from.

The manifest holds the fingerprint of the code and the SHA-256 of every file. Beside it, `files.json` records the
folder, the sizes and the times of the files. A file is read again only if its size or times differ. `files.json` is not
part of the prepared data and may be rewritten.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.files.folder import shorten, write_file
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.files.regular_files import METADATA_LIMIT, read_json
from clops_sweep.data.prepared.earlier_editions import is_earlier
from clops_sweep.data.prepared.manifest import Manifest
from clops_sweep.errors import AbsentData, UsageError, either

FILES: Final = "files.json"
State = list[int]
"""Size in bytes, mtime and ctime in nanoseconds, and inode number of a file. A user can set mtime back, but not
ctime."""


class Change(NamedTuple):
    """What is not as prepared frames were made from it: code, or a file."""

    what: str
    is_code: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        return self.what


class _Remembered(NamedTuple):
    """The source files when they were last compared: their states, the data root and the file that declared them."""

    files: Mapping[str, State]
    root: Path | None = None
    declared_in: str | None = None


def states_of(files: Mapping[str, Path]) -> dict[str, State]:
    """Return size, times and inode of the files that exist."""
    states = {}
    for key, file in files.items():
        with contextlib.suppress(OSError):
            states[key] = state_of(file)
    return states


def state_of(file: Path) -> State:
    """Return size, times and inode of a file."""
    status = os.stat(file)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def remember(folder: Path, name: str, data_root: Path | None, states: Mapping[str, State]) -> None:
    """Write the present state of the source files of a data set, and what declares it, into a prepared folder."""
    root = None if data_root is None else os.path.abspath(data_root)
    content = {"root": root, "files": dict(states), "declared_in": _place(name)}
    write_file(folder / FILES, json.dumps(content).encode())


def _place(name: str) -> str | None:
    """Return the file that declares a data set in this process; None without one."""
    declared = DATASETS.declared(name)
    return None if declared is None else os.path.abspath(declared.place)


def prepared_for(place: str) -> str:
    """Return a clause on frames of another project, with what keeps those of both."""
    own_root = either("--prepared-root", "prepared_root=")
    return (
        f"were prepared for the data set of this name in {shorten(place)}; to keep both, rename one of them, or give "
        f"each project a folder of its own with {own_root} or CLOPS_PREPARED_ROOT"
    )


def other_project(folder: Path, name: str) -> str | None:
    """Return the file of another folder for whose data set of this name frames were prepared; None if it is ours."""
    other, own = _remembered(folder).declared_in, _place(name)
    if other is None or own is None or os.path.dirname(other) == os.path.dirname(own):
        return None
    return other


def is_fresh(folder: Path, manifest: Manifest, data_root: Path | None) -> bool:
    """Return whether the code and files are those that the prepared frames were made from; see `changes`."""
    return next(changes(folder, manifest, data_root), None) is None


def changes(folder: Path, manifest: Manifest, data_root: Path | None) -> Iterator[Change]:
    """Yield what is not as the prepared frames were made from it: "the code in own.py", or paths of files.

    Files are compared as the differences are asked for, new ones last: a list of changes is cut after the first few,
    and a changed table of labels says more than one of many new recordings. If none is found, the state of the files
    is remembered.

    If no file declares the data set in this process, or for an earlier edition, nothing is compared. If its source
    files are missing, as on another machine, only the code is compared: prepared frames do not need their sources.

    Args:
        folder: the prepared folder.
        manifest: its manifest.
        data_root: folder of the source files; by default that of the file that declares the data set, if it has them,
            else that of the preparation. Two folders may declare data sets of one name with equal code.
    """
    declared = DATASETS.declared(manifest.name)
    if declared is None or is_earlier(folder):
        return
    if declared.fingerprint not in (manifest.fingerprint, *manifest.equal_code):
        yield Change(f"the code in {Path(declared.place).name}", is_code=True)
        is_same = False
    else:
        is_same = True
    known, remembered, _ = _remembered(folder)
    sums = manifest.sources
    root = data_root or declared.folder
    now = _sources(root, manifest, declared)
    if data_root is None and now is None and remembered is not None:
        root = remembered
        now = _sources(root, manifest, declared)
    there = now or {}
    states = states_of(there)
    if not states or states == known:
        return
    for key in [*sorted(sums), *sorted(states.keys() - sums.keys())]:
        if key not in sums:
            yield Change(f"{key} (new)")
        elif key not in states:
            yield Change(f"{key} (missing)")
        elif states[key] != known.get(key) and file_sha256(there[key]) != sums[key]:
            yield Change(key)
        else:
            continue
        is_same = False
    if is_same:
        with contextlib.suppress(OSError):
            remember(folder, manifest.name, root, states)


def _remembered(folder: Path) -> _Remembered:
    """Return the state of the source files when they were last compared, if known; earlier versions wrote no place."""
    try:
        remembered = read_json(folder / FILES, METADATA_LIMIT)
        root = remembered["root"]
        return _Remembered(remembered["files"], None if root is None else Path(root), remembered.get("declared_in"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        return _Remembered({})


def _sources(root: Path, manifest: Manifest, declared: Declared) -> dict[str, Path] | None:
    """Return the declared files under a data root and those that frames were made from, by path.

    None if a declared file is missing or, without any declared, if no file is there that frames were made from.
    """
    made_from = {key: root / key for key in manifest.sources}
    try:
        files = declared_files(manifest.name, declared.files, root)
    except AbsentData:
        return None
    if not files and not any(file.exists() for file in made_from.values()):
        return None
    return made_from | files
