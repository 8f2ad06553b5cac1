"""Proving that a data set is whole: as its publisher ships it, and as it was prepared."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clops_sweep.data.checksums import is_whole, published_sums
from clops_sweep.data.dead_leads import dead_leads
from clops_sweep.data.folder import is_file, one_sentence
from clops_sweep.data.manifest import SOURCES, check_content, remedy
from clops_sweep.data.mitbih_vfdb import Vfdb
from clops_sweep.data.prepare import open_frames, prepared_set, reader_for
from clops_sweep.data.reader import OnError, Reader, Source
from clops_sweep.data.wfdb_records import read_header, read_stored
from clops_sweep.errors import BadInput


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

    `vfdb`, which is prepared as part of `mitbih_vfdb` only, is verified as its publisher ships it.

    Raises:
        BadInput: neither the publisher's files nor a prepared set are there.
    """
    reader = Vfdb() if name == "vfdb" else reader_for(name)
    sources: list[Source] = []
    if data_root is not None or not reader.reads_files or prepared_set(name, prepared_root) is None:
        sources = reader.find(data_root)
    files = _files(reader, sources, data_root)
    problems = [problem for source in sources if reader.reads_files for problem in _record_problems(reader, source)]
    published, unlike_published = _against_published_sums(files)
    prepared, unlike_prepared = _prepared_problems(name, prepared_root, files)
    every = dict.fromkeys((*problems, *unlike_published, *unlike_prepared))
    return Verification(len(sources), published, prepared, tuple(every))


def is_to_be_made_again(name: str, *, prepared_root: Path, data_root: Path | None, on_error: OnError) -> bool:
    """Whether a prepared folder is damaged or made from other files than are under the data root now.

    Also where records were skipped that are not to be skipped any more.
    """
    reader = reader_for(name)
    files: list[Path] = []
    with contextlib.suppress(BadInput):  # a prepared set needs its sources no more
        files = _files(reader, reader.find(data_root), data_root)
    if _prepared_problems(name, prepared_root, files)[1]:
        return True
    prepared = prepared_set(name, prepared_root)
    return prepared is not None and on_error == "stop" and bool(prepared.manifest.skipped)


def _files(reader: Reader, sources: Sequence[Source], data_root: Path | None) -> list[Path]:
    """The publisher's files that the frames are made from; of a record that is there twice, the first."""
    first = {source.record: source for source in reversed(sources)}
    return [
        *(file for source in sources if first[source.record] is source for file in source.files),
        *(reader.tables(data_root) if sources else ()),
    ]


def _record_problems(reader: Reader, source: Source) -> list[str]:
    """What is wrong with a record as preparing it would find, and with the signal of one that gives no frame."""
    try:
        with one_sentence(source.files[0]):
            windows = reader.windows(source)
            if len(windows):
                return dead_leads(reader, source, windows, reader.signals(source, windows))
            if source.files[0].suffix == ".hea":
                read_stored(read_header(source.files[0]))
    except BadInput as problem:
        return [str(problem)]
    return []


def _against_published_sums(files: Sequence[Path]) -> tuple[int, list[str]]:
    """How many files a SHA256SUMS.txt in their folder or above it lists, and those that differ from it."""
    expected = {
        folder / name: sha256
        for folder in {parent for file in files for parent in file.parents[:4]}
        for name, sha256 in published_sums(folder).items()
    }
    compared = [file for file in files if file in expected and is_file(file)]
    return len(compared), [
        problem
        for file in compared
        for problem in _unlike(file, expected[file], "its SHA-256 is not the publisher's; download it again")
    ]


def _unlike(file: Path, sha256: str, says: str) -> list[str]:
    """What is wrong where a file has another content, or may not be read."""
    try:
        with one_sentence(file):
            return [] if is_whole(file, sha256) else [f"{file}: {says}"]
    except BadInput as problem:
        return [str(problem)]


def _prepared_problems(name: str, prepared_root: Path, files: Sequence[Path]) -> tuple[bool, list[str]]:
    """Whether a data set is prepared, and what is wrong: with its own files, or that its sources are others now."""
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
    changed = f"has changed since {name} was prepared; {remedy(prepared.folder)}"
    return True, [
        problem for file in files if is_file(file) for problem in _unlike(file, known.get(file.name, ""), changed)
    ]
