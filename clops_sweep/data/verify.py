"""Proving that a data set is whole: as its publisher ships it, and as it was prepared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clops_sweep.data.folder import one_sentence
from clops_sweep.data.manifest import SOURCES, check_content, file_sha256
from clops_sweep.data.prepare import open_frames, prepared_set, reader_for
from clops_sweep.data.reader import Reader, Source
from clops_sweep.errors import BadInput

_SUMS: Final = "SHA256SUMS.txt"


@dataclass(frozen=True)
class Verification:
    """What was looked at and what is wrong, one sentence each.

    `records` were decoded in full; `published` files were compared with the publisher's SHA-256 list, where there is
    one; `prepared` says whether the prepared folder was there and compared with its manifest and its sources.
    """

    records: int
    published: int
    prepared: bool
    problems: tuple[str, ...]


def verify(name: str, *, prepared_root: Path, data_root: Path | None) -> Verification:
    """Decodes every record under the data root, compares checksums, and checks the prepared folder bit by bit.

    Raises:
        BadInput: neither the publisher's files nor a prepared set are there.
    """
    reader = reader_for(name)
    problems: list[str] = []
    try:
        sources = reader.find(data_root)
    except BadInput:
        if data_root is not None or prepared_set(name, prepared_root) is None:
            raise
        sources = []
    published = 0
    if reader.reads_files:
        for source in sources:
            problems += _record_problems(reader, source)
        published, wrong = _against_published_sums(sources)
        problems += wrong
    prepared, wrong = _prepared_problems(name, prepared_root, sources if reader.reads_files else [])
    return Verification(len(sources), published, prepared, tuple(problems + wrong))


def _record_problems(reader: Reader, source: Source) -> list[str]:
    try:
        with one_sentence(source.files[0]):
            windows = reader.windows(source)
            if len(windows):
                reader.signals(source, windows)
    except BadInput as problem:
        return [str(problem)]
    return []


def _against_published_sums(sources: list[Source]) -> tuple[int, list[str]]:
    """Files compared with a SHA256SUMS.txt in their folder or above it, and those that differ."""
    expected: dict[Path, str] = {}
    for folder in {parent for source in sources for file in source.files for parent in file.parents[:3]}:
        if (folder / _SUMS).is_file():
            for line in (folder / _SUMS).read_text(errors="replace").splitlines():
                digest, _, file_name = line.partition(" ")
                expected[folder / file_name.strip().lstrip("*")] = digest
    compared = [file for source in sources for file in source.files if file in expected and file.is_file()]
    wrong = [
        f"{file}: its SHA-256 is not the publisher's; download it again"
        for file in compared
        if file_sha256(file) != expected[file]
    ]
    return len(compared), wrong


def _prepared_problems(name: str, prepared_root: Path, sources: list[Source]) -> tuple[bool, list[str]]:
    try:
        prepared = prepared_set(name, prepared_root)
        if prepared is None:
            return False, []
        for file, record in prepared.manifest.files.items():
            check_content(prepared.folder, file, record)
        open_frames(name, prepared_root=prepared_root)
    except BadInput as damage:
        return True, [str(damage)]
    known = json.loads((prepared.folder / SOURCES).read_bytes())
    return True, [
        f"{file}: has changed since {name} was prepared; run 'clops-sweep data prepare {name}' again"
        for source in sources
        for file in source.files
        if file.is_file() and known.get(file.name, file_sha256(file)) != file_sha256(file)
    ]
