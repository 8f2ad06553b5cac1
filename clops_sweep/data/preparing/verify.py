"""Check a data set completely, both the publisher's files and the prepared folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clops_sweep.data.files.checksums import published_sums, unlike
from clops_sweep.data.files.folder import is_file
from clops_sweep.data.prepared.prepared_folder import prepared_problems, source_files
from clops_sweep.data.preparing.reading import records_read
from clops_sweep.data.preparing.record_problems import Problems
from clops_sweep.data.preparing.still_equal import current_set
from clops_sweep.data.published.mitbih import vfdb_records
from clops_sweep.data.records import Source
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.data.sets.named import data_set


@dataclass(frozen=True)
class Verification:
    """What was checked, and what is wrong, one sentence each.

    `records` is the number of records that were decoded, `published` the number of files compared with the publisher's
    list of SHA-256. `prepared` says whether a prepared folder was compared with its manifest and its sources.
    """

    records: int
    published: int
    prepared: bool
    problems: tuple[str, ...]


def verify(name: str, *, prepared_root: Path, data_root: Path | None) -> Verification:
    """Decode every record under the data root, compare checksums, and check the prepared folder bit by bit.

    `vfdb`, which is only prepared as part of `mitbih_vfdb`, is verified alone.

    Raises:
        UsageError: neither the publisher's files nor a prepared set exist.
    """
    data = data_set("mitbih_vfdb" if name == "vfdb" else name)
    sources: Iterable[Source] = []
    if data_root is not None or not data.rules.reads_files or current_set(name, prepared_root, data_root) is None:
        sources = vfdb_records(data_root, 5.0) if name == "vfdb" else data.find(data_root)
    files = source_files(data, sources, data_root) if isinstance(sources, list) else list(data.tables(data_root))
    problems = Problems("skip", tolerant=True)
    read = records_read(data, sources if data.rules.reads_files else [], map, problems, SeenSamples(), hashed=False)
    records = sum(len(source.names) for source, _, _ in read) + len(problems.skipped)
    if not data.rules.reads_files:
        records = sum(len(source.names) for source in sources)
    published, unlike_published = _against_published_sums(files)
    unlike_prepared = prepared_problems(data, prepared_root=prepared_root, files=files)
    every = dict.fromkeys((*problems.every, *unlike_published, *(unlike_prepared or ())))
    return Verification(records, published, unlike_prepared is not None, tuple(every))


def _against_published_sums(files: Sequence[Path]) -> tuple[int, list[str]]:
    """Return how many files a SHA256SUMS.txt in their folder or above lists, and those that differ from it."""
    folders = set[Path]()
    for file in files:
        folders.update(file.parents[:4])
    expected = {}
    for folder in folders:
        for name, sha256 in published_sums(folder).items():
            expected[folder / name] = sha256
    compared = [file for file in files if file in expected and is_file(file)]
    problems = list[str]()
    for file in compared:
        problems += unlike(file, expected[file], "its SHA-256 is not the publisher's; download it again")
    return len(compared), problems
