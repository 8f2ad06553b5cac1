"""Writing of parts: adding, replacing, removing and merging rows, while this process holds the store's lock."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from clops_sweep.store.parts import (
    Part,
    conform,
    decoded,
    encoded,
    is_name,
    named,
    owners_of,
    sorted_by_key,
    written_at,
)
from clops_sweep.store.reading import StoreReader
from clops_sweep.store.tables import OTHERS, SCHEMAS, TableName

RUNS_PER_PART, _BYTES_PER_PART = 2048, 2**24
"""Parts of this size are not merged further: a damaged part costs all its runs."""

_OLD_ORPHAN = 24 * 3600.0
"""Seconds after which a file of no part is removed from an object store, which has no lock."""

Rows = Mapping[str, Mapping[TableName, pa.Table]]
"""The rows of some runs, by run and table."""


def write(store: StoreReader, rows: Rows) -> None:
    """Write the rows of runs that the store lacks, and replace those of failed runs.

    Parts that lack a column of the new rows are rewritten first, so that every part of a table has all columns.
    """
    live = store.live()
    new = {run_id: tables for run_id, tables in rows.items() if not any(_has(part, run_id, tables) for part in live)}
    if not new:
        return
    added: dict[TableName, list[pa.Table]] = {
        table: [tables[table] for tables in new.values() if table in tables] for table in SCHEMAS
    }
    schemas = {table: store.schema(table, live, *(it.schema for it in pieces)) for table, pieces in added.items()}
    live = [_with_columns(store, part, schemas) for part in live]
    commit(store, [part for part in live if not new.keys().isdisjoint(part.statuses)], schemas, added, gone=new)


def _has(part: Part, run_id: str, tables: Mapping[TableName, pa.Table]) -> bool:
    """Return whether a part has a run and everything that would be added to it."""
    failed = len(tables) == 1
    status = part.statuses.get(run_id)
    return status == "finished" and (failed or "predictions" not in tables or run_id in part.predicted)


def _with_columns(store: StoreReader, part: Part, schemas: Mapping[TableName, pa.Schema]) -> Part:
    """Return a part, rewritten if it lacks a column."""
    lacks = part.schema != schemas["runs"] or (
        bool(part.files.get("predictions")) and store.schema("predictions", [part]) != schemas["predictions"]
    )
    return commit(store, [part], schemas) if lacks else part


def commit(
    store: StoreReader,
    sources: Sequence[Part],
    schemas: Mapping[TableName, pa.Schema],
    added: Mapping[TableName, Sequence[pa.Table]] | None = None,
    *,
    gone: Collection[str] = (),
    combined: bool = False,
) -> Part:
    """Write a part with new rows and those of earlier parts, and remove these. It counts once its file in `runs` does.

    Args:
        store: the store.
        sources: the parts that the new one replaces.
        schemas: the columns of each table.
        added: the new rows.
        gone: runs whose rows in `sources` are left out.
        combined: whether to merge the files of other tables; else those that need no change are kept.
    """
    stem, gone, added = store.next_stem(), frozenset(gone), added or {}
    files: dict[TableName, list[str]] = {}
    for table in OTHERS:
        kept, pieces = [], list(added.get(table, ()))
        for part in sources:
            leave = gone & {run_id for run_id, status in part.statuses.items() if status == "finished"}
            for name in part.files.get(table, ()):
                changed = table == "predictions" and store.schema(table, [part]) != schemas[table]
                if combined or leave or changed:
                    pieces.append(store.read_part(table, name, schemas[table], None, part.statuses.keys() - leave))
                else:
                    kept.append(name)
        if sum(piece.num_rows for piece in pieces):
            kept.append(_written(store, table, stem, encoded(_joined(pieces, schemas[table]))))
        files[table] = kept
    runs = [store.read_part("runs", part.name, schemas["runs"], None, part.statuses.keys() - gone) for part in sources]
    table = _joined([*added.get("runs", ()), *runs], schemas["runs"])
    ids = set(table["run_id"].to_pylist())
    predicted = {str(run_id) for it in added.get("predictions", ()) for run_id in it["run_id"].unique().to_pylist()}
    predicted |= {run_id for part in sources for run_id in part.predicted - gone}
    facts = {
        "files": {name: of for name, of in files.items() if of},
        "predicted": sorted(predicted & ids),
        "replaces": [part.name for part in sources],
    }
    content = encoded(table, facts)
    name = _written(store, "runs", stem, content)
    _remove(store, sources, {table: set(of) for table, of in files.items()})
    return store.know(decoded(store.path("runs", name), content))


def _joined(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return sorted_by_key(pa.concat_tables([schema.empty_table(), *(conform(piece, schema) for piece in pieces)]))


def _written(store: StoreReader, table: TableName, stem: str, content: pa.Buffer) -> str:
    name = named(stem, content)
    store.files.write(store.path(table, name), content)
    return name


def _remove(store: StoreReader, parts: Sequence[Part], kept: Mapping[TableName, Collection[str]]) -> None:
    """Remove replaced parts, those of `runs` first, and their files except those that another part has taken over."""
    store.files.delete(store.path("runs", part.name) for part in parts)
    for table in OTHERS:
        names = [name for part in parts for name in part.files.get(table, ()) if name not in kept.get(table, ())]
        store.files.delete(store.path(table, name) for name in names)


def delete(store: StoreReader, run_ids: Collection[str]) -> None:
    """Remove the rows of some runs, part by part: each run is removed completely or not at all."""
    live = store.live()
    schemas = _schemas(store, live)
    for part in live:
        if not part.statuses.keys().isdisjoint(run_ids):
            left = commit(store, [part], schemas, gone=run_ids)
            if not left.statuses:
                _remove(store, [left], {})


def merge_parts(store: StoreReader, *, at_least: int = 2) -> int:
    """Merge small parts into larger ones if there are enough, and return how many were merged."""
    small = [part for part in store.live() if len(part.statuses) < RUNS_PER_PART]
    if len(small) < at_least:
        return 0
    schemas = _schemas(store, store.live())
    merged = 0
    for batch in _batches(store, small):
        if len(batch) > 1:
            commit(store, batch, schemas, combined=True)
            merged += len(batch)
    return merged


def _batches(store: StoreReader, parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the parts in groups that each fill a larger part."""
    sizes = {table: store.files.sizes(store.folder(table)) for table in SCHEMAS}
    batch: list[Part] = []
    runs = nbytes = 0
    for part in parts:
        files = [("runs", part.name), *((table, name) for table, names in part.files.items() for name in names)]
        size = sum(sizes[table].get(name, 0) for table, name in files)
        if batch and (runs + len(part.statuses) > RUNS_PER_PART or nbytes + size > _BYTES_PER_PART):
            yield batch
            batch, runs, nbytes = [], 0, 0
        batch.append(part)
        runs, nbytes = runs + len(part.statuses), nbytes + size
    yield batch


def tidy(store: StoreReader) -> None:
    """Finish what a killed process or a copy has begun: replaced parts go, each run stays once, columns are added.

    Files that no part names are moved away, not deleted: the part that named them may have been damaged.
    """
    live = store.live()
    owners = owners_of(live)
    schemas = _schemas(store, live)
    for part in live:
        if twice := {run_id for run_id in part.statuses if owners[run_id] is not part}:
            commit(store, [part], schemas, gone=twice)
    live = [_with_columns(store, part, schemas) for part in store.live()]
    names: dict[TableName, set[str]] = {table: set() for table in SCHEMAS}
    names["runs"] = {part.name for part in live}
    for part in live:
        for table, of in part.files.items():
            names[table].update(of)
    for table, known in names.items():
        there = [name for name in store.files.names(store.folder(table)) if is_name(name)]
        left = [name for name in there if name not in known]
        if not store.files.local:
            left = [name for name in left if time.time() - written_at(name) > _OLD_ORPHAN]
        for name in left:
            store.files.move(store.path(table, name), f"{store.work_folder}/left/{table}-{name}")


def _schemas(store: StoreReader, parts: Sequence[Part]) -> Mapping[TableName, pa.Schema]:
    return {table: store.schema(table, parts) for table in SCHEMAS}
