"""Parts: the Parquet files of a store. A part in `runs` names the files of other tables that belong to its runs.

docs/architecture.md specifies them.
"""

from __future__ import annotations

import calendar
import contextlib
import hashlib
import json
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clops_sweep.errors import DamagedStore, OtherFormat, UnreadableFile, UsageError, one_line
from clops_sweep.experiment.columns import DEFAULTS
from clops_sweep.store.files import Files
from clops_sweep.store.tables import SCHEMAS, TableName

Status = Literal["finished", "failed"]

FORMAT = 4
"""Version of the format of parts."""

_KEY = b"clops_sweep"
_NAME = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}-\d{6}-([0-9a-f]{16})\.parquet")
_ROWS_PER_GROUP = 2**14

_FILLED = {name: value for name, value in DEFAULTS.items() if value is not None and name in SCHEMAS["runs"].names}


class Stems:
    """Makes the beginnings of the names of parts: time, launch and number. All files of a flush share one."""

    def __init__(self, launch: str) -> None:
        self._launch, self._number = launch, 0

    def next(self) -> str:
        """Return the next one."""
        self._number += 1
        return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{self._launch}-{self._number:06d}"


@dataclass(frozen=True, eq=False)
class Part:
    """A part of `runs`.

    Attributes:
        name: name of its file.
        statuses: status of each run in it.
        files: names of the files with its runs' rows in the other tables.
        predicted: runs of it that have predictions.
        replaces: names of earlier parts of `runs`, whose rows it contains where they were not deleted.
        schema: its columns.
    """

    name: str
    statuses: Mapping[str, Status]
    files: Mapping[TableName, tuple[str, ...]]
    predicted: frozenset[str]
    replaces: tuple[str, ...]
    schema: pa.Schema

    @property
    def finished(self) -> set[str]:
        """The finished runs, which alone have rows in other tables."""
        return {run_id for run_id, status in self.statuses.items() if status == "finished"}


def is_name(name: str) -> bool:
    """Return whether a file has the name of a part."""
    return _NAME.fullmatch(name) is not None


def written_at(name: str) -> float:
    """Return when a part was written, in seconds since 1970."""
    return calendar.timegm(time.strptime(name[:15], "%Y%m%dT%H%M%S"))


def encoded(table: pa.Table, facts: Mapping[str, Any] | None = None) -> pa.Buffer:
    """Return a table as the bytes of a Parquet file.

    Args:
        table: the rows.
        facts: `files`, `predicted` and `replaces` of a part of `runs`.
    """
    if facts is not None:
        table = table.replace_schema_metadata({_KEY: json.dumps({"format": FORMAT, **facts}).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=_ROWS_PER_GROUP)
    return sink.getvalue()


def named(stem: str, content: pa.Buffer) -> str:
    """Return the name of a part, which ends with a digest of its bytes."""
    return f"{stem}-{_digest(content)}.parquet"


def _digest(content: pa.Buffer) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def damage(path: str, what: str) -> DamagedStore:
    """Return the error of a damaged part."""
    return DamagedStore(f"{path}: {what}; a launch sets it aside and computes the requested runs in it again")


def unreadable(path: str, error: BaseException) -> UsageError:
    """Return the error of a file that cannot be read, or whose content is damaged."""
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path}: permission is denied; make it a file that can be read")
    if (isinstance(error, OSError) and error.errno is not None) or "AWS Error" in str(error):
        return UnreadableFile(f"{path}: cannot be read ({one_line(error)})")
    return damage(path, f"not a whole Parquet file ({one_line(error)})")


def read_verified(files: Files, path: str) -> pa.Buffer:
    """Return the bytes of a part whose name matches them.

    Raises:
        FileNotFoundError: it is gone.
        DamagedStore: its bytes are not those that were written.
    """
    try:
        content = files.read(path)
    except FileNotFoundError:
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise unreadable(path, error) from None
    match = _NAME.fullmatch(path.rpartition("/")[2])
    if match is None or match[1] != _digest(content):
        raise damage(path, "its bytes are not those that were written there")
    return content


