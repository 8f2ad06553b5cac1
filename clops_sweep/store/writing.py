"""Writing of parts: adding, replacing, removing and merging rows, while this process holds the store's lock."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from clops_sweep.errors import DamagedStore
from clops_sweep.store.parts import (
    Part,
    conform,
    decoded,
    encoded,
    files_of,
    is_name,
    named,
    owners_of,
    sorted_by_key,
    written_at,
)
from clops_sweep.store.stored_parts import StoredParts
from clops_sweep.store.tables import OTHERS, SCHEMAS, TableName

RUNS_PER_PART, _BYTES_PER_PART = 2048, 2**24
"""Parts of this size are not merged further: a damaged part costs all its runs."""

_OLD_ORPHAN = 24 * 3600.0
"""Seconds after which a file of no part is removed from an object store, which has no lock."""

Rows = Mapping[str, Mapping[TableName, pa.Table]]
"""The rows of some runs, by run and table."""


def write(stored: StoredParts, rows: Rows) -> None:
    """Write the rows of runs that the store lacks, and replace those of failed runs.

    Parts that lack a column of the new rows are rewritten first, so that every part of a table has all columns.
    """
    live = stored.live()
    added: dict[TableName, list[pa.Table]] = {table: [] for table in SCHEMAS}
    new = set()
    for run_id, tables in rows.items():
        if any(_has(part, run_id, tables) for part in live):
            continue
        new.add(run_id)
        for table, piece in tables.items():
            added[table].append(piece)
    if not new:
        return
    schemas = {}
    for table, pieces in added.items():
        schemas[table] = stored.schema(table, live, *(piece.schema for piece in pieces))
    live = [_with_columns(stored, part, schemas) for part in live]
    replaced = [part for part in live if not new.isdisjoint(part.statuses)]
    commit(stored, replaced, schemas, added, gone=new)


def _has(part: Part, run_id: str, tables: Mapping[TableName, pa.Table]) -> bool:
    """Return whether a part has a run and everything that would be added to it."""
    if part.statuses.get(run_id) != "finished":
        return False
    failed = len(tables) == 1
    return failed or "predictions" not in tables or run_id in part.predicted


def _with_columns(stored: StoredParts, part: Part, schemas: Mapping[TableName, pa.Schema]) -> Part:
    """Return a part, rewritten if it lacks a column."""
    lacks = part.schema != schemas["runs"]
    if not lacks and part.files.get("predictions"):
        lacks = stored.schema("predictions", [part]) != schemas["predictions"]
    return commit(stored, [part], schemas) if lacks else part


def commit(
    stored: StoredParts,
    sources: Sequence[Part],
    schemas: Mapping[TableName, pa.Schema],
    added: Mapping[TableName, Sequence[pa.Table]] | None = None,
    *,
    gone: Collection[str] = (),
    combined: bool = False,
) -> Part:
    """Write a part with new rows and those of earlier parts, and remove these. It counts once its file in `runs` does.

    A run that several of these parts hold is written once.

    Args:
        stored: all parts of the store.
        sources: the parts that the new one replaces.
        schemas: the columns of each table.
        added: the new rows.
        gone: runs whose rows in `sources` are left out.
        combined: whether to merge the files of other tables; else those that need no change are kept.
    """
    stem = stored.next_stem()
    stays = _stays(sources, gone)
    added = added or {}
    files: dict[TableName, list[str]] = {}
    for table in OTHERS:
        schema = schemas[table]
        kept: list[str] = []
        pieces = list(added.get(table, ()))
        for part in sources:
            changes = not stays[part.name].issuperset(part.finished)
            if combined or changes or _lacks_columns(stored, part, table, schema):
                for name in part.files.get(table, ()):
                    pieces.append(stored.read_part(table, name, schema, None, stays[part.name]))
            else:
                kept += part.files.get(table, ())
        if any(piece.num_rows for piece in pieces):
            kept.append(_written(stored, table, stem, encoded(_joined(pieces, schema))))
        files[table] = kept
    runs = list(added.get("runs", ()))
    for part in sources:
        runs.append(stored.read_part("runs", part.name, schemas["runs"], None, stays[part.name]))
    rows = _joined(runs, schemas["runs"])
    predicted = _predicted(sources, added, stays)
    facts = {
        "files": {table: names for table, names in files.items() if names},
        "predicted": sorted(predicted.intersection(rows["run_id"].to_pylist())),
        "replaces": [part.name for part in sources],
    }
    content = encoded(rows, facts)
    name = _written(stored, "runs", stem, content)
    new = stored.remember(decoded(stored.path("runs", name), content))
    _remove(stored, sources)
    return new


def _stays(sources: Sequence[Part], gone: Collection[str]) -> Mapping[str, set[str]]:
    """Return the runs whose rows are taken from each part, by the name of the part."""
    owners = owners_of(sources)
    stays = {}
    for part in sources:
        own = {run_id for run_id in part.statuses if owners[run_id] is part}
        stays[part.name] = own.difference(gone)
    return stays


def _lacks_columns(stored: StoredParts, part: Part, table: TableName, schema: pa.Schema) -> bool:
    """Return whether the files of a part lack columns of a table other than `runs`; only predictions gain any."""
    if table != "predictions" or not part.files.get(table):
        return False
    return bool(stored.schema(table, [part]) != schema)


def _predicted(
    sources: Sequence[Part], added: Mapping[TableName, Sequence[pa.Table]], stays: Mapping[str, set[str]]
) -> set[str]:
    """Return the runs with predictions, among new rows and those that are taken from earlier parts."""
    predicted: set[str] = set()
    for part in sources:
        predicted |= part.predicted & stays[part.name]
    for piece in added.get("predictions", ()):
        predicted.update(map(str, piece["run_id"].unique().to_pylist()))
    return predicted


def _joined(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    conforming = [conform(piece, schema) for piece in pieces]
    return sorted_by_key(pa.concat_tables([schema.empty_table(), *conforming]))


def _written(stored: StoredParts, table: TableName, stem: str, content: pa.Buffer) -> str:
    name = named(stem, content)
    stored.files.write(stored.path(table, name), content)
    return name


def _remove(stored: StoredParts, parts: Sequence[Part]) -> None:
    """Remove replaced parts, those of `runs` first, and their files except those that a live part names.

    Such a part is the one that replaces them. Others have come from a copy of this store that other launches changed.
    """
    if not parts:
        return
    stored.files.delete(stored.path("runs", part.name) for part in parts)
    live = stored.live()
    for table in OTHERS:
        needed = {name for part in live for name in files_of(part, table)}
        names = {name for part in parts for name in files_of(part, table)}
        stored.files.delete(stored.path(table, name) for name in sorted(names - needed))


def delete(stored: StoredParts, run_ids: Collection[str]) -> None:
    """Remove the rows of some runs, part by part: each run is removed completely or not at all."""
    live = stored.live()
    schemas = _schemas(stored, live)
    for part in live:
        if not part.statuses.keys().isdisjoint(run_ids):
            left = commit(stored, [part], schemas, gone=run_ids)
            if not left.statuses:
                _remove(stored, [left])


def merge_parts(stored: StoredParts, *, at_least: int = 2) -> int:
    """Merge small parts into larger ones if there are enough, and return how many were merged."""
    small = [part for part in stored.live() if len(part.statuses) < RUNS_PER_PART]
    if len(small) < at_least:
        return 0
    schemas = _schemas(stored, stored.live())
    merged = 0
    for batch in _batches(stored, small):
        if len(batch) > 1:
            commit(stored, batch, schemas, combined=True)
            merged += len(batch)
    return merged


def _batches(stored: StoredParts, parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the parts in groups that each fill a larger part."""
    sizes = {table: stored.files.sizes(stored.folder(table)) for table in SCHEMAS}
    batch: list[Part] = []
    runs = nbytes = 0
    for part in parts:
        size = sizes["runs"].get(part.name, 0)
        for table, names in part.files.items():
            size += sum(sizes[table].get(name, 0) for name in names)
        if batch and (runs + len(part.statuses) > RUNS_PER_PART or nbytes + size > _BYTES_PER_PART):
            yield batch
            batch = []
            runs = nbytes = 0
        batch.append(part)
        runs += len(part.statuses)
        nbytes += size
    yield batch


