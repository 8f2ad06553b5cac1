"""Atomic changes of many parts, as `migrate`, `delete` and `merge` make them.

New parts are staged in `.work/rewriting-parts`, where no reader looks, and verified. Then a journal is written that
lists them and the parts that they replace; it commits the change. `finish` moves the staged parts to their tables,
verifies them there and deletes the old ones. It can be killed and repeated at any moment.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.errors import DamagedStore, UsageError, one_line
from clops_sweep.store.compaction import portions
from clops_sweep.store.part_names import Part, compacted, parsed, single
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName

TABLES: tuple[TableName, ...] = (*(name for name in SCHEMAS if name not in EVERY_RUN), *EVERY_RUN[1:], EVERY_RUN[0])
"""Order of the tables; `runs` comes last, since a run is finished when `runs` has it."""

_STAGED, _JOURNAL = "rewriting-parts", "rewriting.json"
_SPARE = 2**20
"""Bytes to keep free for folders and the journal."""


class Rewriting:
    """Staged new parts and the old parts that they replace. Readers see no change before `commit`.

    A context manager that holds the store's lock, finishes a change that a killed command had committed, and deletes
    the staged parts if the block ends without a commit.

    Args:
        store: the store to change.

    Raises:
        UsageError: another process is at work on the store, or a file of it cannot be written.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._added: list[tuple[TableName, Part]] = []
        self._removed: list[tuple[TableName, Part]] = []
        self._is_made = False
        self._lock = store.rewriting()

    def __enter__(self) -> Self:
        self._lock.__enter__()
        try:
            finish(self._store)
            self._discard()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if not self._store.files.exists(_journal(self._store)):
                self._discard()
        finally:
            self._lock.__exit__(None, None, None)
        if isinstance(error, OSError):
            state = "all parts are in place; repeat the command for the rest" if self._is_made else "nothing changed"
            raise _cannot_write(self._store, error, state) from None

    def stage(
        self,
        table: TableName,
        source: PartFolder,
        owner: Mapping[str, Part],
        new_ids: Mapping[str, str] | None = None,
        *,
        failed: bool = False,
    ) -> None:
        """Write one new part with the rows of some runs, and verify it.

        Args:
            table: the table of the part.
            source: the parts to read the rows from, in this store or another.
            owner: run id to the part with its rows.
            new_ids: old id to new id, for runs whose id changes.
            failed: whether it is the part of one failed run.

        Raises:
            DamagedStore: a source or the new part is damaged.
            OSError: the part cannot be written.
        """
        run_ids = [(new_ids or {}).get(run_id, run_id) for run_id in owner]
        part = single("failed", run_ids[0]) if failed else compacted(run_ids)
        target, staged = self._store.parts[table], _staged(self._store, table, part)
        for old in set(owner.values()):
            source.verify(old)
        target.write_portions(part, portions(source, owner, new_ids), run_ids, staged=staged)
        target.verify(part, staged)
        self._added.append((table, part))

    def remove(self, table: TableName, parts: Collection[Part]) -> None:
        """Mark parts for deletion after all new parts are in their tables."""
        self._removed += [(table, part) for part in parts]

    def commit(self) -> None:
        """Commit the change. If this process is killed afterwards, the next command completes the change."""
        kept = set(self._added)
        journal = {
            "added": [[table, part.name] for table, part in self._added],
            "removed": [[table, part.name] for table, part in self._removed if (table, part) not in kept],
        }
        self._store.files.write(_journal(self._store), json.dumps(journal).encode())
        finish(self._store)
        self._is_made = True

    def _discard(self) -> None:
        files, folder = self._store.files, f"{self._store.work_folder}/{_STAGED}"
        if files.local:  # unfinished files of a killed process begin with a dot, and are not listed
            shutil.rmtree(folder, ignore_errors=True)
        files.delete(f"{folder}/{name}" for name in files.names(folder))


def check_room(store: RunStore, needed: int) -> None:
    """Check that the disk of a local store has room for some bytes.

    Raises:
        UsageError: it lacks the room.
    """
    if store.files.folder is None:
        return
    free = shutil.disk_usage(store.files.folder).free
    if needed + _SPARE > free:
        raise UsageError(
            f"results {store.files.shown}: the new parts need about {_megabytes(needed + _SPARE)}, and the disk has "
            f"{_megabytes(free)} free; free some space first"
        )


def finish_interrupted(store: RunStore) -> None:
    """Finish a change that a killed `migrate`, `delete` or `merge` had committed, if any.

    Raises:
        UsageError: another process is at work on the store, or the change cannot be finished.
    """
    if store.files.exists(_journal(store)):
        with store.rewriting():
            finish(store)


def finish(store: RunStore) -> None:
    """Finish a committed change, if any, while holding the lock (`RunStore.rewriting`).

    Raises:
        DamagedStore: the journal or a new part is damaged; nothing is deleted then.
        UsageError: the store cannot be written to.
    """
    try:
        _finish(store)
    except OSError as error:
        raise _cannot_write(store, error, "the change is committed, and the next command finishes it") from None


def _finish(store: RunStore) -> None:
    files, path = store.files, _journal(store)
    try:
        content = files.read(path).to_pybytes()
    except FileNotFoundError:
        return
    try:
        journal = json.loads(content)
        added, removed = (_named(journal[key]) for key in ("added", "removed"))
    except (ValueError, KeyError, TypeError):
        raise DamagedStore(f"{path}: is not what was written there; move it away, and repeat the command") from None
    for table, part in added:
        if files.exists(staged := _staged(store, table, part)):
            files.move(staged, store.parts[table].path(part))
    for table, part in added:
        try:
            store.parts[table].verify(part)
        except FileNotFoundError as error:
            raise DamagedStore(
                f"{path}: a part that it lists is missing ({one_line(error)}); no old part is deleted; move the "
                "journal away, and repeat the command"
            ) from None
    for table, part in removed:
        store.parts[table].delete([part])
    files.delete([path])


def _named(entries: list[list[str]]) -> list[tuple[TableName, Part]]:
    """Parse names of tables and parts, `runs` last. Untrusted names cannot lead out of a table.

    Raises:
        ValueError: a table does not exist, or a name is not the name of a part.
    """
    found = [(table, parsed(name)) for table, name in entries]
    if wrong := [table for table, part in found if part is None or table not in SCHEMAS]:
        raise ValueError(wrong[0])
    return [(table, part) for table in TABLES for name, part in found if name == table and part is not None]


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have equal values in equal order; nan equals nan."""
    columns = [name for name in one.column_names if name in other.column_names]
    missing = [table[name] for table, others in ((one, other), (other, one)) for name in table.column_names
               if name not in others.column_names]  # fmt: skip
    return (
        one.num_rows == other.num_rows
        and all(column.null_count == len(column) for column in missing)
        and all(_same(one[name], other[name]) for name in columns)
    )


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
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


def _journal(store: RunStore) -> str:
    return f"{store.work_folder}/{_JOURNAL}"


def _staged(store: RunStore, table: TableName, part: Part) -> str:
    return f"{store.work_folder}/{_STAGED}/{table}-{part.name}"


def _cannot_write(store: RunStore, error: OSError, state: str) -> UsageError:
    return UsageError(
        f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); {state}"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
