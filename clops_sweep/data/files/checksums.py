"""The lists of SHA-256 that PhysioNet publishes with every version of a data set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import is_file, one_sentence, shorten
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.errors import UsageError

SUMS: Final = "SHA256SUMS.txt"

_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *]?(.+)")


def published_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder's SHA256SUMS.txt, by relative name; empty without one."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    with one_sentence(path):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {match[2]: match[1] for line in lines if (match := _LINE.fullmatch(line.strip()))}


def listed_below(folder: Path) -> set[Path]:
    """Return the files below `folder` that a SHA256SUMS.txt lists: its own, or one of the two folders above."""
    listed = {parent / name for parent in (folder, *folder.parents[:2]) for name in published_sums(parent)}
    return {path for path in listed if folder in path.parents}


def unlike(file: Path, sha256: str, says: str) -> list[str]:
    """Return a sentence, in a list, if a file has other content (it ends in `says`) or cannot be read; else none."""
    try:
        with one_sentence(file):
            return [] if is_file(file) and file_sha256(file) == sha256 else [f"{shorten(file)}: {says}"]
    except UsageError as problem:
        return [str(problem)]