def tidy(stored: StoredParts) -> None:
    """Finish what a killed process or a copy has begun: replaced parts go, each run stays once, columns are added.

    Files that no part names are moved away, not deleted: the part that named them may have been damaged. Of a part with
    other numbers of a run than the one that is read, copies stay in the folder to which these are moved. If the part
    that a run is read from is damaged, its other copies stay.
    """
    live = stored.live()
    owners = owners_of(live)
    schemas = _schemas(stored, live)
    doubled: dict[str, set[str]] = {}
    for part in live:
        twice = {run_id for run_id in part.statuses if owners[run_id] is not part}
        twice = {run_id for run_id in twice if _is_intact(stored, owners[run_id])}  # else this copy may be the only one
        if twice:
            doubled[part.name] = twice
    if doubled:
        from clops_sweep.store.comparing import with_other_numbers  # imports pyarrow.compute, which is slow

        differing = with_other_numbers(stored, live)
        for part in live:
            if part.name in differing:
                _keep_copy(stored, part)
    for part in live:
        if part.name in doubled:
            commit(stored, [part], schemas, gone=doubled[part.name])
    live = [_with_columns(stored, part, schemas) for part in stored.live()]
    names: dict[TableName, set[str]] = {table: set() for table in SCHEMAS}
    names["runs"] = {part.name for part in live}
    for part in live:
        for table, of_table in part.files.items():
            names[table].update(of_table)
    for table, known in names.items():
        for name in stored.files.names(stored.folder(table)):
            if not is_name(name) or name in known:
                continue
            if not stored.files.local and time.time() - written_at(name) <= _OLD_ORPHAN:
                continue
            stored.files.move(stored.path(table, name), f"{stored.left_folder}/{table}-{name}")


def _is_intact(stored: StoredParts, part: Part) -> bool:
    """Return whether all files of a part exist with the bytes that were written."""
    try:
        stored.verify(part)
    except (FileNotFoundError, DamagedStore):
        return False
    return True


def _keep_copy(stored: StoredParts, part: Part) -> None:
    """Copy the files of a part to the folder of files that no part names."""
    folder = stored.left_folder
    stored.files.make_folder(folder)
    for table in SCHEMAS:
        for name in files_of(part, table):
            content = stored.files.read(stored.path(table, name))
            stored.files.write(f"{folder}/{table}-{name}", content)


def _schemas(stored: StoredParts, parts: Sequence[Part]) -> Mapping[TableName, pa.Schema]:
    return {table: stored.schema(table, parts) for table in SCHEMAS}
