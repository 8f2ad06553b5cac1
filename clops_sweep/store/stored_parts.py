"""The parts of a store: which there are, what they hold, and their rows. docs/architecture.md specifies their files."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from clops_sweep.errors import DamagedStore, UsageError, listed, nearest, shown
from clops_sweep.store.files import Files
from clops_sweep.store.parts import (
    Part,
    Stems,
    Verified,
    decoded,
    empty,
    files_of,
    is_name,
    owners_of,
    read_rows,
    read_verified,
    sorted_by_key,
    union,
)
from clops_sweep.store.tables import SCHEMAS, TableName

T = TypeVar("T")

_VANISHED = 100
"""Maximum number of listings of a table while parts vanish because they are merged."""

_PARTS = "parts"
"""What parts at one moment keep their list as."""


class StoredParts:
    """The Parquet parts of `runs`, `r_matrix`, `curves`, `instances` and `predictions`, each table a folder of them.

    Args:
        files: the file operations of the store.
        verified: path of the file that remembers which parts this machine has verified.
    """

    def __init__(self, files: Files, verified: Path) -> None:
        self.files = files
        self._stems = Stems(uuid.uuid4().hex[:8])
        self._known: dict[str, Part] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._verified = Verified(files, verified)
        self._moment: dict[str, Any] | None = None

    @property
    def at_one_moment(self) -> bool:
        """Whether the parts are listed once."""
        return self._moment is not None

    def frozen(self) -> Self:
        """Return the parts as they are now, for reading: they are listed once, and `once` keeps what it returns."""
        frozen = copy.copy(self)
        frozen._moment = {}
        return frozen

    def once(self, what: str, compute: Callable[[], T]) -> T:
        """Return what `compute` returns. At one moment it is computed at the first call and kept.

        Args:
            what: a name of the result, unique among all that is kept.
            compute: reads it from the store.
        """
        if self._moment is None:
            return compute()
        if what not in self._moment:
            self._moment[what] = compute()
        kept: T = self._moment[what]
        return kept

    def folder(self, table: TableName) -> str:
        """Return the folder of a table, in the store's file system."""
        return f"{self.files.root}/{table}"

    def path(self, table: TableName, name: str) -> str:
        """Return the path of a part, in the store's file system."""
        return f"{self.folder(table)}/{name}"

    @property
    def left_folder(self) -> str:
        """The folder of files that no part names, in the store's file system."""
        return f"{self.files.root}/.work/left"

    def next_stem(self) -> str:
        """Return the beginning of the names of the next parts that this object writes."""
        return self._stems.next()

    def live(self) -> list[Part]:
        """Return the parts of `runs` that no other part replaces, oldest first.

        Raises:
            DamagedStore: a part is damaged.
        """
        return self._settled(self._live)

    def _live(self) -> list[Part]:
        return self.once(_PARTS, self._listed)

    def _listed(self) -> list[Part]:
        names = self._part_names("runs")
        while self.files.local and (again := self._part_names("runs")) != names:
            names = again  # a folder that changes while it is listed may lack both a part and what replaces it
        new = [name for name in names if name not in self._known]
        for name, part in zip(new, self.files.for_each(self._part, new), strict=True):
            self._known[name] = part
        parts = [self._known[name] for name in names]
        replaced = {name for part in parts for name in part.replaces}
        return [part for part in parts if part.name not in replaced]

    def _part(self, name: str) -> Part:
        path = self.path("runs", name)
        return decoded(path, read_verified(self.files, path))

    def remember(self, part: Part) -> Part:
        """Remember a part that this process has written, so that it is not read."""
        self._known[part.name] = part
        return part

    def _part_names(self, table: TableName) -> list[str]:
        return [name for name in self.files.names(self.folder(table)) if is_name(name)]

    def _settled(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; it is repeated while parts vanish because they are merged.

        Raises:
            DamagedStore: a part is missing.
        """
        before: tuple[str, list[str]] | None = None
        for _ in range(_VANISHED):
            try:
                return work()
            except FileNotFoundError as error:
                if self._moment is not None:
                    self._moment.pop(_PARTS, None)  # merged since this moment: the parts that replace it have its runs
                now = (str(error), self._part_names("runs"))
                if now == before:
                    break
                before = now
        raise missing(before[0] if before else "")

    def complete(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts whose files all exist."""
        tables = {table for part in parts for table in part.files}
        there = {table: set(self.files.names(self.folder(table))) for table in tables}
        complete = []
        for part in parts:
            missing = [table for table, names in part.files.items() if not there[table].issuperset(names)]
            if not missing:
                complete.append(part)
        return complete

    def rows(self, table: TableName, run_ids: Collection[str] | None, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of some runs or of all, sorted by run id; a run that two parts hold is read once.

        Args:
            table: the table.
            run_ids: the runs; None for all.
            columns: the columns; None for all.

        Raises:
            DamagedStore: a part is damaged.
            UsageError: a column does not exist.
        """
        wanted = None if run_ids is None else set(run_ids)
        return self._settled(lambda: self._rows(table, wanted, columns))

    def _rows(self, table: TableName, wanted: set[str] | None, columns: Sequence[str] | None) -> pa.Table:
        parts = self._live()
        schema = self.schema(table, parts)
        there = schema.names  # pyarrow makes a new list of them at each call
        names = columns or there
        existing = frozenset(there)
        unknown = [name for name in names if name not in existing]
        if unknown:
            known = nearest(unknown[0], there) or f"; it has {listed(there)}"
            raise UsageError(f"table {table!r} has no column {shown(unknown[0])}{known}")
        needed = list(dict.fromkeys(("run_id", *names)))
        owners = owners_of(parts)
        chosen: list[tuple[str, set[str] | None]] = []
        for part in parts:
            own = {run_id for run_id in part.statuses if owners[run_id] is part}
            few = own if wanted is None else own & wanted
            only = None if len(few) == len(part.statuses) else few
            chosen += [(name, only) for name in files_of(part, table) if few]
        read = self.files.for_each(lambda few: self.read_part(table, few[0], schema, needed, few[1]), chosen)
        self._verified.keep()
        return sorted_by_key(pa.concat_tables([empty(schema).select(needed), *read])).select(names)

    def read_part(
        self,
        table: TableName,
        name: str,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        run_ids: Collection[str] | None = None,
    ) -> pa.Table:
        """Return columns of a part, of some runs or of all, after verifying it; those of `runs` were when listed."""
        path = self.path(table, name)
        if table != "runs":
            self._verified.check(path)
        return read_rows(self.files, path, schema, columns or schema.names, run_ids)

    def verify(self, part: Part) -> None:
        """Check all files of a part, unless they were checked on this machine before.

        Raises:
            FileNotFoundError: a file is missing.
            DamagedStore: a file is not what was written.
        """
        for table, names in part.files.items():
            for name in names:
                self._verified.check(self.path(table, name))
        self._verified.keep()

    def schema(self, table: TableName, parts: Iterable[Part], *more: pa.Schema) -> pa.Schema:
        """Return the columns of a table in some parts, and in other schemas."""
        if table == "runs":
            return union(table, [*(part.schema for part in parts), *more])
        if table != "predictions":
            return SCHEMAS[table]
        names = [name for part in parts for name in files_of(part, table)]
        new = [name for name in names if name not in self._schemas]
        self._schemas |= dict(zip(new, self.files.for_each(self._schema_of, new), strict=True))
        return union(table, [*(self._schemas[name] for name in names), *more])

    def _schema_of(self, name: str) -> pa.Schema:
        path = self.path("predictions", name)
        self._verified.check(path)
        with self.files.system.open_input_file(path) as file:
            return pq.read_schema(file).remove_metadata()


def missing(path: str) -> DamagedStore:
    """Return the error of a file of a part that does not exist."""
    return DamagedStore(f"{path}: is missing; a launch computes the requested runs in it again")
