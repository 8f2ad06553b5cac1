"""RunStore: the results of all runs, as Parquet tables that the workers write."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clops_sweep.errors import (
    DamagedStore,
    OtherFormat,
    UnreadableFile,
    UsageError,
    listed,
    masked,
    nearest,
    one_line,
    shown,
)
from clops_sweep.experiment.columns import DEFAULTS, RENAMED
from clops_sweep.store.compaction import FEW, compact_table
from clops_sweep.store.files import Files
from clops_sweep.store.locks import held
from clops_sweep.store.models import KeptModels, ModelFiles
from clops_sweep.store.part_bytes import FORMAT
from clops_sweep.store.part_names import Part, Status, single
from clops_sweep.store.parts import TABLES_AT_A_TIME, PartFolder, UnlistedColumns, in_order
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName

if TYPE_CHECKING:
    import pandas as pd

_VANISHED = 100
"""Maximum number of listings of a table while parts vanish: a run succeeded after a failure, or was compacted."""

_MOST_SHOWN = 60


class RunStore:
    """`runs`, `r_matrix`, `curves`, `instances` and `predictions` under one folder, each a folder of Parquet parts.

    Every run has its own part in each table, named after its status and id, until `compact` merges the parts of many
    finished runs. Parts appear atomically, and the part in `runs` appears last: a run is finished exactly when `runs`
    has it. So writing a run twice leaves one copy, and leftovers of killed processes are never read. Correctness does
    not depend on clocks, locks or the memory of a process.

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
        self._parts = {table: PartFolder(self._files, self.folder(table), schema) for table, schema in SCHEMAS.items()}
        self._parts["runs"] = PartFolder(self._files, self.folder("runs"), SCHEMAS["runs"], DEFAULTS, RENAMED)

    @classmethod
    def named(cls, root: str, *, keep: Collection[str] = ()) -> RunStore:
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
        store.is_from_0_2()
        return store

    def is_from_0_2(self) -> bool:
        """Return whether version 0.2 wrote a part of `runs`, of the compacted ones and two others.

        Raises:
            OtherFormat: a newer version of clops-sweep wrote one.
        """
        runs = self._parts["runs"]
        with contextlib.suppress(FileNotFoundError, DamagedStore, UnreadableFile):  # reported when they are read
            listing = runs.listing()
            looked_at = (*listing.compacts, *listing.singles[:1], *listing.singles[-1:])
            return any(version < FORMAT for version in self._files.for_each(runs.format_of, looked_at))
        return False

    def check_format(self) -> None:
        """Check that the store has the format of this version.

        Raises:
            OtherFormat: the store must be migrated first, or a newer version of clops-sweep wrote it.
        """
        if self.is_from_0_2():
            raise OtherFormat(f"results {self.files.shown}: {self._parts['runs'].from_0_2}")

    @contextlib.contextmanager
    def rewriting(self, *, shared: bool = False) -> Iterator[None]:
        """Lock the store: `migrate`, `delete` and `merge` exclude each other and everything that adds or moves parts.

        Object stores and file systems without locks are not locked.

        Args:
            shared: for sweeps and compactions, which may run concurrently.

        Raises:
            UsageError: the lock is taken.
        """
        if not self._files.local:
            yield
            return
        with held(self.log_folder / "rewriting", shared=shared) as got:
            if got is False:
                other = "`clops-sweep migrate`, `delete` or `merge`" if shared else "a sweep, a compaction or the like"
                raise UsageError(f"results {self.files.shown}: {other} is at work on it; wait until that has ended")
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
    def parts(self) -> Mapping[TableName, PartFolder]:
        """The parts of each table."""
        return self._parts

    @property
    def work_folder(self) -> str:
        """The folder of everything that is not a result, in the store's file system."""
        return f"{self._files.root}/.work"

    @property
    def checkpoint_folder(self) -> str:
        """The folder of checkpoints, in the store's file system: every machine finds them there."""
        return f"{self.work_folder}/checkpoints"

    def checkpoint_path(self, run_ids: Sequence[str]) -> str:
        """Return the path of the checkpoint of one run or of one lockstep."""
        name = run_ids[0] if len(run_ids) == 1 else hashlib.sha256("-".join(run_ids).encode()).hexdigest()[:32]
        return f"{self.checkpoint_folder}/{name}.pt"

    def has_checkpoint(self, run_ids: Sequence[str]) -> bool:
        """Return whether runs that are computed together have a checkpoint; False if unknown."""
        with contextlib.suppress(OSError):
            return self._files.exists(self.checkpoint_path(run_ids))
        return False

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

    def check_writable(self) -> None:
        """Check that the store can be written to, without leaving anything behind.

        Raises:
            UsageError: it cannot be written to.
        """
        with self._refusing():
            if self._files.local:
                for table in self._needed:
                    place = self.folder(table)
                    while not os.path.lexists(place):
                        place = os.path.dirname(place)
                    tempfile.TemporaryFile(dir=place).close()
            else:
                self._probe()

    def open_for_writing(self) -> None:
        """Make the folders of the tables. From now on, failed requests to an object store are retried for longer.

        Raises:
            UsageError: the place cannot be written to, or must be migrated first.
        """
        with self._refusing():
            for table in self._needed:
                self._files.make_folder(self.folder(table))
            self._probe()
        self.check_format()
        self.files.retry_longer()

    def _probe(self) -> None:
        probe = f"{self.folder('runs')}/.probe-{uuid.uuid4().hex}"
        self._files.write(probe, b"")
        self._files.delete([probe])

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(f"results {self.files.shown}: cannot be written to ({one_line(error)})") from None

    @property
    def _needed(self) -> tuple[TableName, ...]:
        """The tables that must contain a finished run."""
        return (*EVERY_RUN, "predictions") if self.keep_predictions else EVERY_RUN

    def statuses(self) -> dict[str, Status]:
        """Return the status of each run, from the names of the parts; only compacted parts are opened.

        A run is finished if all tables have it; predictions count only if they are to be kept.
        """
        found = self._statuses(self._needed)
        if self.keep_models:
            have = self.models.runs(self.keep_models)
            found = {run_id: status for run_id, status in found.items() if status == "failed" or run_id in have}
        return found

    def recorded(self) -> dict[str, Status]:
        """Return `statuses` by the table `runs` alone, for frequent checks: it lists a fourth of the folders.

        A run that is damaged or being written may be among them although another table lacks it.
        """
        return self._statuses(("runs",))

    def without_kept(self) -> set[str]:
        """Return the runs that lack only the predictions or models to keep."""
        if not self.keep:
            return set()
        finished = {run_id for run_id, status in self._statuses(EVERY_RUN).items() if status == "finished"}
        return finished - {run_id for run_id, status in self.statuses().items() if status == "finished"}

    def _statuses(self, needed: Sequence[TableName]) -> dict[str, Status]:
        runs = self._parts["runs"]
        attempts = 0
        while True:
            listing = runs.listing()
            try:
                finished = runs.finished_in(listing)
                for table in needed:
                    if table != "runs":
                        finished &= self._parts[table].finished()
                found: dict[str, Status] = {
                    str(part.run_id): "failed" for part in listing.singles if part.status == "failed"
                }
                found |= dict.fromkeys(sorted(finished), "finished")
                return found
            except FileNotFoundError as error:
                attempts = self._again(attempts, error)

    def incomplete(self, tables: Collection[TableName] = EVERY_RUN) -> dict[str, list[TableName]]:
        """Return the runs that are finished in `runs` but missing in other tables, with the names of these tables.

        Args:
            tables: the tables to compare.
        """
        have = {table: self._parts[table].finished() for table in EVERY_RUN if table in tables}
        runs = have["runs"] if "runs" in have else self._parts["runs"].finished()
        lacking = {run_id: [table for table in have if run_id not in have[table]] for run_id in sorted(runs)}
        return {run_id: lacks for run_id, lacks in lacking.items() if lacks}

    def finished(self, run_ids: Sequence[str], *, lately: bool = False) -> set[str]:
        """Return which of some runs are finished, by looking up their parts alone.

        In an object store, a run that is being compacted may be missed. A driver that then repeats it does not record
        it twice.

        Args:
            run_ids: the runs.
            lately: whether runs that were compacted a moment ago may be missed elsewhere too. It saves listings.
        """
        found = self._in_all(self._needed, run_ids, certainly=False, lately=lately)
        return {run_id for run_id in found if self.models.has(run_id, self.keep_models)} if self.keep_models else found

    def _in_all(
        self, tables: Sequence[TableName], run_ids: Sequence[str], *, certainly: bool = True, lately: bool = False
    ) -> set[str]:
        attempts = 0
        while True:
            try:
                found = list(run_ids)
                for table in tables:
                    part_folder = self._parts[table]
                    found = sorted(part_folder.has_finished(found, certainly=certainly, lately=lately)) if found else []
                return set(found)
            except FileNotFoundError as error:
                attempts = self._again(attempts, error)

    def read(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Return a table, or some runs or columns of it, as a DataFrame sorted by run id.

        Before the first run it has columns but no rows. The failure of a run that has finished since is left out.

        Raises:
            DamagedStore: a part is not a complete Parquet file.
        """
        frame: pd.DataFrame = self.table(table, run_ids, columns).to_pandas()
        return frame

    def rows(
        self, table: TableName, columns: Sequence[str] | None = None, run_ids: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return `read` as a list of dictionaries, without pandas.

        Raises:
            DamagedStore: a part is not a complete Parquet file.
        """
        found: list[dict[str, Any]] = self.table(table, run_ids, columns).to_pylist()
        return found

    def table(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pa.Table:
        """Return `read` as an Arrow table.

        Raises:
            DamagedStore: a part is not a complete Parquet file.
            UsageError: a column does not exist, or `run_ids` or `columns` is not text.
        """
        parts = self._parts[table].with_own_columns()
        names = _texts("columns", columns) or parts.schema.names
        if unknown := [name for name in names if name not in parts.schema.names]:
            known = nearest(unknown[0], parts.schema.names) or f"; it has {listed(parts.schema.names)}"
            raise UsageError(f"table {table!r} has no column {shown(unknown[0])}{known}")
        ids = _texts("run_ids", run_ids)
        wanted, asked = None if ids is None else set(ids), {*names, "run_id"}
        needed = [name for name in parts.schema.names if name in asked]  # in the order of the parts
        attempts = 0
        while True:
            try:
                return in_order(self._load(parts, wanted, needed)).select(names)
            except FileNotFoundError as error:
                attempts = self._again(attempts, error)

    def _load(self, parts: PartFolder, wanted: set[str] | None, columns: list[str]) -> pa.Table:
        singles, compacts = parts.owned(parts.listing())
        finished = {part.run_id for part in singles if part.status == "finished"}
        finished = finished.union(*(parts.ids(part) for part, _ in compacts))
        chosen = [
            part
            for part in singles
            if (wanted is None or part.run_id in wanted) and (part.status == "finished" or part.run_id not in finished)
        ]
        tables = [parts.schema.empty_table().select(columns)]
        for start in range(0, len(chosen), TABLES_AT_A_TIME):
            few = chosen[start : start + TABLES_AT_A_TIME]
            read = self._files.for_each(lambda part: parts.read(part, columns), few)
            tables.append(pa.concat_tables(read).combine_chunks())
        only = {part: None if wanted is None else sorted(parts.ids(part) & wanted) for part, _ in compacts}
        tables += self._files.for_each(
            lambda it: parts.read(it[0], columns, only=only[it[0]], without=it[1]),
            [it for it in compacts if only[it[0]] != []],
        )
        return pa.concat_tables(tables)

    def compact(self, *, gradually: bool = False) -> int:
        """Merge the parts of finished runs, many into few. Any process may call it at any time.

        A compacted part appears before its sources are deleted, so this class never misses a run, and after a kill the
        next call continues. Programs that list a folder without this class may briefly find a run twice, or a part gone
        that they were about to read; they should list it again.

        Args:
            gradually: whether to merge only parts that fill one of the next level (see `compact_table`), and to do
                nothing while few runs have their own parts.

        Returns:
            The number of parts that were merged.

        Raises:
            DamagedStore: a part is not a complete Parquet file.
            UsageError: `migrate`, `delete` or `merge` is at work on the store.
        """
        with self.rewriting(shared=True):
            return self._compact(gradually)

    def _compact(self, gradually: bool) -> int:
        if gradually and len(self._parts["runs"].listing().finished) < FEW:
            return 0
        finished = {run_id for run_id, status in self._statuses(EVERY_RUN).items() if status == "finished"}
        merged = 0
        for parts in self._parts.values():
            try:
                merged += compact_table(parts.with_own_columns(), finished, gradually=gradually)
            except UnlistedColumns:  # nothing is lost: the parts have these columns too
                parts.list_columns_anew()
                merged += compact_table(parts.with_own_columns(), finished, gradually=gradually)
        return merged

    def compact_if_many(self) -> None:
        """Compact gradually, as sweeps do from time to time.

        Errors (a full disk, a damaged part) are ignored: they lose nothing, and the sweep goes on.
        """
        with contextlib.suppress(UsageError, DamagedStore, OSError):
            self.compact(gradually=True)

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
            said = prefix if len(prefix) <= _MOST_SHOWN else f"{prefix[:_MOST_SHOWN]}..."
            raise UsageError(
                f"run {said!r}: {what} of {self.files.shown} begins like that; expected the beginning of one id"
            )
        return matches[0]

    def write_finished(
        self, run_id: str, tables: Mapping[TableName, pa.Table], models: Mapping[int, bytes] | None = None
    ) -> None:
        """Record a finished run, unless the store already has it. Its part in `runs` is written last.

        Predictions and models are added to a run that was recorded without them; nothing else of it changes.
        """
        if models and self.keep_models and not self.models.has(run_id, self.keep_models):
            self.models.write(run_id, models, self.keep_models)
        if "predictions" in tables and not self._in_all(["predictions"], [run_id]):
            self._write("predictions", single("finished", run_id), tables["predictions"])
        if self._in_all(EVERY_RUN, [run_id]):
            return
        for table in (*EVERY_RUN[1:], EVERY_RUN[0]):
            self._write(table, single("finished", run_id), tables[table])
        self._parts["runs"].delete_failure(run_id)

    def _write(self, table: TableName, part: Part, content: pa.Table) -> None:
        parts = self._parts[table]
        tables = set(SCHEMAS[table].names)
        if own := [field for field in content.schema if field.name not in tables]:
            parts.add_columns(own)
        parts.write_single(part, content)

    def write_failed(self, run_id: str, row: pa.Table) -> None:
        """Record a failed run, unless it is finished, with or without the predictions to keep."""
        if not self._in_all(EVERY_RUN, [run_id]):
            self._write("runs", single("failed", run_id), row)

    def _again(self, attempts: int, error: FileNotFoundError) -> int:
        if attempts >= _VANISHED:
            raise DamagedStore(f"results {self.files.shown}: {one_line(error)}") from None
        return attempts + 1


def _texts(argument: str, given: str | Iterable[str] | None) -> list[str] | None:
    """Return one string or several as a list."""
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    texts = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise UsageError(f"{argument}: {shown(wrong[0])} is not text; expected one name or a list of names")
    return texts


def rerun_command(run_id: str, results: str, *, verify: bool = False, plugins: Sequence[str] = ()) -> str:
    """Return the command line that repeats a run, without the password of a store.

    Args:
        run_id: the run.
        results: its store, as `--results` takes it.
        verify: whether to compare the numbers with the stored ones.
        plugins: the files that register the plug-ins of the run.
    """
    named = [word for file in plugins for word in ("--plugins", file)]
    verified = ["--verify"] if verify else []
    return shlex.join(["clops-sweep", "rerun", run_id, *verified, "--results", masked(results), *named])
