"""`delete` and `merge`: remove runs from a store, or add those of another store, atomically."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.columns import PHASES, RESULTS
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.store.compaction import filled
from clops_sweep.store.part_names import Part
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName
from clops_sweep.store.upkeep.rewriting import TABLES, Rewriting, check_room, finish_interrupted, same_rows

_NUMBERS = ("run_id", *(name for name in RESULTS if name not in ("seconds", *PHASES)))
"""Columns of `runs` that are equal whenever the same run is computed again."""

_RUNS_AT_A_TIME = 256


def matching(store: RunStore, where: str) -> list[str]:
    """Return the ids of the runs, finished and failed, whose rows in `runs` meet a condition.

    Raises:
        UsageError: the condition is invalid or names an unknown column, or no run meets it.
    """
    if not isinstance(where, str) or not where.strip():
        raise UsageError(f"where = {shown(where)}: expected a condition such as 'storage_fraction == 0.5'")
    holds = Where(where, store.parts["runs"].with_own_columns().schema.names)
    found = [str(row["run_id"]) for row in store.rows("runs") if holds(row)]
    if not found:
        raise UsageError(f"where {shown(where)}: matches no run in {store.files.shown}")
    return found


def delete_runs(store: RunStore, choose: Callable[[], Collection[str]]) -> int:
    """Delete some runs from all tables, with their checkpoints. Nothing else changes.

    Args:
        store: the store.
        choose: returns the ids to delete; called while this process holds the lock.

    Returns:
        The number of runs deleted.

    Raises:
        UsageError: a sweep is at work on the store, the disk has no room, or a part is damaged.
    """
    store.check_format()
    with Rewriting(store) as rewriting:
        gone = set(choose())
        replaced = {table: list(_parts_with(store.parts[table].with_own_columns(), gone)) for table in TABLES}
        check_room(store, sum(_bytes(store.parts[table], parts) for table, parts in replaced.items()))
        for table, parts in replaced.items():
            folder = store.parts[table]
            for part in parts:
                if kept := folder.ids(part) - gone:
                    rewriting.stage(table, folder, dict.fromkeys(sorted(kept), part))
            rewriting.remove(table, parts)
        rewriting.commit()
        store.models.delete(gone)
        store.files.delete(store.checkpoint_path([run_id]) for run_id in gone)
    return len(gone)


def merge_runs(store: RunStore, other: RunStore) -> int:
    """Copy the runs of another store that this one lacks. The other store is not changed.

    A run that failed here and finished there is copied. If both stores have finished a run, its predictions are copied
    if only the other store has them.

    Args:
        store: the store to add to; created if missing.
        other: the store to copy from, in a folder or behind a URI.

    Returns:
        The number of runs copied.

    Raises:
        UsageError: the numbers of a run differ between the stores; both are the same store; one has another format; a
            sweep is running on this store; the disk is too full.
    """
    if store.uri == other.uri:
        raise UsageError(f"merge {store.files.shown} with {other.files.shown}: they are one store; give two")
    other.files.check_is_there()
    for it in (store, other):
        it.check_format()
    finish_interrupted(other)
    store.open_for_writing()
    with Rewriting(store) as rewriting, other.rewriting(shared=True):
        theirs, ours = other.statuses(), store.statuses()
        done = [{run_id for run_id, status in it.items() if status == "finished"} for it in (theirs, ours)]
        new = {"finished": done[0] - done[1], "failed": theirs.keys() - done[0] - ours.keys()}
        _check_equal(store, other, sorted(done[0] & done[1]))
        wanted: dict[TableName, set[str]] = dict.fromkeys(EVERY_RUN, new["finished"])
        predicted = [it.parts["predictions"].finished() for it in (other, store)]
        wanted["predictions"] = (done[0] & predicted[0]) - (done[1] & predicted[1])
        folders = {table: other.parts[table].with_own_columns() for table in TABLES}
        sources = {table: list(_parts_with(folders[table], wanted[table])) for table in TABLES}
        check_room(store, sum(_bytes(folders[table], parts) for table, parts in sources.items()))
        try:
            for table in TABLES:
                known = SCHEMAS[table].names
                store.parts[table].add_columns([it for it in folders[table].schema if it.name not in known])
                for owner in _owners(folders[table], sources[table], wanted[table]):
                    rewriting.stage(table, folders[table], owner)
            for part in _failures(folders["runs"], new["failed"]):
                rewriting.stage("runs", folders["runs"], {str(part.run_id): part}, failed=True)
        except FileNotFoundError:
            raise UsageError(
                f"results {other.files.shown}: a part disappeared while it was read; repeat the command when no sweep "
                "runs on that store"
            ) from None
        store.models.copy(other.models, done[0])
        rewriting.remove("runs", _failures(store.parts["runs"], new["finished"]))
        rewriting.commit()
    return len(new["finished"]) + len(new["failed"])


def _parts_with(parts: PartFolder, run_ids: Collection[str]) -> Iterator[Part]:
    """Return the parts that contain any of some runs, lowest rank first."""
    listing = parts.listing()
    for part in (*listing.compacts, *listing.singles):
        if not parts.ids(part).isdisjoint(run_ids):
            yield part


def _owners(parts: PartFolder, sources: Sequence[Part], wanted: Collection[str]) -> Iterator[dict[str, Part]]:
    """Return, for each part to write, the part from which each of its runs is read."""
    left = set(wanted)
    for part in sources:
        if part.run_id is None:
            if found := parts.ids(part) & left:
                yield dict.fromkeys(sorted(found), part)
            left -= found
    singles = [part for part in sources if part.status == "finished" and part.run_id in left]
    for batch in filled(singles, parts.sizes()):
        if batch:
            yield {str(part.run_id): part for part in batch}


def _failures(parts: PartFolder, run_ids: Collection[str]) -> list[Part]:
    """Return the parts of those runs that failed."""
    return [part for part in parts.listing().singles if part.status == "failed" and part.run_id in run_ids]


def _check_equal(store: RunStore, other: RunStore, run_ids: Sequence[str]) -> None:
    """Check that runs in both stores have equal numbers.

    Raises:
        UsageError: the numbers of a run differ; names the run and the table.
    """
    columns: Mapping[TableName, Sequence[str] | None] = {
        "runs": _NUMBERS, "r_matrix": None, "curves": None, "instances": None, "predictions": None
    }  # fmt: skip
    for table, names in columns.items():
        having = run_ids
        if table == "predictions":
            both = [it.parts[table].finished() for it in (store, other)]
            having = [run_id for run_id in run_ids if run_id in both[0] & both[1]]
        for start in range(0, len(having), _RUNS_AT_A_TIME):
            few = having[start : start + _RUNS_AT_A_TIME]
            if same_rows(store.table(table, few, names), other.table(table, few, names)):
                continue
            for run_id in few:
                if not same_rows(store.table(table, run_id, names), other.table(table, run_id, names)):
                    raise UsageError(
                        f"run {run_id}: its numbers in table {table} differ between {store.files.shown} and "
                        f"{other.files.shown}; delete it from one of them, and merge again"
                    )


def _bytes(parts: PartFolder, chosen: Sequence[Part]) -> int:
    sizes = parts.sizes()
    return sum(sizes.get(part.name, 0) for part in chosen)
