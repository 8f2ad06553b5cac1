"""Verification: damaged parts are set aside, and their runs are pending again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from clops_sweep.errors import DamagedStore, UnreadableFile, UsageError, one_line
from clops_sweep.regular_files import read_json
from clops_sweep.store.part_names import Part
from clops_sweep.store.parts import PartFolder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName

DAMAGED = "damaged"
"""Folder beside the checkpoints for damaged parts."""

_SEEN = "verified.json"
_MOST_BYTES = 2**28
"""Maximum size in bytes of the file of marks; the marks of a million parts take less."""


@dataclass(frozen=True)
class Damage:
    """A damaged part.

    Attributes:
        table: the table of the part.
        part: the part.
        reason: a sentence that names the file and what is wrong with it.
    """

    table: TableName
    part: Part
    reason: str


def damages(store: RunStore, run_ids: Collection[str] | None = None) -> list[Damage]:
    """Return the damaged parts of some runs, or of all.

    For some runs, parts that were undamaged when they were last read and have not changed since (`Files.mark`) are not
    read again; their marks are kept beside the logs. A part that vanishes meanwhile, because it was compacted, is
    skipped.

    Raises:
        UsageError: the store cannot be read.
    """
    wanted = None if run_ids is None else frozenset(run_ids)
    seen = _Seen(store) if wanted is not None else None
    found = []
    for table, parts in store.parts.items():
        for part in _chosen(parts, wanted):
            mark = parts.files.mark(parts.path(part)) if seen is not None else None
            if seen is not None and seen.before(table, part, mark):
                continue
            try:
                parts.verify(part)
            except FileNotFoundError:
                continue
            except DamagedStore as error:
                found.append(Damage(table, part, str(error)))
                continue
            if seen is not None:
                seen.add(table, part, mark)
    if seen is not None:
        seen.keep()
    return found


def faults(store: RunStore) -> Iterator[str]:
    """Return a sentence for everything in a store that is damaged, unreadable or incomplete.

    An unreadable part does not stop the check. A run missing from a table is not reported if a part of that table is
    damaged, as that part may contain the run.
    """
    complete: list[TableName] = []
    for table, parts in store.parts.items():
        reasons = list(_faults_of(parts))
        yield from reasons
        complete += [] if reasons else [table]
    yield from store.models.faults()
    try:
        incomplete = store.incomplete(complete)
    except (DamagedStore, UnreadableFile):  # the runs in that part are unknown
        return
    for run_id, tables in incomplete.items():
        yield f"run {run_id}: it has no part in {' and '.join(tables)}; a launch that requests it computes it again"


def _faults_of(parts: PartFolder) -> Iterator[str]:
    try:
        parts.with_own_columns()
        listing = parts.listing()
    except (DamagedStore, UnreadableFile) as error:
        yield str(error)
        return
    for part in (*listing.singles, *listing.compacts):
        try:
            parts.verify(part)
            parts.check_columns(part)
        except FileNotFoundError:  # the part is being compacted
            continue
        except (DamagedStore, UnreadableFile) as error:
            yield str(error)


def set_aside(store: RunStore, found: Collection[Damage]) -> None:
    """Move damaged parts out of their tables, without deleting any. Their runs are pending again.

    Raises:
        OSError: a part cannot be moved.
    """
    for damage in found:
        source = store.parts[damage.table].path(damage.part)
        with contextlib.suppress(FileNotFoundError):  # another launch has already moved it
            store.files.move(source, f"{store.work_folder}/{DAMAGED}/{damage.table}-{damage.part.name}")


def without_damage(store: RunStore, run_ids: Collection[str] | None, say: Callable[[str], None]) -> bool:
    """Set aside the damaged parts of some runs, or of all, and report them. Return whether there were any.

    Raises:
        UsageError: the store cannot be read, or a damaged part cannot be moved.
    """
    found = damages(store, run_ids)
    try:
        set_aside(store, found)
    except OSError as error:
        raise UsageError(f"{found[0].reason}; it cannot be set aside ({one_line(error)})") from None
    for damage in found:
        say(f"set aside: {damage.reason}")
    return bool(found)


def _chosen(parts: PartFolder, wanted: frozenset[str] | None) -> Iterator[Part]:
    """Yield the parts that contain some runs, including parts of unknown content."""
    listing = parts.listing()
    for part in (*listing.singles, *listing.compacts):
        try:
            if wanted is None or not wanted.isdisjoint(parts.ids(part)):
                yield part
        except FileNotFoundError:
            continue
        except DamagedStore:
            yield part


class _Seen:
    """Marks of the parts that were read and found undamaged."""

    def __init__(self, store: RunStore) -> None:
        self._path = store.log_folder / _SEEN
        self._marks: dict[str, list[int]] = {}
        self._added = False
        with contextlib.suppress(OSError, ValueError):
            marks = read_json(self._path, _MOST_BYTES)
            self._marks = marks if isinstance(marks, dict) else {}

    def before(self, table: TableName, part: Part, mark: list[int] | None) -> bool:
        """Return whether a part was seen with this mark."""
        return mark is not None and mark == self._marks.get(f"{table}/{part.name}")

    def add(self, table: TableName, part: Part, mark: list[int] | None) -> None:
        """Record that a part is undamaged; `mark` was taken before reading it."""
        if mark is not None:
            self._marks[f"{table}/{part.name}"] = mark
            self._added = True

    def keep(self) -> None:
        """Save the marks for the next launch; if they cannot be written, it reads the parts again."""
        from clops_sweep.data.files.folder import write_file

        if self._added:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_file(self._path, json.dumps(self._marks).encode())
