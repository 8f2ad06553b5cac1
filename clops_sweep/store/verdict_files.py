"""The files of a store that keep verdicts on claims as they were shown. None is ever replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.store.files import Files

FOLDER = "verdicts"
"""Folder of a store with the verdicts that were shown, a file for each time that one differed."""


def stored_verdicts(files: Files) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the path of each file and the verdicts in it, oldest first.

    Raises:
        DamagedStore: a file was edited.
    """
    for name in files.names(f"{files.root}/{FOLDER}"):
        path = f"{files.root}/{FOLDER}/{name}"
        try:
            content = json.loads(files.read(path).to_pybytes())
            digest = content.pop("sha256")
            rows = list(content["verdicts"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise damaged(path) from None
        if digest != sha256(content):
            raise damaged(path)
        yield path, rows


def damaged(path: str) -> DamagedStore:
    """Return the error about a file that was edited."""
    return DamagedStore(f"{path}: was edited after these verdicts were recorded; restore the original file")


def copy_verdicts(files: Files, other: Files) -> None:
    """Copy the files of another store that this one lacks. Their names have the time and a digest of the content.

    Raises:
        OSError: the store cannot be written to.
    """
    known = set(files.names(f"{files.root}/{FOLDER}"))
    for name in other.names(f"{other.root}/{FOLDER}"):
        if name not in known:
            files.write(f"{files.root}/{FOLDER}/{name}", other.read(f"{other.root}/{FOLDER}/{name}"))
