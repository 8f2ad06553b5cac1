"""The Parquet parts of a table: listing, reading, writing and verifying them."""

from __future__ import annotations

import math
import shlex
import time
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
"""Rows per row group of a compacted part, the unit of reading. More groups enlarge the footer."""

_MANY_ROWS = 10_000

_SECONDS_APART, _PAUSES_PER_LOOK = 0.2, 100

TABLES_AT_A_TIME = 500
"""Number of tables to read before they are concatenated: small Arrow tables take much memory each."""


class PartFolder:
    """The parts of one table.

    Args:
        files: the files of the store.
        folder: the table's folder.
        schema: the table's columns; columns missing from a part are read as nulls ...
        defaults: ... or as these values.
        renamed: name in earlier versions to today's name of a column.

    Attributes:
        convert: converts rows of version 0.2 when they are rewritten; None to refuse them.
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
        self._next_look, self._compacted_lately = -math.inf, frozenset[str]()
        self.convert: Callable[[pa.Table], pa.Table] | None = None

    def with_own_columns(self) -> PartFolder:
        """Return the folder with the columns that strategies have added so far, after those of the table.

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
                f"{shlex.quote(self.files.anywhere)}` rebuilds it from the parts"
            ) from None
        self._set_own_columns(self._not_own(found))
        return self

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Add columns to the table's own. A column with integers and floats becomes float.

        pandas takes the columns of a folder from its first file. So a file without rows, which has all columns, sorts
        first.

        Raises:
            UnlistedColumns: the file that lists them is damaged.
        """
        if all(field.name in self._added and self._added[field.name] == field for field in fields):
            return  # this object has already read or written them
        known = pa.schema(list(self.with_own_columns().schema)[len(self._own) :])
        union = pa.unify_schemas([known, pa.schema(fields)], promote_options="permissive")
        if not union.equals(known):
            self._write_own_columns(union)

    def rename_columns(self) -> None:
        """Rewrite the file that lists added columns if it uses names of version 0.2."""
        if self._added:
            self._write_own_columns(pa.schema(list(self._added.values())))

    def list_columns_anew(self) -> None:
        """Rebuild the file that lists added columns from the parts.

        Raises:
            DamagedStore: a part is damaged.
        """
        listing = self.listing()
        schemas = self.files.for_each(self._columns_of, (*listing.singles, *listing.compacts))
        added = [pa.schema(self._not_own(it)) for it in schemas]
        self._write_own_columns(pa.unify_schemas(added, promote_options="permissive"))

    def _not_own(self, fields: Iterable[pa.Field]) -> list[pa.Field]:
        """Return the fields of a file that are not columns of the table, under today's name or an earlier one."""
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
        """Return the path of a part in the file system of the store."""
        return f"{self.folder}/{part.name}"

    def _place(self, name: str) -> str:
        """Return table and name of a file, which its seal covers: a misplaced copy is detected."""
        return f"{self.folder.rpartition('/')[2]}/{name}"

    def listing(self, *, only_compacted: bool = False) -> Listing:
        """List the parts, complete even while another process compacts them.

        A folder may change while it is listed. The runs of a part that was deleted meanwhile are in a compacted part
        that appeared earlier; if it was missed, the next listing shows it. So the first of two listings with the same
        compacted parts is complete.
        """
        beginning = COMPACT if only_compacted else ""
        listing = self._listed_once(beginning)
        while (again := self._listed_once(beginning)).compacts != listing.compacts:
            listing = again
        return listing

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each part, by name."""
        return self.files.sizes(self.folder)

    def finished(self) -> set[str]:
        """Return the finished runs in this table."""
        return self.finished_in(self.listing())

    def has_finished(self, run_ids: Sequence[str], *, certainly: bool = True, lately: bool = False) -> set[str]:
        """Return which of some runs are finished in this table.

        Args:
            run_ids: the runs.
            certainly: whether to find runs that are being compacted at this moment. In an object store, it doubles the
                number of requests.
            lately: whether runs may be overlooked that were compacted a moment ago, so that the folder is listed for
                1 % of the time: many processes may share it.
        """
        if not self.files.local:  # one listing covers all of them and the compacted parts
            listing = self.listing() if certainly else self._listed_once("")
            self._failures = {part.run_id for part in listing.singles if part.status == "failed"}
            return set(run_ids) & self.finished_in(listing)
        parts = [single("finished", run_id) for run_id in run_ids]
        missing = {str(part.run_id) for part in parts if not self.files.exists(self.path(part))}
        if missing:  # a part that has disappeared is in a compacted part by now
            missing -= self._compacted_runs_lately() if lately else self._compacted_runs()
        return set(run_ids) - missing

    def _compacted_runs(self) -> frozenset[str]:
        return frozenset().union(*map(self.ids, self.listing(only_compacted=True).compacts))

    def _compacted_runs_lately(self) -> frozenset[str]:
        began = time.monotonic()
        if began >= self._next_look:
            self._compacted_lately = self._compacted_runs()
            ended = time.monotonic()
            self._next_look = ended + max(_SECONDS_APART, _PAUSES_PER_LOOK * (ended - began))
        return self._compacted_lately

    def finished_in(self, listing: Listing) -> set[str]:
        """Return the finished runs in a listing, including those in its compacted parts."""
        found = {str(part.run_id) for part in listing.finished}
        return found.union(*self.files.for_each(self.ids, listing.compacts))

    def ids(self, part: Part) -> frozenset[str]:
        """Return the runs in a part. A compacted part is opened once, since its name depends on its runs alone.

        Raises:
            FileNotFoundError: the part no longer exists.
            DamagedStore: the part cannot be read, or its name does not match the runs that it lists.
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
        """Select the parts to read so that every finished run is read once.

        Returns:
            Parts of single runs, and compacted parts, each with the runs to skip in it.
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
            part: the part.
            columns: the columns to read; None for all, including columns that the schema lacks (an error).
            only: the runs to read; None for all.
            without: runs to leave out.

        Raises:
            FileNotFoundError: the part no longer exists.
            DamagedStore: the part is damaged or belongs to another table.
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
        """Return the rows of a part to rewrite, with all columns.

        Raises:
            OtherFormat: the part was written by version 0.2, and only `clops-sweep migrate` may rewrite it.
            UnlistedColumns: the schema lacks a column: the file that lists added columns is gone, or a newer version of
                clops-sweep wrote the part.
        """
        if format_version < FORMAT:
            if self.convert is None:
                raise OtherFormat(f"{self.path(part)}: {self.from_0_2}")
            table = self.convert(table)
        self._check_listed(part, table.column_names)
        return table

    def check_columns(self, part: Part) -> None:
        """Check that the schema has all columns of a part, as readers leave out others.

        Raises:
            FileNotFoundError: the part no longer exists.
            UnlistedColumns: the schema lacks a column: the part was copied from another store, for example.
        """
        self._check_listed(part, self._columns_of(part).names)

    def _check_listed(self, part: Part, names: Iterable[str]) -> None:
        if unlisted := sorted({*names} - {*self.schema.names, *self._renamed}):
            raise UnlistedColumns(
                f"{self.path(part)}: has columns that {_ALL_COLUMNS} does not list ({shown(unlisted)}); `clops-sweep "
                "compact` lists them"
            )

    @property
    def from_0_2(self) -> str:
        """Return advice on parts of version 0.2, for error messages."""
        store = self.files.anywhere
        return (
            f"written by clops-sweep 0.2, whose run ids differ; `clops-sweep migrate {shlex.quote(store)}` converts "
            "the store and keeps every number"
        )

    def format_of(self, part: Part) -> int:
        """Return the format version of a part.

        Raises:
            FileNotFoundError: the part no longer exists.
            OtherFormat: a newer version of clops-sweep wrote it.
            DamagedStore: it is not a complete Parquet file.
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
        """Open a part, verify its footer, and yield it with its format version.

        A part of one run is read and verified completely, and so is a part without a digest of its footer.

        Raises:
            ArrowInvalid: the part is damaged.
            OtherFormat: a newer version of clops-sweep wrote it.
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
        yield _parquet_of(content), self._format_of(part, content)

    @contextmanager
    def _reading(self, part: Part) -> Iterator[None]:
        """Convert the errors that a damaged part causes to `DamagedStore`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
            raise self._damaged(part, error) from None

    def write_single(self, part: Part, content: pa.Table) -> None:
        """Write the part of one run.

        Short columns are written plainly: dictionaries and statistics would take most of the file and of the time to
        read it.
        """
        content = self._conform(content, None)
        options = {
            "compression": "none" if content.num_rows < 2 else "zstd",
            "use_dictionary": content.num_rows >= _MANY_ROWS,
            "write_statistics": False,
        }
        self._write(part, [content], options)

    def write_compacted(self, part: Part, content: pa.Table, run_ids: Iterable[str]) -> None:
        """Write a part of many runs, sorted by id, so that some of them can be read without the rest."""
        self.write_portions(part, [in_order(content)], run_ids)

    def write_portions(
        self, part: Part, portions: Iterable[pa.Table], run_ids: Iterable[str], *, staged: str | None = None
    ) -> None:
        """Write a part of many runs from tables sorted by id, with one table in memory at a time.

        Args:
            part: the part to write.
            portions: its rows.
            run_ids: its runs.
            staged: path to write to instead; the caller moves the file into the table later.
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
        """Write a part with a checksum per page, sealed with a digest of all its bytes."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self.schema, write_page_checksum=True, **options) as writer:
            for table in portions:
                writer.write_table(self._conform(table, None), row_group_size=_ROWS_PER_GROUP)
            writer.add_key_value_metadata({**(metadata or {}), _FORMAT: FORMAT_MARK, _DIGEST: UNSEALED})
        self.files.write(staged or self.path(part), sealed(sink.getvalue(), self._place(part.name)))

    def verify(self, part: Part, staged: str | None = None) -> None:
        """Read a part completely and check that all its bytes and the runs of its rows are as written.

        Args:
            part: the part.
            staged: path of the part before it is moved into the table.

        Raises:
            FileNotFoundError: the part no longer exists.
            DamagedStore: the part is damaged.
        """
        with self._reading(part):
            content = self.files.read(staged or self.path(part))
            check_seal(content, self._place(part.name))
            self._format_of(part, content)
            if part.run_id is not None:
                return
            found = _parquet_of(content).read(["run_id"], use_threads=False)["run_id"].unique().to_pylist()
        if len(found) != part.runs or compacted(found) != part:
            raise self._damaged(part, ValueError("its rows are not of the runs that it is said to hold"))

    def delete(self, parts: Iterable[Part]) -> None:
        """Delete parts; missing ones are ignored."""
        self.files.delete(self.path(part) for part in parts)

    def delete_failure(self, run_id: str) -> None:
        """Delete the failure of a run that has finished. In an object store, only if the last listing showed it.

        A failure that appeared since then is deleted by the next compaction.
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
        """Return the names of some columns in parts of any version; Parquet readers skip missing ones."""
        return [*columns, *(old for old, name in self._renamed.items() if name in columns)]

    def _conform(self, table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        """Return the table with the columns, order and types of the schema."""
        schema = self.schema if columns is None else self._selected(tuple(columns))
        if table.schema.equals(schema):
            return table
        if not self._renamed.keys().isdisjoint(table.column_names):
            table = table.rename_columns([self._renamed.get(name, name) for name in table.column_names])
        have = set(table.column_names)
        for field in schema:
            if field.name not in have:  # added since the part was written
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
                "depend on other fields; pandas still reads them, but new runs need another --results"
            )

    def _damaged(self, part: Part, error: BaseException) -> UsageError:
        return _unreadable(self.path(part), error) or DamagedStore(
            f"{self.path(part)}: not a whole Parquet file ({one_line(error)}); a launch sets it aside and computes "
            "the requested runs in it again"
        )


class UnlistedColumns(DamagedStore):
    """The file `all-columns.parquet` of a table is damaged or does not list all columns of its parts."""


def _unreadable(path: str, error: BaseException) -> UnreadableFile | None:
    """Return an error about access to a file; None if the error is about its content."""
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path}: permission is denied; make it a file that can be read")
    of_the_system = isinstance(error, OSError) and error.errno is not None
    if of_the_system or "AWS Error" in str(error):  # an error of the disk or the network, not of the file's content
        return UnreadableFile(f"{path}: cannot be read ({one_line(error)})")
    return None


def _tail(file: pa.NativeFile) -> bytes:
    """Return the end of a Parquet file, including the whole footer and its digest."""
    size = file.size()
    tail: bytes = file.read_at(min(size, TAIL), max(0, size - TAIL))
    if (length := tail_length(tail)) > len(tail):
        tail = file.read_at(min(size, length), max(0, size - length))
    return tail


def _parquet_of(content: pa.Buffer) -> pq.ParquetFile:
    """Open a Parquet file that is in memory."""
    # With pre_buffer, a thread of Arrow can free the buffer while Python exits, which aborts the process.
    return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)


def _groups_with(metadata: pq.FileMetaData, only: Sequence[str] | None) -> list[int]:
    """Return the row groups that may contain some runs, by the minimum and maximum id of each group; or all."""
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
    """Return the rows sorted by run id; rows of one run keep their order."""
    ids = table["run_id"].combine_chunks() if table.num_rows else table["run_id"]
    if table.num_rows < 2 or pc.all(pc.less_equal(ids[:-1], ids[1:])).as_py():
        return table
    return table.take(pc.sort_indices(ids))
