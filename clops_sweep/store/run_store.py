"""RunStore: the results of all runs, as Parquet tables. docs/architecture.md specifies them."""

from __future__ import annotations

import contextlib
import copy
import os
import shlex
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from clops_sweep.data.files.folder import Lock, locked
from clops_sweep.data.files.lock_holder import SECONDS_BEFORE_TOLD, holder_of, say_unlocked, say_waiting
from clops_sweep.errors import UsageError, one_line, shown
from clops_sweep.store.files import Files
from clops_sweep.store.models import KeptModels, ModelFiles
from clops_sweep.store.parts import Status, owners_of, statuses_in
from clops_sweep.store.stored_parts import StoredParts
from clops_sweep.store.tables import EVERY_RUN, TableName
from clops_sweep.store.writing import merge_parts, tidy, write

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

SECONDS_PER_FLUSH = 10.0
"""Most seconds of finished runs that a killed driver may lose."""

_REST = 20.0
"""Rows wait this many times as long as the last flush took, so that a driver flushes for 5 % of its time at most."""

BYTES_PER_FLUSH = 2**26
MANY_PARTS = 32
"""Small parts are merged once there are as many."""

_SECONDS_TO_LOCK = 60.0
_MOST_SHOWN = 60


@dataclass
class _Waiting:
    """Rows that are not written yet, by run, and the checkpoints to delete then."""

    rows: dict[str, Mapping[TableName, pa.Table]] = field(default_factory=dict)
    checkpoints: list[str] = field(default_factory=list)
    since: float = 0.0
    nbytes: int = 0


