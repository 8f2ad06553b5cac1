"""RunStore: the truth about what has been computed. Four Parquet data sets, written by the workers."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from clops_sweep.errors import BadInput, DamagedStore
from clops_sweep.tables import SCHEMAS, TableName

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["finished", "failed"]

_COMPACT = "compact-"

_VANISHED = 100
"""How often a table is listed anew because a part has gone: a failure made good just now, or parts put together."""


class RunStore:
    """`runs`, `r_matrix`, `curves` and `instances` under one folder, each a folder of Parquet parts.

    Every run has a part of its own in each table, named after its status and id, until `compact` puts the finished ones
    of many runs into one part. A part appears under its final name whole or not at all, and the part in `runs` appears
    last: a run is finished exactly when it is in there. Writing the same run twice therefore leaves one copy, and
    nothing a killed process leaves behind is ever read.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).

    Raises:
        BadInput: the place cannot be used as a store.
    """

    def __init__(self, root: str | Path) -> None:
        self.uri = str(root)
        try:
            if "://" in self.uri:
                self._fs, self._root = arrow_fs.FileSystem.from_uri(self.uri)
            else:
                self.uri = str(Path(root).expanduser().resolve())
                self._fs, self._root = arrow_fs.LocalFileSystem(), self.uri
        except (OSError, ValueError) as error:
            raise BadInput(f"results {self.uri!r}: {' '.join(str(error).split())}") from None
        self._local = isinstance(self._fs, arrow_fs.LocalFileSystem)
        self._compacted: dict[str, frozenset[str]] = {}

    def folder(self, table: TableName) -> str:
        """Where the parts of a table lie, inside the store's file system."""
        return f"{self._root}/{table}"

    def open_for_writing(self) -> None:
        """Makes the folders, so that a place that cannot be written to is known before any worker starts."""
        try:
            for table in SCHEMAS:
                self._fs.create_dir(f"{self._root}/{table}", recursive=True)
            probe = f"{self._root}/runs/.probe-{uuid.uuid4().hex}"
            self._write(probe, b"")
            self._fs.delete_file(probe)
        except OSError as error:
            raise BadInput(f"results {self.uri}: cannot be written to ({_reason(error)})") from None

    def statuses(self) -> dict[str, Status]:
        """Run id to status, from the names of the parts; only those that hold many runs are opened."""
        found: dict[str, Status] = {}
        for name in self._parts("runs"):
            if name.startswith(_COMPACT):
                found |= dict.fromkeys(self._ids_in("runs", name), "finished")
                continue
            status, _, run_id = name.removesuffix(".parquet").partition("-")
            if status == "finished":
                found[run_id] = "finished"
            elif status == "failed":
                found.setdefault(run_id, "failed")
        return found

    def read(self, table: TableName, run_ids: list[str] | None = None) -> pd.DataFrame:
        """A table as a DataFrame, of all runs or of some. Empty, with its columns, where there is none yet.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
        """
        frame: pd.DataFrame = self._load(table, run_ids).to_pandas()
        if table == "runs":  # a failure that a later attempt made good
            finished = frame.loc[frame["status"] == "finished", "run_id"]
            frame = frame[(frame["status"] == "finished") | ~frame["run_id"].isin(finished)]
        return frame.reset_index(drop=True)

    def rows(self, table: TableName, columns: list[str] | None) -> list[dict[str, Any]]:
        """Some columns of a table, or all, as plain rows, without pandas.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
        """
        found: list[dict[str, Any]] = self._load(table, None, columns).to_pylist()
        return found

    def _load(self, table: TableName, run_ids: list[str] | None, columns: list[str] | None = None) -> pa.Table:
        schema = SCHEMAS[table]
        columns = columns or schema.names
        attempts = 0
        while True:
            try:
                names, compact = self._current(table)
                if run_ids is not None:
                    names = [name for name in names if _run_id(name) in run_ids]
                if not names and not compact:
                    return schema.empty_table().select(columns)
                paths = [f"{self.folder(table)}/{name}" for name in (*names, *compact)]
                dataset = ds.dataset(paths, schema=schema, format="parquet", filesystem=self._fs)
                wanted = None if run_ids is None else ds.field("run_id").isin(list(run_ids))
                return dataset.to_table(columns=columns, filter=wanted)
            except (pa.ArrowInvalid, OSError) as error:
                attempts += 1
                if isinstance(error, FileNotFoundError) and attempts < _VANISHED:
                    continue
                damaged = self._damaged(table) or self.folder(table)
                raise DamagedStore(f"{damaged}: not a whole Parquet file ({_reason(error)})") from None

    def _current(self, table: TableName) -> tuple[list[str], list[str]]:
        """The parts of single runs, and those of many. A part that is in one of the latter already does not count."""
        parts = self._parts(table)
        compact = [name for name in parts if name.startswith(_COMPACT)]
        inside = frozenset[str]().union(*(self._ids_in(table, name) for name in compact))
        return [name for name in parts if not name.startswith(_COMPACT) and _run_id(name) not in inside], compact

    def _ids_in(self, table: TableName, name: str) -> frozenset[str]:
        """The runs in a compacted part, which never changes."""
        path = f"{self.folder(table)}/{name}"
        if path not in self._compacted:
            column = pq.read_table(path, columns=["run_id"], filesystem=self._fs).column("run_id")
            self._compacted[path] = frozenset(column.unique().to_pylist())
        return self._compacted[path]

    def compact(self, runs_per_part: int = 1000) -> int:
        """Puts the parts of finished runs together, many into one. May be called while a sweep runs.

        A compacted part appears before the parts that went into it are deleted, so nothing is ever missing; whoever
        lists a folder in between without this class sees a run twice for that moment. Killed half way, the next call
        takes up what is left. Only one process at a time should compact a store.

        Returns:
            How many parts have been put together.
        """
        merged = 0
        for table in SCHEMAS:
            compact = [name for name in self._parts(table) if name.startswith(_COMPACT)]
            inside = frozenset[str]().union(*(self._ids_in(table, name) for name in compact))
            singles = [name for name in self._parts(table) if name.startswith("finished-")]
            for name in singles:
                if _run_id(name) in inside:
                    self._delete(f"{self.folder(table)}/{name}")
            left = [name for name in singles if _run_id(name) not in inside]
            for start in range(0, len(left), runs_per_part):
                chunk = left[start : start + runs_per_part]
                if len(chunk) > 1:
                    content = self._load(table, [_run_id(name) for name in chunk])
                    self._write_part(table, f"{_COMPACT}{uuid.uuid4().hex}.parquet", content)
                    for name in chunk:
                        self._delete(f"{self.folder(table)}/{name}")
                    merged += len(chunk)
        return merged

    def find(self, prefix: str) -> str:
        """The id of the one run, finished or failed, whose id begins with `prefix`.

        Raises:
            BadInput: there is none, or more than one.
        """
        matches = [run_id for run_id in self.statuses() if run_id.startswith(prefix)] if prefix else []
        if len(matches) != 1:
            what = "no run" if not matches else f"{len(matches)} runs"
            raise BadInput(f"run {prefix!r}: {what} of {self.uri} begins like that; expected the beginning of one id")
        return matches[0]

    def write_finished(self, run_id: str, tables: Mapping[TableName, pa.Table]) -> None:
        """Records a finished run, unless it is finished already. The part in `runs` comes last and makes it count."""
        if self.statuses().get(run_id) == "finished":
            return
        for table in ("r_matrix", "curves", "instances", "runs"):
            self._write_part(table, f"finished-{run_id}.parquet", tables[table])
        self._delete(f"{self.folder('runs')}/failed-{run_id}.parquet")

    def write_failed(self, run_id: str, row: pa.Table) -> None:
        """Records a failed run, unless it has been finished meanwhile."""
        if self.statuses().get(run_id) == "finished":
            return
        self._write_part("runs", f"failed-{run_id}.parquet", row)

    def _write_part(self, table: TableName, name: str, content: pa.Table) -> None:
        path = f"{self.folder(table)}/{name}"
        sink = pa.BufferOutputStream()
        pq.write_table(content.cast(SCHEMAS[table]), sink, compression="zstd")
        self._fs.create_dir(self.folder(table), recursive=True)
        self._write(path, sink.getvalue())

    def _write(self, path: str, content: bytes | pa.Buffer) -> None:
        """Writes a whole file or none. Object stores show an object when it is complete; a folder needs a rename."""
        if not self._local:
            with self._fs.open_output_stream(path) as stream:
                stream.write(content)
            return
        folder, name = os.path.split(path)
        # Names that start with a dot are passed over by every reader of Parquet folders.
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}"
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException as error:
            self._delete(temporary)
            if isinstance(error, OSError):  # a full disk does not say which file it had no room for
                raise OSError(error.errno, error.strerror, path) from None
            raise

    def _parts(self, table: TableName) -> list[str]:
        selector = arrow_fs.FileSelector(self.folder(table), allow_not_found=True)
        try:
            infos = self._fs.get_file_info(selector)
        except OSError as error:
            raise BadInput(f"results {self.uri}: cannot be read ({_reason(error)})") from None
        return sorted(
            info.base_name
            for info in infos
            if info.is_file and info.base_name.endswith(".parquet") and not info.base_name.startswith((".", "_"))
        )

    def _damaged(self, table: TableName) -> str | None:
        for name in self._parts(table):
            path = f"{self.folder(table)}/{name}"
            try:
                pq.ParquetFile(path, filesystem=self._fs).read()
            except FileNotFoundError:
                continue
            except (pa.ArrowInvalid, OSError):
                return path
        return None

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process may have been faster
            self._fs.delete_file(path)


def _run_id(part: str) -> str:
    return part.removesuffix(".parquet").rpartition("-")[2]


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())
