"""Check in milliseconds whether prepared frames still match the code and files that they were made from.

The manifest holds the fingerprint of the code and the SHA-256 of every file. Beside it, `files.json` records the
folder, the sizes and the times of the files. A file is read again only if its size or times differ. `files.json` is not
part of the prepared data and may be rewritten.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.files.folder import shorten, write_file
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.files.regular_files import METADATA_LIMIT, read_json
from clops_sweep.data.prepared.earlier_editions import is_earlier
from clops_sweep.data.prepared.manifest import Manifest
from clops_sweep.errors import AbsentData, UsageError, either, listed

FILES: Final = "files.json"
State = list[int]
"""Size in bytes, mtime and ctime in nanoseconds, and inode number of a file. A user can set mtime back, but not
ctime."""


class Change(NamedTuple):
    """What is not as prepared frames were made from it: code, or a file by its key."""

    what: str
    how: Literal["edited", "removed", "added"]
    is_code: bool = False


def changes_in_words(changes: Iterable[Change]) -> str:
    """Return changes as a clause, such as "edited: labels.csv; added: a.edf, b.edf"; empty without any."""
    by_kind: dict[str, list[str]] = {}
    for change in changes:
        by_kind.setdefault(change.how, []).append(change.what)
    return "; ".join(f"{how}: {listed(files)}" for how, files in by_kind.items())


class _Remembered(NamedTuple):
    """The source files when they were last compared.

    Attributes:
        files: the state of each.
        root: the data root.
        declared_in: the file that declared the data set.
        listing: hash of the recordings that the declaration lists, see `listing.listing_hash`; None if unknown.
        differing: states of the files for which the frames were found to be others.
    """

    files: Mapping[str, State]
    root: Path | None = None
    declared_in: str | None = None
    listing: str | None = None
    differing: Mapping[str, State] | None = None


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


def remember(folder: Path, name: str, data_root: Path | None, states: Mapping[str, State], listing: str | None) -> None:
    """Write the present state of the source files of a data set, and what declares it, into a prepared folder.

    Args:
        folder: the prepared folder.
        name: the data set.
        data_root: folder of the source files.
        states: their states.
        listing: hash of the recordings that the declaration lists, if known.
    """
    root = None if data_root is None else os.path.abspath(data_root)
    content = {"root": root, "files": dict(states), "declared_in": _place(name), "listing": listing}
    write_file(folder / FILES, json.dumps(content).encode())


def remember_differing(folder: Path, states: Mapping[str, State]) -> None:
    """Write that source files in these states give other frames, so that they are not compared again."""
    with contextlib.suppress(OSError, ValueError, TypeError, UsageError):
        content = read_json(folder / FILES, METADATA_LIMIT)
        write_file(folder / FILES, json.dumps(content | {"differing": dict(states)}).encode())


def listing_of(folder: Path) -> str | None:
    """Return the hash of the recordings that the declaration listed when a folder was prepared; None if unknown."""
    return _remembered(folder).listing


def is_known_to_differ(folder: Path, states: Mapping[str, State]) -> bool:
    """Return whether source files in these states were found to give other frames than a prepared folder has."""
    return _remembered(folder).differing == states


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
    """Yield what is not as the prepared frames were made from it: "the code in own.py", or files by their keys.

    Files are compared as the differences are asked for, new ones last: a list of changes is cut after the first few,
    and a changed table of labels says more than one of many new recordings. If none is found, the state of the files
    is remembered. New files that were found to be of other recordings, see `still_equal`, are no change.

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
    is_same = True
    if declared.fingerprint not in (manifest.fingerprint, *manifest.equal_code):
        yield Change(f"the code in {Path(declared.place).name}", "edited", is_code=True)
        is_same = False
    remembered = _remembered(folder)
    known, sums = remembered.files, manifest.sources
    root, there = source_files_now(folder, manifest, data_root)
    states = states_of(there)
    if not states or states == known:
        return
    for key in sorted(sums):
        if key not in states:
            yield Change(key, "removed")
            is_same = False
        elif states[key] != known.get(key) and file_sha256(there[key]) != sums[key]:
            yield Change(key, "edited")
            is_same = False
    for key in sorted(states.keys() - sums.keys()):
        if states[key] != known.get(key):
            yield Change(key, "added")
            is_same = False
    if is_same:
        with contextlib.suppress(OSError):
            remember(folder, manifest.name, root, states, remembered.listing)


def source_files_now(folder: Path, manifest: Manifest, data_root: Path | None) -> tuple[Path, dict[str, Path]]:
    """Return the folder of the source files of a declared data set, and by key the files that are declared now.

    Those that frames were made from are among them, also if they are missing. There are no files if a declared one is
    missing; see `changes`.
    """
    declared = DATASETS.declared(manifest.name)
    if declared is None:
        return folder, {}
    root = data_root or declared.folder
    now = _sources(root, manifest, declared)
    remembered = _remembered(folder).root
    if data_root is None and now is None and remembered is not None:
        root = remembered
        now = _sources(root, manifest, declared)
    return root, now or {}


def _remembered(folder: Path) -> _Remembered:
    """Return the state of the source files when they were last compared, if known; earlier versions wrote less."""
    try:
        content = read_json(folder / FILES, METADATA_LIMIT)
        root = content["root"]
        return _Remembered(
            content["files"],
            None if root is None else Path(root),
            content.get("declared_in"),
            content.get("listing"),
            content.get("differing"),
        )
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
