"""`migrate`: convert a store of version 0.2, whose run ids change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.columns import RENAMED_VALUES, config_from_row
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import unregistered, used_options
from clops_sweep.store.compaction import filled
from clops_sweep.store.part_bytes import FORMAT
from clops_sweep.store.part_names import Part
from clops_sweep.store.parts import PartFolder, UnlistedColumns
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName
from clops_sweep.store.upkeep.rewriting import TABLES, Rewriting, check_room


@dataclass(frozen=True)
class Migration:
    """The outcome of a migration.

    Attributes:
        runs: number of runs in the store, finished and failed.
        new_ids: old id to new id, for runs whose id changed, including dropped ones.
        dropped: id of each dropped run to the id of the equal run that was kept.
        unknown: reason to the number of runs whose id could not be computed; these keep their ids.
        parts: number of rewritten parts.
    """

    runs: int
    new_ids: Mapping[str, str] = field(repr=False)
    dropped: Mapping[str, str] = field(repr=False)
    unknown: Mapping[str, int]
    parts: int = 0


def migrate(store: RunStore, rename: Callable[[Mapping[str, str]], None] = lambda new_ids: None) -> Migration:
    """Give each run the id that the installed version computes from its row, in all tables.

    A run that uses an unregistered plug-in keeps its id. Of runs with equal new ids, the one that finished first is
    kept. After a kill, call it again.

    Args:
        store: the store.
        rename: called with old and new ids after all new parts are verified and before any old part is replaced.

    Raises:
        UsageError: a sweep is running on the store, the disk is too full, or a part is damaged.
    """
    with Rewriting(store) as rewriting:
        for table, parts in store.parts.items():
            parts.convert = _converted if table == "runs" else _unchanged
            try:
                parts.with_own_columns()
            except UnlistedColumns:
                parts.list_columns_anew()
                parts.with_own_columns()
        rows = store.rows("runs")
        plan = _plan(rows, store.incomplete().keys())
        works = {table: _Work.of(store.parts[table], plan, {row["run_id"] for row in rows}) for table in TABLES}
        check_room(store, sum(work.nbytes for work in works.values()))
        for table, work in works.items():
            work.stage(rewriting, table, store.parts[table], plan.new_ids)
        checkpoints = _moved_checkpoints(store, rows, plan)
        rename(plan.new_ids)
        rewriting.commit()
        store.files.delete(checkpoints)
        for parts in store.parts.values():
            parts.rename_columns()
    return Migration(
        plan.runs, plan.new_ids, plan.dropped, plan.unknown, sum(len(work.replaced) for work in works.values())
    )


def _unchanged(table: pa.Table) -> pa.Table:
    return table


def _converted(runs: pa.Table) -> pa.Table:
    """Convert rows of `runs` to this version: null for options that a run does not use, renamed values."""
    used = [None if unregistered(row) else used_options(row.get) for row in runs.to_pylist()]
    for name in OPTIONS.keys() & set(runs.column_names):
        unused = pa.array([it is not None and name not in it for it in used])
        field = runs.schema.field(name)
        values = pc.if_else(unused, pa.scalar(None, field.type), runs[name])
        runs = runs.set_column(runs.column_names.index(name), field, values)
    for name, renamed in RENAMED_VALUES.items():
        if name in runs.column_names:
            values = pa.array([renamed.get(it, it) for it in runs[name].to_pylist()], pa.string())
            runs = runs.set_column(runs.column_names.index(name), name, values)
    return runs


def _plan(rows: Sequence[Mapping[str, Any]], incomplete: AbstractSet[str]) -> Migration:
    """Decide the new id of each run; `incomplete` are the runs that a table other than `runs` lacks."""
    wanted: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    unknown: Counter[str] = Counter()
    for row in rows:
        run_id, why = _id_of(row)
        unknown.update(why)
        wanted[run_id].append(row)
    new_ids: dict[str, str] = {}
    dropped: dict[str, str] = {}
    for run_id, equal in wanted.items():
        kept = min(equal, key=lambda row: (row["run_id"] in incomplete, *_rank(row)))
        new_ids |= {row["run_id"]: run_id for row in equal if row["run_id"] != run_id}
        dropped |= {row["run_id"]: run_id for row in equal if row is not kept}
    return Migration(len(rows), new_ids, dropped, unknown)


def _id_of(row: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the id of a run, computed from its row, or the reason why it is unknown."""
    if missing := unregistered(row):
        return row["run_id"], [f"{' and '.join(missing)} not registered"]
    if not isinstance(row["data_hash"], str) or row["semantics_version"] is None:
        return row["run_id"], ["data hash or semantics version not recorded"]
    try:
        return config_from_row(row).run_id(row["data_hash"], row["semantics_version"]), []
    except UsageError as error:
        return row["run_id"], [one_line(error)]


