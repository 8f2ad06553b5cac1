"""The folder of a report by default, and the search-space files that the report in a folder is of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clops_sweep.data.files.folder import one_sentence
from clops_sweep.errors import listed, shown
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.experiment.spaces.selection import Selection, file_name
from clops_sweep.store.run_store import RunStore

from .marks import OF_FILES

_LONGEST_NAME, _LONGEST_STEM = 200, 40
"""Most bytes of a folder's name, and characters per file if the name would be longer."""
_DIGEST = 8
"""Hexadecimal digits that distinguish folders of one name."""


@dataclass(frozen=True)
class ReportFolder:
    """The folder of a report by default.

    Attributes:
        path: the folder.
        why: why its name is not that of the search spaces alone; empty if it is.
    """

    path: Path
    why: str = ""


def default_folder(selection: Selection, store: RunStore, titles: Sequence[str]) -> ReportFolder:
    """Return the folder of a report: in a local store, else in the current folder.

    It is named after titles and overrides, such as "demo+dataset=mitbih". If that folder has the report of other files,
    the name ends with a digest of the places of these files: a report never replaces that of another file.

    Args:
        selection: the search spaces.
        store: the store.
        titles: the names of the studies.
    """
    beside = store.files.folder
    base = Path("report") if beside is None else beside / "report"
    folder = base / _name([*titles, *overrides(selection)])
    reported = _files_of_report(folder)
    files = _files_of(selection, store)
    if reported is None or _are_same(reported, files):
        return ReportFolder(folder)
    digest = sha256(list(files))[:_DIGEST]
    whose = listed(list(reported)) or "all runs of the store"
    why = f"{shown(str(folder))} has the report of {whose}, so this report, which has the same name, has its own folder"
    return ReportFolder(folder.with_name(f"{folder.name}+{digest}"), why)


def remember_files(folder: Path, selection: Selection, store: RunStore) -> None:
    """Write into the folder of a report which search-space files it is of."""
    with one_sentence(folder / OF_FILES):
        (folder / OF_FILES).write_text(json.dumps(_files_of(selection, store)), encoding="utf-8")


def overrides(selection: Selection) -> list[str]:
    """Return the overrides of the search spaces, such as "dataset=mitbih"."""
    seeds = {} if selection.seeds is None else {"seeds": selection.seeds}
    return [f"{name}={value}" for name, value in sorted({**selection.settings, **seeds}.items())]


def _name(texts: Sequence[str]) -> str:
    """Return the name of a folder from texts; shorter, with a digest, for many files or long names."""
    name = "+".join(map(file_name, texts))
    if len(name.encode("utf-8", "replace")) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(ascii(name).encode()).hexdigest()[:_DIGEST]
    return f"{file_name(texts[0])[:_LONGEST_STEM]}+{digest}"


def _files_of(selection: Selection, store: RunStore) -> dict[str, str]:
    """Return the SHA-256 of each search-space file, by its place relative to the parent of the store's folder."""
    folder = store.files.folder
    start = Path.cwd() if folder is None else folder.parent
    files = {}
    for file in selection.files:
        relative = Path(os.path.relpath(file.resolve(), start.resolve())).as_posix()
        files[relative] = hashlib.sha256(file.read_bytes()).hexdigest()
    return files


def _files_of_report(folder: Path) -> dict[str, str] | None:
    """Return the files that the report in a folder is of, as in `_files_of`; None without them."""
    with suppress(OSError, ValueError):
        content = json.loads((folder / OF_FILES).read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return {str(path): str(digest) for path, digest in content.items()}
    return None


def _are_same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return whether files have the same places, or the same contents, as those that were moved or copied have."""
    return list(one) == list(other) or list(one.values()) == list(other.values())
