"""Compaction: merge many small parts into few, while other processes write, read and compact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

import pyarrow as pa

from clops_sweep.store.part_names import Listing, Part, compacted
from clops_sweep.store.parts import TABLES_AT_A_TIME, PartFolder, in_order

FEW, RUNS_PER_PART = 256, 2048
"""Runs per part of each level, as in a log-structured merge tree: parts of one level are merged once they fill a part
of the next. Parts of the last level are not merged further, since a damaged part costs all its runs."""

BYTES_PER_PART = 64 * 2**20
"""A part of this size, or merged from parts of this size in total, also belongs to the last level."""

LARGE = 2**20
"""Parts of one run of this size in bytes are not merged."""

_ROWS_AT_A_TIME = 2**18
_RUNS_AT_FIRST = 32
"""Bytes in memory at a time while parts are merged; the first runs tell how many rows a run has."""


def compact_table(parts: PartFolder, finished: AbstractSet[str], *, gradually: bool = False) -> int:
    """Merge the parts of finished runs. Any number of processes may do so concurrently, and may be killed.

    A part is deleted only after all its runs were seen in parts that rank lower (`Part.rank`). Two processes that merge
    the same runs write the same file. If they merge overlapping sets, runs in both files count once, and the next
    compaction merges the two files.

    Args:
        parts: the parts of a table.
        finished: the runs to merge. A run that was killed while it was being recorded is not among them: its parts are
            rewritten when it is repeated.
        gradually: whether to keep parts that would not make a part of the next level. A run is then rewritten once per
            level, however often a growing store is compacted.

    Returns:
        The number of parts that were merged into others.

    Raises:
        DamagedStore: a part is not a whole Parquet file.
    """
    listing, owners = _without_covered(parts, finished)
    sizes = parts.sizes()
    return sum(_merge(parts, batch) for batch in _batches(listing, owners, sizes, finished, gradually))


def _without_covered(parts: PartFolder, finished: AbstractSet[str]) -> tuple[Listing, dict[str, list[Part]]]:
    """Delete redundant parts: leftovers of killed compactions, and failures of runs that have finished since.

    Returns:
        The remaining parts, and the compacted parts of each run, lowest rank first.
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
    if covered:  # nothing is deleted on the evidence of metadata alone
        for owner in {owners[run_id][0] for part in covered for run_id in parts.ids(part) if run_id in owners}:
            parts.verify(owner)
    parts.delete(covered)
    gone = set(covered)
    return Listing(
        tuple(part for part in listing.singles if part not in gone),
        tuple(part for part in listing.compacts if part not in gone),
    ), owners


def _batches(
    listing: Listing,
    owners: Mapping[str, Sequence[Part]],
    sizes: Mapping[str, int],
    finished: AbstractSet[str],
    gradually: bool,
) -> Iterator[list[Part]]:
    """Yield the groups of parts to merge: those that share runs, then small ones, by level or all together."""
    sharing = {part for several in owners.values() if len(several) > 1 for part in several}
    yield [part for part in listing.compacts if part in sharing]
    singles = [part for part in listing.finished if part.run_id in finished]
    small = [part for part in listing.compacts if part not in sharing and part.runs < RUNS_PER_PART]
    most = {part: BYTES_PER_PART if part.run_id is None else LARGE for part in (*small, *singles)}
    small = [part for part in most if sizes.get(part.name, most[part]) < most[part]]
    if not gradually:
        yield from filled(small, sizes)
        return
    for low, high in pairwise((0, FEW, RUNS_PER_PART)):
        level = [part for part in small if low <= part.runs < high]
        if sum(part.runs for part in level) >= high:
            yield from filled(level, sizes, at_least=high)


def filled(sources: Collection[Part], sizes: Mapping[str, int], *, at_least: int = 0) -> Iterator[list[Part]]:
    """Yield the sources in groups that each fill a part of the last level, then the rest if it has enough runs."""
    batch: list[Part] = []
    runs = nbytes = 0
    for part in sources:
        batch.append(part)
        runs += part.runs
        nbytes += sizes[part.name]
        if runs >= RUNS_PER_PART or nbytes >= BYTES_PER_PART:
            yield batch
            batch, runs, nbytes = [], 0, 0
    if runs >= at_least:
        yield batch


def _merge(parts: PartFolder, sources: Sequence[Part]) -> int:
    if len(sources) < 2:
        return 0
    owner: dict[str, Part] = {}
    try:
        for source in sources:
            if source.run_id is None:
                parts.verify(source)
            for run_id in parts.ids(source):
                owner.setdefault(run_id, source)  # the first copy of a run is kept
        part = compacted(owner)
        if part not in sources:
            parts.write_portions(part, portions(parts, owner), owner)
    except FileNotFoundError:  # another process has just compacted it
        return 0
    parts.delete(source for source in sources if source != part)
    return len(sources)


def portions(
    parts: PartFolder, owner: Mapping[str, Part], new_ids: Mapping[str, str] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of all runs in order of their ids, in portions.

    Args:
        parts: the parts to read from.
        owner: run id to the part with its rows.
        new_ids: old id to new id, for runs whose id changes; the order is that of the new ids.
    """
    new_ids = new_ids or {}
    run_ids = sorted(owner, key=lambda run_id: new_ids.get(run_id, run_id))
    at, runs = 0, _RUNS_AT_FIRST
    waiting: list[pa.Table] = []
    while at < len(run_ids):
        table = _rows(parts, owner, run_ids[at : at + runs], new_ids)
        waiting.append(table)
        at += runs
        runs = max(1, _ROWS_AT_A_TIME * runs // max(1, table.num_rows))
        if at >= len(run_ids) or sum(table.num_rows for table in waiting) >= _ROWS_AT_A_TIME:
            yield pa.concat_tables(waiting)
            waiting = []


def _rows(parts: PartFolder, owner: Mapping[str, Part], run_ids: Sequence[str], new_ids: Mapping[str, str]) -> pa.Table:
    """Return the rows of some runs in order of their ids."""
    by_part: dict[Part, list[str]] = defaultdict(list)
    for run_id in run_ids:
        by_part[owner[run_id]].append(run_id)
    tables: list[pa.Table] = []
    for part, ids in by_part.items():
        tables.append(parts.read(part, only=ids))
        if len(tables) % TABLES_AT_A_TIME == 0:
            tables = [pa.concat_tables(tables).combine_chunks()]
    table = pa.concat_tables(tables)
    if new_ids:
        ids = pa.array((new_ids.get(it, it) for it in table["run_id"].to_pylist()), pa.string())
        table = table.set_column(table.column_names.index("run_id"), table.schema.field("run_id"), ids)
    return in_order(table)