class RunStore:
    """`runs`, `r_matrix`, `curves`, `instances` and `predictions` under one folder, each a folder of Parquet parts.

    `add` takes the rows of a run, and `flush` writes all added rows as one part per table. The part in `runs` is
    written last and names the others: without it they are never read.

    Attributes:
        uri: the folder, or the URI.
        keep: "predictions", "models" or "models:all": a run counts as finished only if the store also has these.
        files: the file operations of the store.
        models: the stored models.
        parts: the Parquet parts.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).
        keep: see the attribute.

    Raises:
        UsageError: the place cannot be used as a store.
    """

    def __init__(self, root: str | Path, *, keep: Collection[str] = ()) -> None:
        self.files = Files(root)
        self.uri = self.files.uri
        self.keep = frozenset(keep)
        self.models = ModelFiles(self.files)
        self.parts = StoredParts(self.files, self.log_folder / "verified.json")
        self._waiting = _Waiting()
        self._flush_seconds = 0.0

    @classmethod
    def named(cls, root: str, *, keep: Collection[str] = ()) -> Self:
        """Return the store at a path or URI that a user has given.

        Raises:
            UsageError: the place cannot be used as a store, is a folder inside a store, or does not answer.
        """
        store = cls(root, keep=keep)
        store.files.check_answers()
        table = False
        with contextlib.suppress(OSError):
            table = store.files.local and any(Path(store.files.root).glob("*.parquet"))
        if table:
            raise UsageError(
                f"results {root}: holds Parquet files, as a table of a store does; give the store's folder"
            )
        return store

    def at_one_moment(self) -> RunStore:
        """Return the store as it is now, for reading: its parts are listed once, and statuses are computed once.

        A store at one moment returns itself.
        """
        if self.parts.at_one_moment:
            return self
        self.flush()
        reader = copy.copy(self)
        reader._waiting = _Waiting()
        reader.parts = self.parts.frozen()
        return reader

    def keeping(self, keep: str) -> RunStore:
        """Return the store, at the same moment if it has one, in which runs count as finished only if it has more.

        Args:
            keep: "predictions", "models" or "models:all".
        """
        store = copy.copy(self)
        store._waiting = _Waiting()
        store.keep = self.keep | {keep}
        return store

    @property
    def keep_predictions(self) -> bool:
        """Whether runs count as finished only with predictions."""
        return "predictions" in self.keep

    @property
    def keep_models(self) -> KeptModels | None:
        """The models without which runs do not count as finished; None if they need none."""
        if "models:all" in self.keep:
            return "all"
        return "last" if "models" in self.keep else None

    def once(self, what: str, compute: Callable[[], T]) -> T:
        """Return what `compute` returns. A store at one moment computes it at the first call and keeps it.

        Args:
            what: a name of the result, unique among all that is kept.
            compute: reads it from the store.
        """
        return self.parts.once(what, compute)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock, which every process takes that writes or removes parts.

        Object stores are not locked. File systems without locks are not either, which is said on standard error, as is
        a wait of more than a second.

        Raises:
            UsageError: another process has held it for a minute.
        """
        began, is_told = time.monotonic(), False
        lock = self.log_folder / "lock"
        while self.files.local:
            with locked(lock) as holder:
                if holder is Lock.UNSUPPORTED:
                    say_unlocked(lock, f"results {self.files.shown}")
                if holder is not Lock.ELSEWHERE:
                    yield
                    return
            waited = time.monotonic() - began
            if waited > _SECONDS_TO_LOCK:
                other = holder_of(lock) or "another process"
                raise UsageError(
                    f"results {self.files.shown}: {other} is rewriting it and holds {lock}; wait until it has ended"
                )
            if waited > SECONDS_BEFORE_TOLD and not is_told:
                say_waiting(lock, f"results {self.files.shown}")
                is_told = True
            time.sleep(0.05)
        yield

    def folder(self, table: TableName) -> str:
        """Return the folder of a table, in the store's file system."""
        return self.parts.folder(table)

    def command(self, *words: str) -> str:
        """Return a command line for this store, to be run in the current folder."""
        folder = self.files.folder
        if folder is not None:
            with contextlib.suppress(OSError, ValueError):  # the current folder is gone, or the store is elsewhere
                folder = folder.relative_to(Path.cwd())
        results = self.files.shown if folder is None else str(folder)
        return shlex.join(["clops-sweep", *words, *(["--results", results] if results != "results" else [])])

    @property
    def work_folder(self) -> str:
        """The folder of everything that is not a result, in the store's file system."""
        return f"{self.files.root}/.work"

    @property
    def checkpoint_folder(self) -> str:
        """The folder of checkpoints, in the store's file system: every machine finds them there."""
        return f"{self.work_folder}/checkpoints"

    def checkpoint_path(self, run_id: str) -> str:
        """Return the path of the checkpoint of a run."""
        return f"{self.checkpoint_folder}/{run_id}.pt"

    def has_checkpoint(self, run_id: str) -> bool:
        """Return whether a run has a checkpoint; False if unknown."""
        with contextlib.suppress(OSError):
            return self.files.exists(self.checkpoint_path(run_id))
        return False

    def checkpointed(self) -> set[str]:
        """Return the ids of the runs with a checkpoint, from the names of the files; empty if unknown."""
        with contextlib.suppress(OSError, UsageError):
            names = map(PurePosixPath, self.files.names(self.checkpoint_folder))
            return {name.stem for name in names if name.suffix == ".pt"}
        return set()

    @property
    def log_folder(self) -> Path:
        """The folder of logs and locks: in a local store, or else in this user's cache."""
        if self.files.folder is not None:
            return self.files.folder / ".work"
        from platformdirs import user_cache_path

        return user_cache_path("clops-sweep") / "work"

    def is_there(self) -> bool:
        """Return whether the folders that `open_for_writing` made still exist.

        If results were unmounted or removed during a sweep, they must not be recreated on another disk.
        """
        return not self.files.local or os.path.isdir(self.folder("runs"))

    def check_writable(self) -> None:
        """Check that the store can be written to, without leaving anything behind.

        Raises:
            UsageError: it cannot be written to.
        """
        with self._refusing():
            if self.files.local:
                for table in self._needed:
                    folder = self.folder(table)
                    while not os.path.lexists(folder):
                        folder = os.path.dirname(folder)
                    tempfile.TemporaryFile(dir=folder).close()
            else:
                self._probe()

    def open_for_writing(self) -> None:
        """Make the folders of the tables, and remove what a killed process has left behind.

        From now on, failed requests to an object store are retried for longer.

        Raises:
            UsageError: the place cannot be written to.
        """
        with self._refusing():
            for table in self._needed:
                self.files.make_folder(self.folder(table))
            self._probe()
            self.files.retry_longer()
            with self.locked():
                tidy(self.parts)

    def _probe(self) -> None:
        probe = f"{self.folder('runs')}/.probe-{uuid.uuid4().hex}"
        self.files.write(probe, b"")
        self.files.delete([probe])

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or one_line(error)
            raise UsageError(f"results {self.files.shown}: cannot be written to ({why})") from None

    @property
    def _needed(self) -> tuple[TableName, ...]:
        """The tables that must contain a finished run."""
        return (*EVERY_RUN, "predictions") if self.keep_predictions else EVERY_RUN

    def add(self, run_id: str, tables: Mapping[TableName, pa.Table], checkpoint: str | None = None) -> None:
        """Add the rows of a finished or failed run; `flush` writes them, also at the next reading.

        Args:
            run_id: the run.
            tables: its rows by table; of a failed run only those of `runs`.
            checkpoint: path of a checkpoint to delete once the rows are written.
        """
        waiting = self._waiting
        if not waiting.rows:
            waiting.since = time.monotonic()
        waiting.rows[run_id] = tables
        waiting.nbytes += sum(table.nbytes for table in tables.values())
        if checkpoint is not None:
            waiting.checkpoints.append(checkpoint)

    @property
    def waiting_runs(self) -> int:
        """The number of runs whose rows were added and are not written yet."""
        return len(self._waiting.rows)

    def flush_if_due(self) -> None:
        """Write the added rows if the oldest have waited long enough, or they take much memory.

        They wait for 20 times as long as the last flush took, and for ten seconds at most.
        """
        waiting = self._waiting
        if not waiting.rows:
            return
        longest = min(SECONDS_PER_FLUSH, _REST * self._flush_seconds)
        if time.monotonic() - waiting.since >= longest or waiting.nbytes >= BYTES_PER_FLUSH:
            begun = time.monotonic()
            self.flush()
            self._flush_seconds = time.monotonic() - begun

    def flush(self) -> None:
        """Write the added rows: a run that the store has is not written again, a failed one is replaced.

        Raises:
            OSError, UsageError: they cannot be written; the next call tries again.
        """
        waiting = self._waiting
        if not waiting.rows:
            return
        if not self.is_there():
            raise UsageError(f"results {self.files.shown}: the folder has gone")
        with self.locked():
            write(self.parts, waiting.rows)
            self._waiting = _Waiting()
            self.files.delete(waiting.checkpoints)
            if self.files.local:
                merge_parts(self.parts, at_least=MANY_PARTS)

    def statuses(self) -> dict[str, Status]:
        """Return the status of each run. Predictions and models count only if they are to be kept."""
        return self.once(f"statuses with {sorted(self.keep)}", self._statuses_as_kept)

    def _statuses_as_kept(self) -> dict[str, Status]:
        statuses = self._statuses(self.keep_predictions)
        if self.keep_models:
            have = self.models.runs(self.keep_models)
            return {run_id: status for run_id, status in statuses.items() if status == "failed" or run_id in have}
        return statuses

    def without_kept(self) -> set[str]:
        """Return the runs that lack only the predictions or models to keep."""
        if not self.keep:
            return set()
        finished = {run_id for run_id, status in self._statuses(False).items() if status == "finished"}
        return finished - {run_id for run_id, status in self.statuses().items() if status == "finished"}

    def _statuses(self, with_predictions: bool) -> dict[str, Status]:
        self.flush()
        parts = self.parts.once("complete parts", lambda: self.parts.complete(self.parts.live()))
        if not with_predictions:
            return statuses_in(parts)
        owners = owners_of(parts)
        statuses: dict[str, Status] = {}
        for run_id, part in owners.items():
            status = part.statuses[run_id]
            if status == "failed" or run_id in part.predicted:
                statuses[run_id] = status
        return statuses

    def recorded(self) -> dict[str, Status]:
        """Return `statuses` by the table `runs` alone, for frequent checks: one folder is listed."""
        return statuses_in(self.parts.live())

    def predicted(self) -> set[str]:
        """Return the runs with predictions."""
        self.flush()
        return {run_id for run_id, part in owners_of(self.parts.live()).items() if run_id in part.predicted}

    def columns(self) -> list[str]:
        """Return the columns of `runs`, of which later versions and plug-ins have more."""
        return list(self.parts.schema("runs", self.parts.live()).names)

    def read(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Return a table, or some runs or columns of it, as a DataFrame sorted by run id.

        Before the first run it has columns but no rows. A run that was written twice is read once.

        Raises:
            DamagedStore: a part is damaged.
        """
        frame: pd.DataFrame = self.table(table, run_ids, columns).to_pandas()
        return frame

    def rows(
        self, table: TableName, columns: Sequence[str] | None = None, run_ids: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return `read` as a list of dictionaries, without pandas.

        Raises:
            DamagedStore: a part is damaged.
        """
        rows: list[dict[str, Any]] = self.table(table, run_ids, columns).to_pylist()
        return rows

    def table(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pa.Table:
        """Return `read` as an Arrow table.

        Raises:
            DamagedStore: a part is damaged.
            UsageError: a column does not exist, or `run_ids` or `columns` is not text.
        """
        ids, names = _texts("run_ids", run_ids), _texts("columns", columns)
        self.flush()
        return self.parts.rows(table, ids, names)

    def find(self, prefix: str) -> str:
        """Return the id of the one run, finished or failed, whose id begins with `prefix`.

        Raises:
            UsageError: no run or more than one has such an id.
        """
        if not isinstance(prefix, str):
            raise UsageError(f"run {shown(prefix)}: expected the beginning of a run id, as text")
        matches = [run_id for run_id in self.statuses() if run_id.startswith(prefix)] if prefix else []
        if len(matches) != 1:
            what = "no run" if not matches else f"{len(matches)} runs"
            begun = prefix if len(prefix) <= _MOST_SHOWN else f"{prefix[:_MOST_SHOWN]}..."
            raise UsageError(
                f"run {begun!r}: {what} of {self.files.shown} begins like that; expected the beginning of one id"
            )
        return matches[0]


def _texts(argument: str, given: str | Iterable[str] | None) -> list[str] | None:
    """Return one string or several as a list."""
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    texts = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise UsageError(f"{argument}: {shown(wrong[0])} is not text; expected one name or a list of names")
    return texts
