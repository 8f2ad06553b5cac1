"""Maintenance of a store: checking it, setting damaged parts aside, and deleting runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from clops_sweep.errors import DamagedStore, UnreadableFile, UsageError, one_line, several, shown
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.store.launches import runs_under_way
from clops_sweep.store.parts import Part, decoded, is_name, owners_of, read_verified
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.stored_parts import missing
from clops_sweep.store.tables import OTHERS, TableName
from clops_sweep.store.writing import delete


def faults(store: RunStore) -> Iterator[str]:
    """Return a sentence for everything in a store that is damaged, unreadable, missing or doubled."""
    parts = []
    for _, content in _read(store):
        if isinstance(content, Part):
            parts.append(content)
        else:
            yield str(content)
    replaced = {name for part in parts for name in part.replaces}
    live = [part for part in parts if part.name not in replaced]
    for part in live:
        yield from _faults_of(store, part)
    owners = owners_of(live)
    twice = {run_id for part in live for run_id in part.statuses if owners[run_id] is not part}
    results = shlex.quote(store.files.anywhere)
    mended = f"`clops-sweep merge {results} --parts` mends it, and so does a launch that computes a run"
    if twice:
        yield f"{len(twice)} runs are there twice, such as {min(twice)}; {mended}"
        yield from _differing(store, live)
    if len({part.schema for part in live}) > 1:
        yield f"the parts of runs have different columns, as after copying files; {mended}"
    yield from store.models.faults()


def files_of_no_run(store: RunStore) -> int:
    """Return the number of files in the tables other than `runs` that no part of `runs` names.

    A killed launch leaves some, and so does a copy of a store that was interrupted before the parts of `runs`.
    """
    there: set[tuple[TableName, str]] = set()
    for table in OTHERS:
        there |= {(table, name) for name in store.files.names(store.folder(table)) if is_name(name)}
    named: set[tuple[TableName, str]] = set()
    for part in store.parts.live():  # after the tables, as a launch writes a part of `runs` last
        for table, names in part.files.items():
            named |= {(table, name) for name in names}
    return len(there - named)


def _differing(store: RunStore, live: Sequence[Part]) -> Iterator[str]:
    """Yield a sentence on runs that are there twice with different numbers."""
    from clops_sweep.store.comparing import with_other_numbers  # imports pyarrow.compute, which is slow

    differing = set[str]()
    for run_ids in with_other_numbers(store.parts, live).values():
        differing |= run_ids
    if differing:
        which = f"{several(len(differing), 'run')} of these, such as {min(differing)}"
        yield (
            f"{which}: the numbers differ, as after copying stores of different machines or code; the newest part with "
            "predictions, or else the newest, is read, and what mends it keeps the other in .work/left"
        )


def _read(store: RunStore) -> Iterator[tuple[str, Part | UsageError]]:
    """Yield each part of `runs`, or the error that it causes."""
    for name in store.files.names(store.folder("runs")):
        if is_name(name):
            path = store.parts.path("runs", name)
            try:
                yield name, decoded(path, read_verified(store.files, path))
            except FileNotFoundError:  # merged meanwhile
                continue
            except (DamagedStore, UnreadableFile) as error:
                yield name, error


def _faults_of(store: RunStore, part: Part) -> Iterator[str]:
    for table, names in part.files.items():
        for name in names:
            path = store.parts.path(table, name)
            try:
                read_verified(store.files, path)
            except FileNotFoundError:
                if store.files.exists(store.parts.path("runs", part.name)):
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
    for name, content in _read(store):
        if isinstance(content, UnreadableFile):
            raise content
        if not isinstance(content, Part):
            damaged.append((name, {}, str(content)))
        elif run_ids is None or not content.statuses.keys().isdisjoint(run_ids):
            try:
                store.parts.verify(content)
            except FileNotFoundError as error:
                damaged.append((name, content.files, f"{error}: is missing; its runs are computed again"))
            except DamagedStore as error:
                damaged.append((name, content.files, str(error)))
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
        for file in of:
            path = f"{store.files.root}/{table}/{file}"
            if store.files.exists(path):
                store.files.move(path, f"{store.work_folder}/damaged/{table}-{file}")


def matching(store: RunStore, where: str) -> list[str]:
    """Return the ids of the runs, finished and failed, whose rows in `runs` meet a condition.

    Raises:
        UsageError: the condition is invalid or names an unknown column, or no run meets it.
    """
    if not isinstance(where, str) or not where.strip():
        raise UsageError(f"where = {shown(where)}: expected a condition such as 'storage_fraction == 0.5'")
    holds = Where(where, store.columns())
    run_ids = [str(row["run_id"]) for row in store.rows("runs") if holds(row)]
    if not run_ids:
        raise UsageError(f"where {shown(where)}: matches no run in {store.files.shown}")
    return run_ids


def delete_runs(store: RunStore, run_ids: Collection[str]) -> int:
    """Delete some runs from all tables, with their models and checkpoints, and return their number.

    Raises:
        UsageError: the store cannot be written to, or a part is damaged.
    """
    gone = set(run_ids) & store.recorded().keys()
    try:
        with store.locked():
            delete(store.parts, gone)
        store.models.delete(gone)
        delete_checkpoints(store, run_ids)  # a run without a row may have one, as those of pruned trials
    except FileNotFoundError as error:
        raise missing(str(error.filename or error)) from None
    except OSError as error:
        raise UsageError(
            f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); "
            "each run is whole or gone; repeat the command"
        ) from None
    return len(gone)


def delete_checkpoints(store: RunStore, run_ids: Collection[str]) -> None:
    """Delete the checkpoints of some runs, except of those that another launch is computing.

    Raises:
        OSError: the store cannot be written to.
    """
    under_way = {run.run_id for run in runs_under_way(store, elsewhere=True)}
    store.files.delete(store.checkpoint_path(run_id) for run_id in run_ids if run_id not in under_way)
