"""Compaction: many small parts into few, while others write, read and compact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import pyarrow as pa

from clops_sweep.store.parts import TABLES_AT_A_TIME, Listing, Part, PartFolder, compacted

RUNS_PER_PART = 2000
BYTES_PER_PART = 64 * 2**20
"""A compacted part is made of about so many bytes at most, for the memory of whoever makes it."""

LARGE = 2**20
"""Parts of one run that have so many bytes stay as they are."""


def compact_table(parts: PartFolder, finished: AbstractSet[str]) -> int:
    """Puts the parts of finished runs together. Any number of processes may do so at the same time, and be killed.

    A part is deleted only after all its runs were seen in parts that rank lower (`Part.rank`). Two processes that put
    the same runs together write the same file. If they have put different ones together, runs that are in two files
    count once, and the next compaction makes one file of the two.

    Args:
        parts: of a table.
        finished: the runs to put together. A run that was killed while it was recorded has parts too, and is left out:
            they are written anew when it is repeated.

    Returns:
        How many parts have gone into others.

    Raises:
        DamagedStore: a part is not a whole Parquet file.
    """
    listing, owners = _without_covered(parts, finished)
    merged = 0
    for sources in _chosen(parts, listing, owners, finished):
        for batch in _batches(parts, sources):
            merged += _merge(parts, batch)
    return merged


@dataclass
class _Batch:
    """Parts that become one, and what is in them."""

    sources: list[Part] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    nbytes: int = 0

    @property
    def full(self) -> bool:
        return len(self.run_ids) >= RUNS_PER_PART or self.nbytes >= BYTES_PER_PART


def _without_covered(parts: PartFolder, finished: AbstractSet[str]) -> tuple[Listing, dict[str, list[Part]]]:
    """Deletes what others have all of: what a compaction that was killed has left, and failures made good.

    Returns:
        The parts that stay, and for each run the compacted ones that it is in, lowest rank first.
    """
    listing = parts.listing()
    owners: dict[str, list[Part]] = {}
    covered: list[Part] = []
    for part in listing.compacts:
        ids = parts.ids(part)
        if all(run_id in owners for run_id in ids):
            covered.append(part)
        else:
            for run_id in ids:
                owners.setdefault(run_id, []).append(part)
    for part in listing.singles:
        if part.run_id in owners or (part.status == "failed" and part.run_id in finished):
            covered.append(part)
    if covered:  # metadata alone is no reason to delete anything
        for owner in {owners[run_id][0] for part in covered for run_id in parts.ids(part) if run_id in owners}:
            parts.verify(owner)
    parts.delete(covered)
    gone = set(covered)
    return Listing(
        tuple(part for part in listing.singles if part not in gone),
        tuple(part for part in listing.compacts if part not in gone),
    ), owners


def _chosen(
    parts: PartFolder, listing: Listing, owners: dict[str, list[Part]], finished: AbstractSet[str]
) -> Iterator[list[Part]]:
    """What is to be put together: compacted parts that share runs; and then single runs and small compacted parts."""
    sharing = {part for several in owners.values() if len(several) > 1 for part in several}
    yield [part for part in listing.compacts if part in sharing]
    singles = [part for part in listing.singles if part.status == "finished" and part.run_id in finished]
    small = [part for part in listing.compacts if part not in sharing and part.runs < RUNS_PER_PART // 2]
    candidates = [*small, *singles]
    sizes = parts.files.for_each(lambda part: parts.files.size(parts.path(part)), candidates)
    most = {part: BYTES_PER_PART // 4 if part.run_id is None else LARGE for part in candidates}
    yield [part for part, size in zip(candidates, sizes, strict=True) if size < most[part]]


def _batches(parts: PartFolder, sources: Sequence[Part]) -> Iterator[_Batch]:
    """The sources in portions that fit into memory. Of a run that is in several, the first copy is taken."""
    batch = _Batch()
    for part in sources:
        try:
            ids = parts.ids(part)
            if part.run_id is None:
                parts.verify(part)
            table = (
                parts.read_single(part)
                if part.run_id is not None
                else parts.read_compacted(part, without=ids & batch.run_ids)
            )
        except FileNotFoundError:  # somebody else has just put it into a part of his own
            continue
        batch.sources.append(part)
        batch.tables.append(table)
        if len(batch.tables) % TABLES_AT_A_TIME == 0:
            batch.tables = [pa.concat_tables(batch.tables).combine_chunks()]
        batch.run_ids |= ids
        batch.nbytes += table.nbytes
        if batch.full:
            yield batch
            batch = _Batch()
    yield batch


def _merge(parts: PartFolder, batch: _Batch) -> int:
    if len(batch.sources) < 2:
        return 0
    part = compacted(batch.run_ids)
    if part not in batch.sources:
        parts.write_compacted(part, pa.concat_tables(batch.tables), batch.run_ids)
    parts.delete(source for source in batch.sources if source != part)
    return len(batch.sources)
