"""The Parquet parts that a table of the store is made of: listed, read, written, and what is in them."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clops_sweep.errors import DamagedStore, OtherFormat, UnreadableFile, UsageError, one_line, shown
from clops_sweep.store.files import Files
from clops_sweep.store.part_bytes import (
    FORMAT,
    FORMAT_MARK,
    TAIL,
    UNSEALED,
    check_seal,
    format_of,
    has_checked_footer,
    is_sealed,
    sealed,
    tail_length,
)
from clops_sweep.store.part_names import COMPACT, Listing, Part, compacted, parsed, single

_RUN_IDS, _DIGEST, _FORMAT = "clops_sweep.run_ids", "clops_sweep.digest", "clops_sweep.format"
_ALL_COLUMNS = "all-columns.parquet"
_ID_LENGTH_OF_0_1 = 20
_ROWS_PER_GROUP = 2**14
"""So many rows of a part of many runs are read to have one of them; each group of rows takes room in every footer."""

_MANY_ROWS = 10_000

TABLES_AT_A_TIME = 500
"""Many tables of a row each take the memory of a large one: so many are read before they are made one."""


class PartFolder:
    """The parts of one table.

    Args:
        files: where they are.
        folder: the table's folder.
        schema: the table's columns; a part that lacks some has nulls there ...
        defaults: ... but for these, whose values it is read with.
        renamed: columns of the schema by the names that earlier versions wrote them under.

    Attributes:
        convert: makes rows of version 0.2 those of this version, to write them again; None to refuse them.
    """

    def __init__(
        self,
        files: Files,
        folder: str,
        schema: pa.Schema,
        defaults: Mapping[str, Any] | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.files = files
        self.folder = folder
        self.schema = self._own = schema
        names = set(schema.names)
        self._defaults = {n: value for n, value in (defaults or {}).items() if n in names and value is not None}
        self._renamed = dict(renamed or {})
        self._ids: dict[str, frozenset[str]] = {}
        self._added: dict[str, pa.Field] = {}
        self._schemas: dict[tuple[str, ...], pa.Schema] = {}
        self._failures: set[str | None] = set()
        self.convert: Callable[[pa.Table], pa.Table] | None = None

    def with_own_columns(self) -> PartFolder:
        """The folder with the columns that strategies have added to it by now, behind those of the table.

        Raises:
            UnlistedColumns: the file that lists them is damaged.
        """
        path = f"{self.folder}/{_ALL_COLUMNS}"
        try:
            content = self.files.read(path)
            if is_sealed(content):
                check_seal(content, self._place(_ALL_COLUMNS))
            found = pq.read_schema(pa.BufferReader(content))
        except FileNotFoundError:
            return self
        except (pa.ArrowException, OSError) as error:
            if (unreadable := _unreadable(path, error)) is not None:
                raise unreadable from None
            raise UnlistedColumns(
                f"{path}: damaged ({one_line(error)}); `clops-sweep compact --results "
                f"{shlex.quote(self.files.anywhere)}` writes it anew from the parts"
            ) from None
        self._set_own_columns(self._not_own(found))
        return self

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Makes columns known beside the table's own. Numbers of both kinds in one column are taken for real ones.

        pandas takes the columns of a folder's first file for those of all. So a file without rows, which has them all,
        comes first.

        Raises:
            UnlistedColumns: the file that lists them is damaged.
        """
        if all(field.name in self._added and self._added[field.name] == field for field in fields):
            return  # this object has read or written that file with them
        known = pa.schema(list(self.with_own_columns().schema)[len(self._own) :])
        union = pa.unify_schemas([known, pa.schema(fields)], promote_options="permissive")
        if not union.equals(known):
            self._write_own_columns(union)

    def rename_columns(self) -> None:
        """Write the file that lists added columns again if it has columns under their names of version 0.2."""
        if self._added:
            self._write_own_columns(pa.schema(list(self._added.values())))

    def list_columns_anew(self) -> None:
        """Writes the file that lists added columns from the parts themselves.

        Raises:
            DamagedStore: a part is not what was written.
        """
        listing = self.listing()
        schemas = self.files.for_each(self._columns_of, (*listing.singles, *listing.compacts))
        added = [pa.schema(self._not_own(it)) for it in schemas]
        self._write_own_columns(pa.unify_schemas(added, promote_options="permissive"))

    def _not_own(self, fields: Iterable[pa.Field]) -> list[pa.Field]:
        """The fields of a file that are no columns of the table, under today's name or an earlier one."""
        own = {*self._own.names, *self._renamed}
        return [field for field in fields if field.name not in own]

    def _columns_of(self, part: Part) -> pa.Schema:
        with self._reading(part), self._opened(part) as (parquet, _):
            return parquet.schema_arrow.remove_metadata()

    def _write_own_columns(self, columns: pa.Schema) -> None:
        self._set_own_columns(list(columns))
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self.schema) as writer:
            writer.add_key_value_metadata({_DIGEST: UNSEALED})
        self.files.write(f"{self.folder}/{_ALL_COLUMNS}", sealed(sink.getvalue(), self._place(_ALL_COLUMNS)))

    def _set_own_columns(self, fields: Sequence[pa.Field]) -> None:
        self.schema = pa.schema([*self._own, *fields])
        self._added = {field.name: field for field in fields}
        self._schemas.clear()

    def path(self, part: Part) -> str:
        """Where a part is, in the file system of the store."""
        return f"{self.folder}/{part.name}"

    def _place(self, name: str) -> str:
        """Table and name of a file: one that was copied to another place is not what was written there."""
        return f"{self.folder.rpartition('/')[2]}/{name}"

    def listing(self, *, only_compacted: bool = False) -> Listing:
        """The parts, such that no run is missing although its parts are just being put together.

        A folder may change while it is listed. A part that has been deleted meanwhile is in a compacted one, which has
        appeared before; if it was overlooked, the next listing shows it. So the first of two listings with the same
        compacted parts has everything.
        """
        beginning = COMPACT if only_compacted else ""
        listing = self._listed_once(beginning)
        while (again := self._listed_once(beginning)).compacts != listing.compacts:
            listing = again
        return listing

    def sizes(self) -> dict[str, int]:
        """The bytes of each part, by its name."""
        return self.files.sizes(self.folder)

    def finished(self) -> set[str]:
        """The runs that have a part of their own here, or are in a compacted one, by the names of the parts."""
        return self.finished_in(self.listing())

    def has_finished(self, run_ids: Sequence[str], *, certainly: bool = True) -> set[str]:
        """Which of some runs have a part of their own here, or are in a compacted one.

        Args:
            run_ids: the runs.
            certainly: whether none may be overlooked whose part is just being put together with others. Where listing
                takes requests, it takes twice as many.
        """
        if not self.files.local:  # one listing asks for all of them, and says what is compacted too
            listing = self.listing() if certainly else self._listed_once("")
            self._failures = {part.run_id for part in listing.singles if part.status == "failed"}
            return set(run_ids) & self.finished_in(listing)
        parts = [single("finished", run_id) for run_id in run_ids]
        missing = {str(part.run_id) for part in parts if not self.files.exists(self.path(part))}
        if missing:  # a part that has just been compacted away is in a compacted one by now
            missing = missing.difference(*map(self.ids, self.listing(only_compacted=True).compacts))
        return set(run_ids) - missing

    def finished_in(self, listing: Listing) -> set[str]:
        """The finished runs that a listing shows, be it that a compacted part of it has them."""
        found = {str(part.run_id) for part in listing.finished}
        return found.union(*self.files.for_each(self.ids, listing.compacts))

    def ids(self, part: Part) -> frozenset[str]:
        """The runs in a part. A compacted one is opened once, as its name follows from them.

        Raises:
            FileNotFoundError: it is no longer there.
            DamagedStore: it cannot be read, or its name does not follow from the runs that it lists.
        """
        if part.run_id is not None:
            return frozenset([part.run_id])
        if part.name not in self._ids:
            with self._reading(part):
                tail = self._tail_of(part)
                text = (pq.read_metadata(pa.BufferReader(tail)).metadata or {})[_RUN_IDS.encode()].decode()
                ids = frozenset(text.split(","))
                self._refuse_old(next(iter(ids)))
                if compacted(ids) != part:
                    raise pa.ArrowInvalid("its name does not follow from the runs that it lists")
                self._format_of(part, tail)
            self._ids[part.name] = ids
        return self._ids[part.name]

    def owned(self, listing: Listing) -> tuple[list[Part], list[tuple[Part, frozenset[str]]]]:
        """The parts to be read so that every finished run is read once.

        Returns:
            Parts of single runs, and compacted parts with those of their runs that are to be left out.
        """
        seen = frozenset[str]()
        compacts = []
        for part, ids in zip(listing.compacts, self.files.for_each(self.ids, listing.compacts), strict=True):
            if not ids <= seen:
                compacts.append((part, ids & seen))
                seen |= ids
        singles = [part for part in listing.singles if part.status == "failed" or part.run_id not in seen]
        return singles, compacts

    def read(
        self,
        part: Part,
        columns: Sequence[str] | None = None,
        *,
        only: Sequence[str] | None = None,
        without: Iterable[str] = (),
    ) -> pa.Table:
        """Return the rows of a part, or those of some of its runs.

        Args:
            part: which one.
            columns: the columns to read; None for all, in which case no column may be lost.
            only: the runs to read; None for all.
            without: runs to leave out.

        Raises:
            FileNotFoundError: it is no longer there.
            DamagedStore: what is read is not what was written, or it is not of this table.
        """
        leave_out = list(without)
        with self._reading(part), self._opened(part) as (parquet, format_version):
            names = list(columns or parquet.schema_arrow.names)
            groups = _groups_with(parquet.metadata, only)
            if not groups:
                return self.schema.empty_table() if columns is None else self.schema.empty_table().select(names)
            wanted = [*self._as_written(names), *({"run_id"} - set(names))]
            table = parquet.read_row_groups(groups, wanted, use_threads=part.run_id is None)
            if columns is None:
                table = self._all_columns(part, table, format_version)
            if only is not None:
                table = table.filter(pc.is_in(table["run_id"], pa.array(list(only), pa.string())))
            if leave_out:
                table = table.filter(pc.invert(pc.is_in(table["run_id"], pa.array(leave_out, pa.string()))))
            return self._conform(table, columns)

    def _all_columns(self, part: Part, table: pa.Table, format_version: int) -> pa.Table:
        """The rows of a part that are going to be written again, so that no column may be lost.

        Raises:
            OtherFormat: version 0.2 has written the part, and only `clops-sweep migrate` may rewrite it.
            UnlistedColumns: the schema lacks one: the file that lists added columns has gone, or a later version of
                clops-sweep has written the part.
        """
        if format_version < FORMAT:
            if self.convert is None:
                raise OtherFormat(f"{self.path(part)}: {self.from_0_2}")
            table = self.convert(table)
        if unlisted := sorted(set(table.column_names) - {*self.schema.names, *self._renamed}):
            raise UnlistedColumns(
                f"{self.path(part)}: has columns that {_ALL_COLUMNS} does not list ({shown(unlisted)}); `clops-sweep "
                "compact` lists them"
            )
        return table

    @property
    def from_0_2(self) -> str:
        """What a user has to do about parts of version 0.2."""
        store = self.files.anywhere
        return (
            f"written by clops-sweep 0.2, whose run ids differ; `clops-sweep migrate {shlex.quote(store)}` converts "
            "the store and keeps every number"
        )

    def format_of(self, part: Part) -> int:
        """Return the format version of a part.

        Raises:
            FileNotFoundError: it is no longer there.
            OtherFormat: a later version of clops-sweep has written it.
            DamagedStore: it is not a whole Parquet file.
        """
        with self._reading(part):
            tail = self._tail_of(part)
            pq.read_metadata(pa.BufferReader(tail))
            return self._format_of(part, tail)

    def _tail_of(self, part: Part) -> bytes:
        with self.files.system.open_input_file(self.path(part)) as file:
            return _tail(file)

    def _format_of(self, part: Part, tail: pa.Buffer | bytes) -> int:
        if (found := format_of(tail)) > FORMAT:
            raise OtherFormat(
                f"{self.path(part)}: written by a newer version of clops-sweep (format {found}; this one reads up to "
                f"{FORMAT}); install that version"
            )
        return found

    @contextmanager
    def _opened(self, part: Part) -> Iterator[tuple[pq.ParquetFile, int]]:
        """Yield a part whose footer is what was written, and its format version.

        A part of one run is read whole, and so is one without a digest of its footer.

        Raises:
            ArrowInvalid: the footer, or a byte of a part that is read whole, is not what was written.
            OtherFormat: a later version of clops-sweep has written it.
        """
        if part.run_id is None:
            with self.files.system.open_input_file(self.path(part)) as file:
                tail = _tail(file)
                if has_checked_footer(tail, self._place(part.name)):
                    parquet = pq.ParquetFile(
                        file,
                        metadata=pq.read_metadata(pa.BufferReader(tail)),
                        page_checksum_verification=True,
                        pre_buffer=not self.files.local,
                    )
                    yield parquet, self._format_of(part, tail)
                    return
        content = self.files.read(self.path(part))
        check_seal(content, self._place(part.name))
        yield pq.ParquetFile(pa.BufferReader(content)), self._format_of(part, content)

    @contextmanager
    def _reading(self, part: Part) -> Iterator[None]:
        """Turn what a damaged part raises into `DamagedStore`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
            raise self._damaged(part, error) from None

    def write_single(self, part: Part, content: pa.Table) -> None:
        """Writes the part of one run.

        Columns that hold few values are written as they are: dictionaries and statistics would be most of the file, and
        most of the time that reading it takes.
        """
        content = self._conform(content, None)
        options = {
            "compression": "none" if content.num_rows < 2 else "zstd",
            "use_dictionary": content.num_rows >= _MANY_ROWS,
            "write_statistics": False,
        }
        self._write(part, [content], options)

    def write_compacted(self, part: Part, content: pa.Table, run_ids: Iterable[str]) -> None:
        """Writes a part of many runs, in the order of their ids, so that some of them are found without the rest."""
        self.write_portions(part, [in_order(content)], run_ids)

    def write_portions(
        self, part: Part, portions: Iterable[pa.Table], run_ids: Iterable[str], *, staged: str | None = None
    ) -> None:
        """Writes a part of many runs from tables, in the order of ids, of which only one need be in memory.

        Args:
            part: its final name.
            portions: its rows.
            run_ids: its runs.
            staged: the file to write first, which is then moved to where the part belongs.
        """
        metadata = {_RUN_IDS: ",".join(sorted(run_ids))} if part.run_id is None else None
        self._write(part, portions, {"compression": "zstd"}, metadata, staged=staged)

    def _write(
        self,
        part: Part,
        portions: Iterable[pa.Table],
        options: Mapping[str, Any],
        metadata: Mapping[str, str] | None = None,
        staged: str | None = None,
    ) -> None:
        """Writes a part with a checksum of every page, and sealed with a digest of all its bytes."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self.schema, write_page_checksum=True, **options) as writer:
            for table in portions:
                writer.write_table(self._conform(table, None), row_group_size=_ROWS_PER_GROUP)
            writer.add_key_value_metadata({**(metadata or {}), _FORMAT: FORMAT_MARK, _DIGEST: UNSEALED})
        self.files.write(staged or self.path(part), sealed(sink.getvalue(), self._place(part.name)))

    def verify(self, part: Part, staged: str | None = None) -> None:
        """Reads all of a part, and sees that every byte is what was written there, and that its rows are what it says.

        Args:
            part: which one.
            staged: the file that it lies in, before it is moved to where it belongs.

        Raises:
            FileNotFoundError: it is no longer there.
            DamagedStore: it is not so.
        """
        with self._reading(part):
            content = self.files.read(staged or self.path(part))
            check_seal(content, self._place(part.name))
            self._format_of(part, content)
            if part.run_id is not None:
                return
            found = pq.ParquetFile(pa.BufferReader(content)).read(["run_id"])["run_id"].unique().to_pylist()
        if len(found) != part.runs or compacted(found) != part:
            raise self._damaged(part, ValueError("its rows are not of the runs that it is said to hold"))

    def delete(self, parts: Iterable[Part]) -> None:
        """Deletes parts, as far as they are still there."""
        self.files.delete(self.path(part) for part in parts)

    def delete_failure(self, run_id: str) -> None:
        """Deletes the part of a failed run that is finished now; where that takes requests, if the last listing had it.

        One that has appeared since then goes with the next compaction.
        """
        if self.files.local or run_id in self._failures:
            self.delete([single("failed", run_id)])

    def _listed_once(self, beginning: str) -> Listing:
        parts = [part for name in self.files.names(self.folder, beginning) if (part := parsed(name)) is not None]
        for part in parts:
            self._refuse_old(part.run_id)
        compacts = sorted((part for part in parts if part.run_id is None), key=lambda part: part.rank)
        return Listing(tuple(part for part in parts if part.run_id is not None), tuple(compacts))

    def _as_written(self, columns: Sequence[str]) -> list[str]:
        """The names that some columns have in parts of any version; a Parquet reader skips those that a part lacks."""
        return [*columns, *(old for old, name in self._renamed.items() if name in columns)]

    def _conform(self, table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        """The table with the columns of the schema, in their order and types."""
        schema = self.schema if columns is None else self._selected(tuple(columns))
        if table.schema.equals(schema):
            return table
        if not self._renamed.keys().isdisjoint(table.column_names):
            table = table.rename_columns([self._renamed.get(name, name) for name in table.column_names])
        have = set(table.column_names)
        for field in schema:
            if field.name not in have:  # it has been added since the part was written
                value = pa.scalar(self._defaults.get(field.name), field.type)
                table = table.append_column(field, pa.repeat(value, table.num_rows))
        table = table.select(schema.names)
        return table if table.schema.equals(schema) else table.cast(schema)

    def _selected(self, columns: tuple[str, ...]) -> pa.Schema:
        if columns not in self._schemas:
            self._schemas[columns] = pa.schema([self.schema.field(name) for name in columns])
        return self._schemas[columns]

    def _refuse_old(self, run_id: str | None) -> None:
        if run_id is not None and len(run_id) == _ID_LENGTH_OF_0_1:
            raise UsageError(
                f"results {self.files.shown}: holds runs of clops-sweep 0.1, whose ids (of {_ID_LENGTH_OF_0_1} digits) "
                "follow from other fields; pandas reads them still, and new runs need another --results"
            )

    def _damaged(self, part: Part, error: BaseException) -> UsageError:
        return _unreadable(self.path(part), error) or DamagedStore(
            f"{self.path(part)}: not a whole Parquet file ({one_line(error)}); a launch sets it aside and computes "
            "anew what it is asked for of it"
        )


class UnlistedColumns(DamagedStore):
    """Parts have columns that the file `all-columns.parquet` of their table does not list, or it is damaged."""


def _unreadable(path: str, error: BaseException) -> UnreadableFile | None:
    """What keeps a file from being read, where that says nothing about its content."""
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path}: permission is denied; make it a file that can be read")
    of_the_system = isinstance(error, OSError) and error.errno is not None
    if of_the_system or "AWS Error" in str(error):  # of the disk or of the way there, and not of the file
        return UnreadableFile(f"{path}: cannot be read ({one_line(error)})")
    return None


