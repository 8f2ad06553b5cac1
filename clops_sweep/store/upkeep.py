"""Maintenance of a store: checking it, setting damaged parts aside, deleting runs, and merging another store."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.errors import DamagedStore, UnreadableFile, UsageError, one_line, shown
from clops_sweep.experiment.columns import PHASES, RESULTS
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.store.parts import Part, decoded, is_name, owners_of, read_verified
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.writing import delete

_NUMBERS = ("run_id", *(name for name in RESULTS if name not in ("seconds", "cpu_seconds", *PHASES)))
"""Columns of `runs` that are equal whenever the same run is computed again."""

_RUNS_AT_A_TIME = 256


def faults(store: RunStore) -> Iterator[str]:
    """Return a sentence for everything in a store that is damaged, unreadable, missing or doubled."""
    parts = []
    for _, found in _read(store):
        if isinstance(found, Part):
            parts.append(found)
        else:
            yield str(found)
    replaced = {name for part in parts for name in part.replaces}
    live = [part for part in parts if part.name not in replaced]
    for part in live:
        yield from _faults_of(store, part)
    owners = owners_of(live)
    twice = {run_id for part in live for run_id in part.statuses if owners[run_id] is not part}
    place = shlex.quote(store.files.anywhere)
    mended = f"`clops-sweep merge {place} --parts` mends it, and so does a launch that computes a run"
    if twice:
        yield f"{len(twice)} runs are there twice, such as {min(twice)}; {mended}"
    if len({part.schema for part in live}) > 1:
        yield f"the parts of runs have different columns, as after copying files; {mended}"
    yield from store.models.faults()


def _read(store: RunStore) -> Iterator[tuple[str, Part | UsageError]]:
    """Yield each part of `runs`, or the error that it causes."""
    for name in store.files.names(store.folder("runs")):
        if is_name(name):
            path = store.path("runs", name)
            try:
                yield name, decoded(path, read_verified(store.files, path))
            except FileNotFoundError:  # merged meanwhile
                continue
            except (DamagedStore, UnreadableFile) as error:
                yield name, error


def _faults_of(store: RunStore, part: Part) -> Iterator[str]:
    for table, names in part.files.items():
        for name in names:
            path = store.path(table, name)
            try:
                read_verified(store.files, path)
            except FileNotFoundError:
                if store.files.exists(store.path("runs", part.name)):
                    yield f"{path}: is missing; a launch that requests its {len(part.statuses)} runs repeats them"
            except (DamagedStore, UnreadableFile) as error:
                yield str(error)


def without_damage(store: RunStore, run_ids: Collection[str] | None, say: Callable[[str], None]) -> bool:
    """Set aside the damaged parts of some runs, or of all, and report them: their runs are pending again.

    Parts of unknown content are set aside, too. Returns whether there were any.

    Raises:
        UsageError: the store cannot be read, or a damaged part cannot be moved.
    """
    damaged: list[tuple[str, Mapping[TableName, Sequence[str]], str]] = []
    for name, found in _read(store):
        if isinstance(found, UnreadableFile):
            raise found
        if not isinstance(found, Part):
            damaged.append((name, {}, str(found)))
        elif run_ids is None or not found.statuses.keys().isdisjoint(run_ids):
            try:
                store.verify(found)
            except FileNotFoundError as error:
                damaged.append((name, found.files, f"{error}: is missing; its runs are computed again"))
            except DamagedStore as error:
                damaged.append((name, found.files, str(error)))
    for name, files, reason in damaged:
        try:
            with store.locked():
                _set_aside(store, name, files)
        except OSError as error:
            raise UsageError(f"{reason}; it cannot be set aside ({one_line(error)})") from None
        say(f"set aside: {reason}")
    return bool(damaged)


def _set_aside(store: RunStore, name: str, files: Mapping[TableName, Sequence[str]]) -> None:
    for table, of in (("runs", [name]), *files.items()):
        for each in of:
            path = f"{store.files.root}/{table}/{each}"
            if store.files.exists(path):
                store.files.move(path, f"{store.work_folder}/damaged/{table}-{each}")


def matching(store: RunStore, where: str) -> list[str]:
    """Return the ids of the runs, finished and failed, whose rows in `runs` meet a condition.

    Raises:
        UsageError: the condition is invalid or names an unknown column, or no run meets it.
    """
    if not isinstance(where, str) or not where.strip():
        raise UsageError(f"where = {shown(where)}: expected a condition such as 'storage_fraction == 0.5'")
    holds = Where(where, store.schema("runs", store.live()).names)
    found = [str(row["run_id"]) for row in store.rows("runs") if holds(row)]
    if not found:
        raise UsageError(f"where {shown(where)}: matches no run in {store.files.shown}")
    return found


def delete_runs(store: RunStore, run_ids: Collection[str]) -> int:
    """Delete some runs from all tables, with their models and checkpoints, and return their number.

    Raises:
        UsageError: the store cannot be written to, or a part is damaged.
    """
    gone = set(run_ids) & store.recorded().keys()
    try:
        with store.locked():
            delete(store, gone)
        store.models.delete(gone)
        store.files.delete(store.checkpoint_path(run_id) for run_id in gone)
    except OSError as error:
        raise UsageError(
            f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); "
            "each run is whole or gone; repeat the command"
        ) from None
    return len(gone)


def merge_runs(store: RunStore, other: RunStore) -> int:
    """Copy the runs of another store that this one lacks. The other store is not changed.

    A run that failed here and finished there is copied. If both stores have finished a run, it is copied if only the
    other one has its predictions.

    Args:
        store: the store to add to; created if missing.
        other: the store to copy from, in a folder or behind a URI.

    Returns:
        The number of runs copied.

    Raises:
        UsageError: the numbers of a run differ between the stores; both are the same store; one has another format; a
            part is damaged or the disk is full.
    """
    if store.uri == other.uri:
        raise UsageError(f"merge {store.files.shown} with {other.files.shown}: they are one store; give two")
    other.files.check_is_there()
    store.open_for_writing()
    owners, ours = owners_of(other.complete(other.live())), owners_of(store.live())
    finished = [{run_id for run_id, part in it.items() if part.statuses[run_id] == "finished"} for it in (owners, ours)]
    both = sorted(finished[0] & finished[1])
    _check_equal(store, other, both)
    new = (finished[0] - finished[1]) | (owners.keys() - ours.keys())
    new |= {run_id for run_id in both if run_id in owners[run_id].predicted and run_id not in ours[run_id].predicted}
    try:
        for few in _portions(sorted(new)):
            read = {table: other.table(table, few) for table in SCHEMAS}
            for run_id in few:
                of_run = {table: it.filter(pc.equal(it["run_id"], run_id)) for table, it in read.items()}
                wanted = {"runs"} if owners[run_id].statuses[run_id] == "failed" else set(SCHEMAS)
                wanted -= set() if run_id in owners[run_id].predicted else {"predictions"}
                store.add(run_id, {table: it for table, it in of_run.items() if table in wanted})
            store.flush()
        store.models.copy(other.models, finished[0])
    except OSError as error:
        raise UsageError(
            f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); "
            "free space, and repeat the command"
        ) from None
    return len(new)


def _portions(run_ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(run_ids), _RUNS_AT_A_TIME):
        yield list(run_ids[start : start + _RUNS_AT_A_TIME])


def _check_equal(store: RunStore, other: RunStore, run_ids: Sequence[str]) -> None:
    """Check that runs in both stores have equal numbers.

    Raises:
        UsageError: the numbers of a run differ; names the run and the table.
    """
    columns: Mapping[TableName, Sequence[str] | None] = {
        "runs": _NUMBERS, "r_matrix": None, "curves": None, "instances": None, "predictions": None
    }  # fmt: skip
    predicted = store.predicted() & other.predicted()
    for table, names in columns.items():
        for few in _portions([it for it in run_ids if table != "predictions" or it in predicted]):
            if same_rows(store.table(table, few, names), other.table(table, few, names)):
                continue
            for run_id in few:
                if not same_rows(store.table(table, run_id, names), other.table(table, run_id, names)):
                    raise UsageError(
                        f"run {run_id}: its numbers in table {table} differ between {store.files.shown} and "
                        f"{other.files.shown}; delete it from one of them, and merge again"
                    )


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have equal values in equal order; nan equals nan, and a missing column null."""
    names = sorted({*one.column_names, *other.column_names})
    if one.num_rows != other.num_rows:
        return False
    return all(_same(*(it[name] if name in it.column_names else None for it in (one, other))) for name in names)


def _same(one: pa.ChunkedArray | None, other: pa.ChunkedArray | None) -> bool:
    if one is None or other is None:
        there = one or other
        return there is None or there.null_count == len(there)
    if one.type != other.type:
        other = other.cast(one.type)
    if one.equals(other):
        return True
    if pa.types.is_list(one.type):
        lengths = (pc.list_value_length(it) for it in (one, other))
        return _same(*lengths) and _same(pc.list_flatten(one), pc.list_flatten(other))
    if not pa.types.is_floating(one.type) or len(one) != len(other):
        return False
    nan = [pc.fill_null(pc.is_nan(it), False) for it in (one, other)]
    return bool(nan[0].equals(nan[1]) and pc.if_else(nan[0], 0, one).equals(pc.if_else(nan[1], 0, other)))