def decoded(path: str, content: pa.Buffer) -> Part:
    """Return the part that a file of `runs` describes.

    Raises:
        DamagedStore: it is no part.
        OtherFormat: a newer version of clops-sweep wrote it.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
            schema = file.schema_arrow
            facts = json.loads((schema.metadata or {})[_KEY])
            if facts["format"] > FORMAT:
                raise OtherFormat(
                    f"{path}: written by a newer version of clops-sweep (format {facts['format']}; this one reads "
                    f"format {FORMAT}); install that version"
                )
            rows = file.read(["run_id", "status"], use_threads=False).to_pydict()
        listed = {table: tuple(names) for table, names in facts["files"].items() if table in SCHEMAS}
        if not all(is_name(name) for names in (*listed.values(), facts["replaces"]) for name in names):
            raise ValueError("it lists a file that is no part")  # so that no name leads out of the store
        return Part(
            path.rpartition("/")[2],
            dict(zip(rows["run_id"], rows["status"], strict=True)),
            listed,
            frozenset(facts["predicted"]),
            tuple(facts["replaces"]),
            schema.remove_metadata(),
        )
    except UsageError:
        raise
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(path, error) from None


def union(table: TableName, schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of a table with all columns of plug-ins, by name. Integers and floats become floats."""
    own = SCHEMAS[table]
    own_names = frozenset(own.names)  # pyarrow makes a new list of them at each call
    added = []
    for schema in schemas:
        of_plugins = [field for field in schema if field.name not in own_names]
        added.append(pa.schema(of_plugins))
    fields = pa.unify_schemas(added, promote_options="permissive") if added else pa.schema([])
    return pa.schema([*own, *sorted(fields, key=lambda field: _by_number(field.name))])


def _by_number(name: str) -> tuple[str, int]:
    """Sort the columns of outputs, such as `probability_10`, by number."""
    text, _, number = name.rpartition("_")
    return (text, int(number)) if text and number.isdecimal() else (name, -1)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the given columns; missing ones are null, or a config field's default."""
    if table.schema.equals(schema):
        return table
    there = dict(zip(table.column_names, table.columns, strict=True))
    columns = []
    for field in schema:
        column = there.get(field.name)
        if column is None:
            column = _filled(field, table.num_rows)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)


def _filled(field: pa.Field, rows: int) -> pa.Array:
    """Return a column of a version that did not have it."""
    value = _FILLED.get(field.name)
    if value is None:
        return pa.nulls(rows, field.type)
    return pa.repeat(pa.scalar(value, field.type), rows)


def rows_of(table: pa.Table, run_ids: Collection[str] | None) -> pa.Table:
    """Return the rows of some runs, or of all."""
    if run_ids is None:
        return table
    import pyarrow.compute as pc  # takes longer than all else that listing a store needs

    return table.filter(pc.is_in(table["run_id"], _texts(sorted(run_ids))))


def empty(schema: pa.Schema) -> pa.Table:
    """Return a table without rows. `schema.empty_table` would import pandas, as `pa.array` does, which is slow."""
    return pa.Table.from_batches([], schema)


