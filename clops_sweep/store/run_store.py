"""RunStore: the truth about what has been computed. Parquet data sets, written by the workers."""

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
"""How often a table is listed anew because a part has gone: a failure made good just now, or parts put together."""

_MOST_SHOWN = 60


class RunStore:
    """`runs`, `r_matrix`, `curves`, `instances` and `predictions` under one folder, each a folder of Parquet parts.

    Every run has a part of its own in each table, named after its status and id, until `compact` puts the finished ones
    of many runs into one part. A part appears under its final name whole or not at all, and the part in `runs` appears
    last: a run is finished exactly when it is in there. Writing the same run twice therefore leaves one copy, and
    nothing a killed process leaves behind is ever read. No time of day, no lock and no memory of a process decides
    anything.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).
        keep: "predictions", "models" or "models:all": a run counts as finished only if the store has these of it too.

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
        """The store that a user has named.

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
        """Whether version 0.2 has written any of the parts in `runs` that are looked at: the compacted ones and a few.

        Raises:
            OtherFormat: a later version of clops-sweep has written one.
        """
        runs = self._parts["runs"]
        with contextlib.suppress(FileNotFoundError, DamagedStore, UnreadableFile):  # reported by those who read them
            listing = runs.listing()
            looked_at = (*listing.compacts, *listing.singles[:1], *listing.singles[-1:])
            return any(version < FORMAT for version in self._files.for_each(runs.format_of, looked_at))
        return False

    def check_format(self) -> None:
        """See that the runs of the store have the ids that this version gives them.

        Raises:
            OtherFormat: the store has to be migrated first, or another version of clops-sweep has written it.
        """
        if self.is_from_0_2():
            raise OtherFormat(f"results {self.files.shown}: {self._parts['runs'].from_0_2}")

    @contextlib.contextmanager
    def rewriting(self, *, shared: bool = False) -> Iterator[None]:
        """Keep `migrate`, `delete` and `merge` apart from each other and from all that adds or moves parts.

        Nothing is locked where results are not in a folder, and on a file system without locks.

        Args:
            shared: for sweeps and compactions, which may run side by side.

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
        """Where the parts of a table lie, inside the store's file system."""
        return f"{self._files.root}/{table}"

    def command(self, *words: str) -> str:
        """Return a command on this store, as a user can type it in the current folder."""
        folder = self.files.folder
        if folder is not None:
            with contextlib.suppress(OSError, ValueError):  # the current folder is gone, or the store lies elsewhere
                folder = folder.relative_to(Path.cwd())
        results = self.files.shown if folder is None else str(folder)
        return shlex.join(["clops-sweep", *words, *(["--results", results] if results != "results" else [])])

    @property
    def files(self) -> Files:
        """Where it lies, and how files get there whole."""
        return self._files

    @property
    def parts(self) -> Mapping[TableName, PartFolder]:
        """The parts of each table."""
        return self._parts

    @property
    def work_folder(self) -> str:
        """Where everything lies that is no result, inside the store's file system."""
        return f"{self._files.root}/.work"

    @property
    def checkpoint_folder(self) -> str:
        """Where checkpoints lie, inside the store's file system: every machine finds them there."""
        return f"{self.work_folder}/checkpoints"

    def checkpoint_path(self, run_ids: Sequence[str]) -> str:
        """The file there that is named after one run, or after all of a lockstep."""
        name = run_ids[0] if len(run_ids) == 1 else hashlib.sha256("-".join(run_ids).encode()).hexdigest()[:32]
        return f"{self.checkpoint_folder}/{name}.pt"

    def has_checkpoint(self, run_ids: Sequence[str]) -> bool:
        """Whether runs that are computed together have a checkpoint; false if unknown."""
        with contextlib.suppress(OSError):
            return self._files.exists(self.checkpoint_path(run_ids))
        return False

    @property
    def log_folder(self) -> Path:
        """Where logs and locks lie: beside tables that are in a folder, else in this user's cache."""
        if self._files.folder is not None:
            return self._files.folder / ".work"
        from platformdirs import user_cache_path

        return user_cache_path("clops-sweep") / "work"

    def is_there(self) -> bool:
        """Whether the folders that `open_for_writing` made are still there.

        A folder of results that was unmounted or removed while a sweep runs is not to be made anew, on whatever disk
        its path now leads to.
        """
        return not self._files.local or os.path.isdir(self.folder("runs"))

    def check_writable(self) -> None:
        """See whether the store can be written to. Afterwards nothing is there that was not there before.

        Raises:
            UsageError: it cannot.
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
        """Make the folders of the tables.

        Raises:
            UsageError: the place cannot be written to, or has to be migrated first.
        """
        with self._refusing():
            for table in self._needed:
                self._files.make_folder(self.folder(table))
            self._probe()
        self.check_format()

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
        """The tables that a run must be in to be finished."""
        return (*EVERY_RUN, "predictions") if self.keep_predictions else EVERY_RUN

    def statuses(self) -> dict[str, Status]:
        """Run id to status, from the names of the parts; only those that hold many runs are opened.

        A run is finished if all tables have it, but for predictions where none are to be kept.
        """
        found = self._statuses(self._needed)
        if self.keep_models:
            have = self.models.runs(self.keep_models)
            found = {run_id: status for run_id, status in found.items() if status == "failed" or run_id in have}
        return found

    def recorded(self) -> dict[str, Status]:
        """The same by the table `runs` alone, for frequent checks: a fourth of the folders to list.

        A run that is being written or has been damaged may be among them although another table does not have it.
        """
        return self._statuses(("runs",))

    def without_kept(self) -> set[str]:
        """The runs that are finished but for the predictions or models that are to be kept."""
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
        """The runs that `runs` has as finished and other tables do not have, with the names of these.

        Args:
            tables: those that are looked at.
        """
        have = {table: self._parts[table].finished() for table in EVERY_RUN if table in tables}
        runs = have["runs"] if "runs" in have else self._parts["runs"].finished()
        lacking = {run_id: [table for table in have if run_id not in have[table]] for run_id in sorted(runs)}
        return {run_id: lacks for run_id, lacks in lacking.items() if lacks}

    def finished(self, run_ids: Sequence[str]) -> set[str]:
        """Which of some runs are finished; asks for their parts by name and does not look at all others.

        In an object store one may be overlooked that is just being compacted: a driver that then computes it
        again will not record it twice.
        """
        found = self._in_all(self._needed, run_ids, certainly=False)
        return {run_id for run_id in found if self.models.has(run_id, self.keep_models)} if self.keep_models else found

    def _in_all(self, tables: Sequence[TableName], run_ids: Sequence[str], *, certainly: bool = True) -> set[str]:
        attempts = 0
        while True:
            try:
                found = list(run_ids)
                for table in tables:
                    found = sorted(self._parts[table].has_finished(found, certainly=certainly)) if found else []
                return set(found)
            except FileNotFoundError as error:
                attempts = self._again(attempts, error)

    def read(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pd.DataFrame:
        """A table as a DataFrame, in the order of run ids: of all runs or of some, all columns or some.

        Empty, with its columns, before the first run. Of a run that had failed and is finished, the failure is left
        out.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
        """
        frame: pd.DataFrame = self.table(table, run_ids, columns).to_pandas()
        return frame

    def rows(
        self, table: TableName, columns: Sequence[str] | None = None, run_ids: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """The same as plain rows, without pandas.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
        """
        found: list[dict[str, Any]] = self.table(table, run_ids, columns).to_pylist()
        return found

    def table(
        self, table: TableName, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
    ) -> pa.Table:
        """The same as an Arrow table.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
            UsageError: there is no such column, or what is given names no runs or columns.
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
        """Merges the parts of finished runs, many into few. Any process may call it at any time.

        A compacted part appears before the parts that it replaces are deleted, so this class never misses a run. After
        a kill, the next call continues. A reader that lists the folder without this class may meanwhile see a run
        twice, or a part that is gone, and must read again.

        Args:
            gradually: whether only parts are put together that make one of the next level (see `compact_table`), and
                nothing is done as long as few runs have parts of their own.

        Returns:
            How many parts have been put together.

        Raises:
            DamagedStore: a part is not a whole Parquet file.
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
            except UnlistedColumns:  # nothing has been lost, and the parts know them
                parts.list_columns_anew()
                merged += compact_table(parts.with_own_columns(), finished, gradually=gradually)
        return merged

    def compact_if_many(self) -> None:
        """What a sweep does now and then: compacts gradually.

        What goes wrong then (a full disk, a damaged part) is no reason to end a sweep: nothing is lost by it.
        """
        with contextlib.suppress(UsageError, DamagedStore, OSError):
            self.compact(gradually=True)

    def find(self, prefix: str) -> str:
        """The id of the one run, finished or failed, whose id begins with `prefix`.

        Raises:
            UsageError: no run has that id, or several do.
        """
        matches = [run_id for run_id in self.statuses() if run_id.startswith(prefix)] if prefix else []
        if len(matches) != 1:
            what = "no run" if not matches else f"{len(matches)} runs"
            shown = prefix if len(prefix) <= _MOST_SHOWN else f"{prefix[:_MOST_SHOWN]}..."
            raise UsageError(
                f"run {shown!r}: {what} of {self.files.shown} begins like that; expected the beginning of one id"
            )
        return matches[0]

    def write_finished(
        self, run_id: str, tables: Mapping[TableName, pa.Table], models: Mapping[int, bytes] | None = None
    ) -> None:
        """Record a finished run, unless it is finished already. The part in `runs` comes last and makes it count.

        Predictions and models are added to a run that was finished without them; nothing else of it changes.
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
        """Records a failed run, unless it is finished, be it without the predictions that are to be kept."""
        if not self._in_all(EVERY_RUN, [run_id]):
            self._write("runs", single("failed", run_id), row)

    def _again(self, attempts: int, error: FileNotFoundError) -> int:
        if attempts >= _VANISHED:
            raise DamagedStore(f"results {self.files.shown}: {one_line(error)}") from None
        return attempts + 1


def _texts(argument: str, given: str | Iterable[str] | None) -> list[str] | None:
    """One text or several as a list."""
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    texts = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise UsageError(f"{argument}: {shown(wrong[0])} is no text; expected one name or a list of them")
    return texts


def rerun_command(run_id: str, results: str, *, verify: bool = False, plugins: Sequence[str] = ()) -> str:
    """The command line that repeats a run, as it may be printed: without the password of a store.

    Args:
        run_id: which run.
        results: the store that it is in, as `--results` takes it.
        verify: whether the numbers are to be compared with the stored ones.
        plugins: the files that register what it uses.
    """
    named = [word for file in plugins for word in ("--plugins", file)]
    verified = ["--verify"] if verify else []
    return shlex.join(["clops-sweep", "rerun", run_id, *verified, "--results", masked(results), *named])
