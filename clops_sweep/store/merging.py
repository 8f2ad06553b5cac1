"""Merging another store into a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow.compute as pc

from clops_sweep.errors import UsageError, one_line
from clops_sweep.store.comparing import NUMBERS, same_rows
from clops_sweep.store.parts import Part, owners_of
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.verdict_files import copy_verdicts, stored_verdicts

_RUNS_AT_A_TIME = 256


def merge_runs(store: RunStore, other: RunStore) -> int:
    """Copy the runs of another store that this one lacks, and its verdicts on claims. The other store is not changed.

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
        DamagedStore: a file with verdicts of the other store was edited; nothing is copied.
    """
    if store.uri == other.uri:
        raise UsageError(f"merge {store.files.shown} with {other.files.shown}: they are one store; give two")
    other.files.check_is_there()
    store.open_for_writing()
    theirs = owners_of(other.parts.complete(other.parts.live()))
    ours = owners_of(store.parts.live())
    finished_there = _finished(theirs)
    finished_here = _finished(ours)
    both = sorted(finished_there & finished_here)
    _check_equal(store, other, both)
    for _ in stored_verdicts(other.files):
        pass  # each file is checked
    new = (finished_there - finished_here) | (theirs.keys() - ours.keys())
    for run_id in both:
        if run_id in theirs[run_id].predicted and run_id not in ours[run_id].predicted:
            new.add(run_id)
    try:
        for run_ids in _portions(sorted(new)):
            _copy(store, other, run_ids, theirs)
            store.flush()
        store.models.copy(other.models, finished_there)
        copy_verdicts(store.files, other.files)
    except OSError as error:
        raise UsageError(
            f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); "
            "free space, and repeat the command"
        ) from None
    return len(new)


def _finished(owners: Mapping[str, Part]) -> set[str]:
    """Return the finished runs, given the part of each run."""
    return {run_id for run_id, part in owners.items() if part.statuses[run_id] == "finished"}


def _copy(store: RunStore, other: RunStore, run_ids: Sequence[str], theirs: Mapping[str, Part]) -> None:
    """Add runs of another store, given the part of each of its runs."""
    tables = {table: other.table(table, run_ids) for table in SCHEMAS}
    for run_id in run_ids:
        part = theirs[run_id]
        wanted: set[TableName] = {"runs"} if part.statuses[run_id] == "failed" else set(SCHEMAS)
        if run_id not in part.predicted:
            wanted.discard("predictions")
        rows = {}
        for table in wanted:
            of_all = tables[table]
            rows[table] = of_all.filter(pc.equal(of_all["run_id"], run_id))
        store.add(run_id, rows)


def _portions(run_ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(run_ids), _RUNS_AT_A_TIME):
        yield list(run_ids[start : start + _RUNS_AT_A_TIME])


def _check_equal(store: RunStore, other: RunStore, run_ids: Sequence[str]) -> None:
    """Check that runs in both stores have equal numbers.

    Raises:
        UsageError: the numbers of a run differ; names the run and the table.
    """
    predicted = store.predicted() & other.predicted()
    for table in SCHEMAS:
        columns = NUMBERS if table == "runs" else None
        compared = [run_id for run_id in run_ids if table != "predictions" or run_id in predicted]
        for portion in _portions(compared):
            if same_rows(store.table(table, portion, columns), other.table(table, portion, columns)):
                continue
            for run_id in portion:
                if not same_rows(store.table(table, run_id, columns), other.table(table, run_id, columns)):
                    raise UsageError(
                        f"run {run_id}: its numbers in table {table} differ between {store.files.shown} and "
                        f"{other.files.shown}; delete it from one of them, and merge again"
                    )
