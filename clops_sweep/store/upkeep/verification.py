"""Verification: a part is what was written, byte for byte, or is set aside and its runs are pending again."""

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
"""Folder beside the checkpoints where parts that are damaged are kept."""

_SEEN = "verified.json"
_MOST_BYTES = 2**28
"""More than the marks of a million parts take."""


@dataclass(frozen=True)
class Damage:
    """A part that is not what was written.

    Attributes:
        table: whose part it is.
        part: which one.
        reason: what is wrong with it, in a sentence that names the file.
    """

    table: TableName
    part: Part
    reason: str


def damages(store: RunStore, run_ids: Collection[str] | None = None) -> list[Damage]:
    """The damaged parts of some runs, or of all.

    Of some runs, parts that were whole when they were last read and are the same files since (`Files.mark`) are not
    read again; which these are is remembered beside the logs. A part that goes meanwhile, being put together with
    others, is passed over.

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
    """Everything in a store that is damaged, cannot be read or is incomplete, each as a sentence.

    What cannot be read keeps nothing else from being looked at. Of a run that lacks a table nothing is said where a
    part of that table is among the faults, as that part may hold the run.
    """
    complete: list[TableName] = []
    for table, parts in store.parts.items():
        reasons = list(_faults_of(parts))
        yield from reasons
        complete += [] if reasons else [table]
    yield from store.models.faults()
    try:
        incomplete = store.incomplete(complete)
    except (DamagedStore, UnreadableFile):  # which runs there are is not known
        return
    for run_id, tables in incomplete.items():
        yield f"run {run_id}: it has no part in {' and '.join(tables)}; a launch that is asked for it computes it anew"


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
        except FileNotFoundError:  # it is being put together with others
            continue
        except (DamagedStore, UnreadableFile) as error:
            yield str(error)


def set_aside(store: RunStore, found: Collection[Damage]) -> None:
    """Moves damaged parts out of their tables, and deletes none. The runs that were in them are no longer finished.

    Raises:
        OSError: one cannot be moved.
    """
    for damage in found:
        source = store.parts[damage.table].path(damage.part)
        with contextlib.suppress(FileNotFoundError):  # another launch was faster
            store.files.move(source, f"{store.work_folder}/{DAMAGED}/{damage.table}-{damage.part.name}")


def without_damage(store: RunStore, run_ids: Collection[str] | None, say: Callable[[str], None]) -> bool:
    """Sets aside what is damaged of some runs, or of all, and says so. Returns whether there was anything.

    Raises:
        UsageError: the store cannot be read, or a damaged part not be moved.
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
    """The parts that hold some runs, including parts of unknown content."""
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
    """Parts that have been read and were whole, by their marks."""

    def __init__(self, store: RunStore) -> None:
        self._path = store.log_folder / _SEEN
        self._marks: dict[str, list[int]] = {}
        self._added = False
        with contextlib.suppress(OSError, ValueError):
            marks = read_json(self._path, _MOST_BYTES)
            self._marks = marks if isinstance(marks, dict) else {}

    def before(self, table: TableName, part: Part, mark: list[int] | None) -> bool:
        """Whether it was seen with this mark."""
        return mark is not None and mark == self._marks.get(f"{table}/{part.name}")

    def add(self, table: TableName, part: Part, mark: list[int] | None) -> None:
        """It was whole, and had this mark before it was read."""
        if mark is not None:
            self._marks[f"{table}/{part.name}"] = mark
            self._added = True

    def keep(self) -> None:
        """For the next launch; where that cannot be written, it reads once more."""
        from clops_sweep.data.files.folder import write_file

        if self._added:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_file(self._path, json.dumps(self._marks).encode())