def _texts(values: Sequence[str]) -> pa.Array:
    """Return texts as an array. `pa.array` would import pandas, which is slow."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def read_rows(
    files: Files, path: str, schema: pa.Schema, columns: Sequence[str], run_ids: Collection[str] | None
) -> pa.Table:
    """Return columns of a verified file, of some runs or of all.

    Raises:
        FileNotFoundError: it is gone.
        DamagedStore: it is not a Parquet file with a column `run_id`.
    """
    wanted = schema if list(columns) == schema.names else pa.schema([schema.field(name) for name in columns])
    try:
        # A thread of Arrow that frees a buffer while Python exits aborts the process: none for small files.
        with files.system.open_input_file(path) as source, pq.ParquetFile(source, pre_buffer=not files.local) as file:
            groups, large = _groups(file.metadata, run_ids), file.metadata.num_rows > _ROWS_PER_GROUP
            names = list({*columns, "run_id"} & set(file.schema_arrow.names))
            read = file.read_row_groups(groups, names, use_threads=large) if groups else empty(wanted)
        return conform(rows_of(read, run_ids) if groups else read, wanted)
    except FileNotFoundError:
        raise FileNotFoundError(path) from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise unreadable(path, error) from None


def _groups(metadata: pq.FileMetaData, run_ids: Collection[str] | None) -> list[int]:
    """Return the row groups that may contain some runs, by the least and greatest id of each group."""
    if run_ids is None:
        return list(range(metadata.num_row_groups))
    at = metadata.schema.names.index("run_id")
    groups = []
    for group in range(metadata.num_row_groups):
        bounds = metadata.row_group(group).column(at).statistics
        known = bounds is not None and bounds.has_min_max
        if not known or any(bounds.min <= run_id <= bounds.max for run_id in run_ids):
            groups.append(group)
    return groups


def sorted_by_key(table: pa.Table) -> pa.Table:
    """Return the rows sorted by run id; rows of one run keep their order."""
    if table.num_rows < 2:
        return table
    import pyarrow.compute as pc  # as above

    ids = table["run_id"].combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks)
    return table if pc.all(pc.less_equal(ids[:-1], ids[1:])).as_py() else table.take(pc.sort_indices(ids))


class Verified:
    """Remembers, beside the logs, which files were read and matched their names, until they change.

    Args:
        files: the files of the store.
        path: the local file of marks.
    """

    def __init__(self, files: Files, path: Any) -> None:
        self._files, self._path = files, path
        self._marks: dict[str, Any] | None = None
        self._added = False

    def check(self, path: str) -> None:
        """Check a part that was not checked before, or has changed since.

        Raises:
            FileNotFoundError: it is gone.
            DamagedStore: its bytes are not those that were written.
        """
        if self._marks is None:
            from clops_sweep.data.files.regular_files import read_json

            self._marks = {}
            with contextlib.suppress(OSError, ValueError):
                marks = read_json(self._path, 2**28)
                self._marks = marks if isinstance(marks, dict) else {}
        mark, name = self._files.mark(path), path[len(self._files.root) :]
        if mark is None:
            raise FileNotFoundError(path)
        if self._marks.get(name) != mark:
            read_verified(self._files, path)
            self._marks[name] = mark
            self._added = True

    def keep(self) -> None:
        """Save the marks; if they cannot be written, the next process reads the files again."""
        if self._added and self._path.parent.is_dir():
            from clops_sweep.data.files.folder import write_file

            with contextlib.suppress(OSError):
                write_file(self._path, json.dumps(self._marks).encode())
            self._added = False


def files_of(part: Part, table: TableName) -> tuple[str, ...]:
    """Return the names of the files with a part's rows in a table."""
    return (part.name,) if table == "runs" else part.files.get(table, ())


def statuses_in(parts: Iterable[Part]) -> dict[str, Status]:
    """Return the status of each run: finished if one of its parts says so."""
    statuses: dict[str, Status] = {}
    for part in parts:
        before = {run_id: statuses[run_id] for run_id in statuses.keys() & part.statuses.keys()}
        statuses |= part.statuses
        statuses |= {run_id: status for run_id, status in before.items() if status == "finished"}
    return statuses


def owners_of(parts: Iterable[Part]) -> dict[str, Part]:
    """Return the part to read each run from: a finished one rather than a failed one, then one with predictions.

    Among equals it is the newest.
    """
    owners: dict[str, Part] = {}
    for part in parts:
        for run_id in part.statuses:
            if run_id not in owners or _rank(part, run_id) >= _rank(owners[run_id], run_id):
                owners[run_id] = part
    return owners


def _rank(part: Part, run_id: str) -> tuple[bool, bool]:
    return part.statuses[run_id] == "finished", run_id in part.predicted
