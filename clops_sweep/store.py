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
from clops_sweep.tables import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["finished", "failed"]
TableName = Literal["runs", "r_matrix", "curves", "instances"]

_VANISHED = 100
"""How often a table is listed anew because a part has gone: a failure that a retry has just made good."""


class RunStore:
    """`runs`, `r_matrix`, `curves` and `instances` under one folder, each a folder of Parquet parts.

    Every run has a part of its own in each table, named after its status and id. A part appears under its final
    name whole or not at all, and the part in `runs` appears last: a run is finished exactly when that part is there.
    Writing the same run twice therefore leaves one copy, and nothing a killed process leaves behind is ever read.

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
        """Run id to status, from the names of the parts alone: nothing is opened."""
        found: dict[str, Status] = {}
        for name in self._parts("runs"):
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

    def rows(self, table: TableName, columns: list[str]) -> list[dict[str, Any]]:
        """Some columns of a table as plain rows, without pandas.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
        """
        found: list[dict[str, Any]] = self._load(table, None, columns).to_pylist()
        return found

    def _load(self, table: TableName, run_ids: list[str] | None, columns: list[str] | None = None) -> pa.Table:
        schema, wanted = SCHEMAS[table], None if run_ids is None else set(run_ids)
        attempts = 0
        while True:
            parts = self._parts(table)
            names = [name for name in parts if wanted is None or _run_id(name) in wanted]
            if not names:
                return schema.empty_table().select(columns or schema.names)
            paths = [f"{self.folder(table)}/{name}" for name in names]
            try:
                return ds.dataset(paths, schema=schema, format="parquet", filesystem=self._fs).to_table(columns=columns)
            except (pa.ArrowInvalid, OSError) as error:
                attempts += 1
                if isinstance(error, FileNotFoundError) and attempts < _VANISHED:
                    continue
                damaged = self._damaged(table, names) or self.folder(table)
                raise DamagedStore(f"{damaged}: not a whole Parquet file ({_reason(error)})") from None

    def write_finished(self, run_id: str, tables: Mapping[TableName, pa.Table]) -> None:
        """Records a finished run. The part in `runs` comes last and makes it count."""
        for table in ("r_matrix", "curves", "instances", "runs"):
            self._write_part(table, f"finished-{run_id}.parquet", tables[table])
        self._delete(f"{self.folder('runs')}/failed-{run_id}.parquet")

    def write_failed(self, run_id: str, row: pa.Table) -> None:
        """Records a failed run, unless it has been finished meanwhile."""
        if self._exists(f"{self.folder('runs')}/finished-{run_id}.parquet"):
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
        except BaseException:
            self._delete(temporary)
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

    def _damaged(self, table: TableName, names: list[str]) -> str | None:
        for name in names:
            path = f"{self.folder(table)}/{name}"
            try:
                pq.ParquetFile(path, filesystem=self._fs).read()
            except (pa.ArrowInvalid, OSError):
                return path
        return None

    def _exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(path).type == arrow_fs.FileType.File)

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process may have been faster
            self._fs.delete_file(path)


def _run_id(part: str) -> str:
    return part.removesuffix(".parquet").rpartition("-")[2]


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())