def _rank(row: Mapping[str, Any]) -> tuple[bool, datetime, str]:
    """Return the precedence of equal runs, lowest first: finished before failed, then earlier before later."""
    ended = row["started_at"] or datetime.max.replace(tzinfo=UTC)
    if row["started_at"] is not None and row["seconds"] is not None:
        ended += timedelta(seconds=row["seconds"])
    return row["status"] != "finished", ended, row["run_id"]


@dataclass(frozen=True)
class _Work:
    """The changes to one table.

    Attributes:
        replaced: the parts to replace.
        batches: for each part to write, run id to the part that it is read from.
        failures: the same for failed runs.
        nbytes: size in bytes of the parts to replace.
    """

    replaced: Sequence[Part]
    batches: Sequence[Mapping[str, Part]]
    failures: Sequence[Mapping[str, Part]]
    nbytes: int

    @classmethod
    def of(cls, parts: PartFolder, plan: Migration, recorded: AbstractSet[str]) -> _Work:
        """Collect the parts of version 0.2 and the parts with a run whose id changes.

        A part of a run that `runs` lacks was left by a killed worker and is not touched.
        """
        listing, sizes = parts.listing(), parts.sizes()
        singles = [part for part in listing.singles if part.run_id in recorded]
        finished = {str(part.run_id) for part in singles if part.status == "finished"}
        every = (*listing.compacts, *singles)
        old_format = {part for part, of in zip(every, parts.files.for_each(parts.format_of, every), strict=True)
                      if of < FORMAT}  # fmt: skip
        touched = plan.new_ids.keys() | plan.dropped.keys()
        seen: set[str] = set()
        replaced: list[Part] = []
        batches, failures = [], []
        for part in listing.compacts:
            ids = parts.ids(part)
            if part in old_format or not touched.isdisjoint(ids):
                replaced.append(part)
                batches.append({it: part for it in ids - seen if it not in plan.dropped})
            seen |= ids
        old = [part for part in singles if part.run_id in touched or part in old_format]
        replaced += old
        for batch in filled([it for it in old if it.status == "finished" and it.run_id not in seen], sizes):
            batches.append({str(it.run_id): it for it in batch if it.run_id not in plan.dropped})
        done = {plan.new_ids.get(run_id, run_id) for run_id in finished | seen}
        for part in old:
            run_id = str(part.run_id)
            if part.status == "failed" and run_id not in plan.dropped and plan.new_ids.get(run_id, run_id) not in done:
                failures.append({run_id: part})
        return cls(
            replaced,
            [batch for batch in batches if batch],
            failures,
            sum(sizes.get(part.name, 0) for part in replaced),
        )

    def stage(self, rewriting: Rewriting, table: TableName, parts: PartFolder, new_ids: Mapping[str, str]) -> None:
        """Write the new parts, and note the old ones."""
        for owner in self.batches:
            rewriting.stage(table, parts, owner, new_ids)
        for owner in self.failures:
            rewriting.stage(table, parts, owner, new_ids, failed=True)
        rewriting.remove(table, self.replaced)


def _moved_checkpoints(store: RunStore, rows: Sequence[Mapping[str, Any]], plan: Migration) -> list[str]:
    """Write the checkpoints of failed runs under their new ids; return the old files, which can be deleted.

    Checkpoints of runs that are neither finished nor failed stay, since their new ids are unknown.
    """
    found = []
    for row in rows:
        old = row["run_id"]
        if row["status"] == "failed" and old in plan.new_ids and store.has_checkpoint([old]):
            from clops_sweep.store.checkpoint import CheckpointFile

            checkpoint = CheckpointFile(store, [old])
            state = checkpoint.load()
            if state is not None and old not in plan.dropped:
                CheckpointFile(store, [plan.new_ids[old]]).save(state)
            found.append(checkpoint.path)
    return found
