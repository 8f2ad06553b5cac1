"""Reading of a store. docs/architecture.md specifies its files."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from clops_sweep.data.files.folder import Lock, locked
from clops_sweep.data.files.lock_holder import SECONDS_BEFORE_TOLD, holder_of, say_unlocked, say_waiting
from clops_sweep.errors import (
    DamagedStore,
    UsageError,
    listed,
    masked,
    nearest,
    shown,
)
from clops_sweep.store.files import Files
from clops_sweep.store.models import KeptModels, ModelFiles
from clops_sweep.store.parts import (
    Part,
    Status,
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
    statuses_in,
    union,
)
from clops_sweep.store.tables import SCHEMAS, TableName

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_VANISHED = 100
"""Maximum number of listings of a table while parts vanish because they are merged."""

_PARTS = "parts"
"""What a store at one moment keeps its live parts as."""

_SECONDS_TO_LOCK = 60.0
_MOST_SHOWN = 60


class StoreReader:
    """`runs`, `r_matrix`, `curves`, `instances` and `predictions` under one folder, each a folder of Parquet parts.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).
        keep: "predictions", "models" or "models:all": a run counts as finished only if the store also has these.

    Raises:
        UsageError: the place cannot be used as a store.
    """

    def __init__(self, root: str | Path, *, keep: Collection[str] = ()) -> None:
        self._files = Files(root)
        self.keep = frozenset(keep)
        self.keep_predictions = "predictions" in self.keep
        self.keep_models: KeptModels | None = (
            "all" if "models:all" in self.keep else "last" if "models" in self.keep else None
        )
        self.models = ModelFiles(self._files)
        self.uri = self._files.uri
        self._stems = Stems(uuid.uuid4().hex[:8])
        self._known: dict[str, Part] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._verified = Verified(self._files, self.log_folder / "verified.json")
        self._moment: dict[str, Any] | None = None

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
        while self._files.local:
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
        return f"{self._files.root}/{table}"

    def command(self, *words: str) -> str:
        """Return a command line for this store, to be run in the current folder."""
        folder = self.files.folder
        if folder is not None:
            with contextlib.suppress(OSError, ValueError):  # the current folder is gone, or the store is elsewhere
                folder = folder.relative_to(Path.cwd())
        results = self.files.shown if folder is None else str(folder)
        return shlex.join(["clops-sweep", *words, *(["--results", results] if results != "results" else [])])

    @property
    def files(self) -> Files:
        """The file operations of the store."""
        return self._files

    @property
    def work_folder(self) -> str:
        """The folder of everything that is not a result, in the store's file system."""
        return f"{self._files.root}/.work"

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
            return self._files.exists(self.checkpoint_path(run_id))
        return False

    def checkpointed(self) -> set[str]:
        """Return the ids of the runs with a checkpoint, from the names of the files; empty if unknown."""
        with contextlib.suppress(OSError, UsageError):
            names = map(PurePosixPath, self._files.names(self.checkpoint_folder))
            return {name.stem for name in names if name.suffix == ".pt"}
        return set()

    @property
    def log_folder(self) -> Path:
        """The folder of logs and locks: in a local store, or else in this user's cache."""
        if self._files.folder is not None:
            return self._files.folder / ".work"
        from platformdirs import user_cache_path

        return user_cache_path("clops-sweep") / "work"

    def is_there(self) -> bool:
        """Return whether the folders that `open_for_writing` made still exist.

        If results were unmounted or removed during a sweep, they must not be recreated on another disk.
        """
        return not self._files.local or os.path.isdir(self.folder("runs"))

    def flush(self) -> None:
        """Write what is waiting to be written: nothing, in a reader."""

    def path(self, table: TableName, name: str) -> str:
        """Return the path of a part, in the store's file system."""
        return f"{self._files.root}/{table}/{name}"

    def next_stem(self) -> str:
        """Return the beginning of the names of the next parts that this object writes."""
        return self._stems.next()

    def once(self, what: str, compute: Callable[[], T]) -> T:
        """Return what `compute` returns. A store at one moment computes it at the first call and keeps it.

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
        while self._files.local and (again := self._part_names("runs")) != names:
            names = again  # a folder that changes while it is listed may lack both a part and what replaces it
        new = [name for name in names if name not in self._known]
        for name, part in zip(new, self._files.for_each(self._part, new), strict=True):
            self._known[name] = part
        parts = [self._known[name] for name in names]
        replaced = {name for part in parts for name in part.replaces}
        return [part for part in parts if part.name not in replaced]

    def _part(self, name: str) -> Part:
        path = self.path("runs", name)
        return decoded(path, read_verified(self._files, path))

    def remember(self, part: Part) -> Part:
        """Remember a part that this process has written, so that it is not read."""
        self._known[part.name] = part
        return part

    def _part_names(self, table: TableName) -> list[str]:
        return [name for name in self._files.names(self.folder(table)) if is_name(name)]

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
        there = {table: set(self._files.names(self.folder(table))) for table in tables}
        complete = []
        for part in parts:
            missing = [table for table, names in part.files.items() if not there[table].issuperset(names)]
            if not missing:
                complete.append(part)
        return complete

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
        parts = self.once("complete parts", lambda: self.complete(self.live()))
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
        return statuses_in(self.live())

    def predicted(self) -> set[str]:
        """Return the runs with predictions."""
        self.flush()
        return {run_id for run_id, part in owners_of(self.live()).items() if run_id in part.predicted}

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
        return self._settled(lambda: self._table(table, None if ids is None else set(ids), names))

    def _table(self, table: TableName, wanted: set[str] | None, columns: list[str] | None) -> pa.Table:
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
        read = self._files.for_each(lambda few: self.read_part(table, few[0], schema, needed, few[1]), chosen)
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
        return read_rows(self._files, path, schema, columns or schema.names, run_ids)

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
        self._schemas |= dict(zip(new, self._files.for_each(self._schema_of, new), strict=True))
        return union(table, [*(self._schemas[name] for name in names), *more])

    def _schema_of(self, name: str) -> pa.Schema:
        path = self.path("predictions", name)
        self._verified.check(path)
        with self._files.system.open_input_file(path) as file:
            return pq.read_schema(file).remove_metadata()

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


def missing(path: str) -> DamagedStore:
    """Return the error of a file of a part that does not exist."""
    return DamagedStore(f"{path}: is missing; a launch computes the requested runs in it again")


def _texts(argument: str, given: str | Iterable[str] | None) -> list[str] | None:
    """Return one string or several as a list."""
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    texts = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise UsageError(f"{argument}: {shown(wrong[0])} is not text; expected one name or a list of names")
    return texts


def rerun_command(
    run_id: str,
    results: str,
    *,
    verify: bool = False,
    plugins: Sequence[str] = (),
    prepared_root: str | None = None,
) -> str:
    """Return the command line that repeats a run, without the password of a store.

    Args:
        run_id: the run.
        results: its store, as `--results` takes it.
        verify: whether to compare the numbers with the stored ones.
        plugins: the files that register the plug-ins of the run.
        prepared_root: folder of the prepared frames; None for the default.
    """
    options = ["--verify"] if verify else []
    for file in plugins:
        options += ["--plugins", file]
    if prepared_root is not None:
        options += ["--prepared-root", prepared_root]
    return store_command(results, "rerun", run_id, *options)


def store_command(results: str, *words: str) -> str:
    """Return a command line for a store, in any folder, without the password of the store.

    Args:
        results: the store, as `--results` takes it.
        words: the command, its arguments and other options.
    """
    return shlex.join(["clops-sweep", *words, "--results", masked(results)])