def _tail(file: pa.NativeFile) -> bytes:
    """The end of a Parquet file, with all of its footer and what is written about that."""
    size = file.size()
    tail: bytes = file.read_at(min(size, TAIL), max(0, size - TAIL))
    if (length := tail_length(tail)) > len(tail):
        tail = file.read_at(min(size, length), max(0, size - length))
    return tail


def _groups_with(metadata: pq.FileMetaData, only: Sequence[str] | None) -> list[int]:
    """The groups of rows that some runs may be in, or all: what is in a group is between the ids that it says."""
    groups = list(range(metadata.num_row_groups))
    if only is None:
        return groups
    column = metadata.schema.names.index("run_id")
    wanted = sorted(only)

    def may_have_one(group: int) -> bool:
        bounds = metadata.row_group(group).column(column).statistics
        if bounds is None or not bounds.has_min_max:
            return True
        at = bisect_left(wanted, bounds.min)
        return at < len(wanted) and wanted[at] <= bounds.max

    return [group for group in groups if may_have_one(group)]


def in_order(table: pa.Table) -> pa.Table:
    """The rows by run id, and those of a run in the order in which they are."""
    ids = table["run_id"].combine_chunks() if table.num_rows else table["run_id"]
    if table.num_rows < 2 or pc.all(pc.less_equal(ids[:-1], ids[1:])).as_py():
        return table
    return table.take(pc.sort_indices(ids))
