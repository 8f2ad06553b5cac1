"""RunStore: the results of all runs, as Parquet tables. docs/architecture.md specifies them."""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clops_sweep.errors import UsageError, one_line
from clops_sweep.store.reading import StoreReader
from clops_sweep.store.tables import EVERY_RUN, TableName
from clops_sweep.store.writing import merge_parts, tidy, write

SECONDS_PER_FLUSH = 10.0
"""Most seconds of finished runs that a killed driver may lose."""

_REST = 20.0
"""Rows wait this many times as long as the last flush took, so that a driver flushes for 5 % of its time at most."""

BYTES_PER_FLUSH = 2**26
MANY_PARTS = 32
"""Small parts are merged once there are as many."""


@dataclass
class _Waiting:
    """Rows that are not written yet, by run, and the checkpoints to delete then."""

    rows: dict[str, Mapping[TableName, pa.Table]] = field(default_factory=dict)
    checkpoints: list[str] = field(default_factory=list)
    since: float = 0.0
    nbytes: int = 0


class RunStore(StoreReader):
    """A store to which runs are added.

    `add` takes the rows of a run, and `flush` writes all added rows as one part per table. The part in `runs` is
    written last and names the others: without it they are never read.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).
        keep: "predictions", "models" or "models:all": a run counts as finished only if the store also has these.

    Raises:
        UsageError: the place cannot be used as a store.
    """

    def __init__(self, root: str | Path, *, keep: Collection[str] = ()) -> None:
        super().__init__(root, keep=keep)
        self._waiting = _Waiting()
        self._flush_seconds = 0.0

    def at_one_moment(self) -> RunStore:
        """Return the store as it is now, for reading: its parts are listed once, and statuses are computed once.

        A store at one moment returns itself.
        """
        if self._moment is not None:
            return self
        self.flush()
        reader = copy.copy(self)
        reader._waiting = _Waiting()
        reader._moment = {}
        return reader

    def keeping(self, keep: str) -> RunStore:
        """Return the store, at the same moment if it has one, in which runs count as finished only if it has more.

        Args:
            keep: "predictions", "models" or "models:all".
        """
        store = RunStore(self.uri, keep={*self.keep, keep})
        store._moment = self._moment
        store._known = self._known
        return store

    def check_writable(self) -> None:
        """Check that the store can be written to, without leaving anything behind.

        Raises:
            UsageError: it cannot be written to.
        """
        with self._refusing():
            if self._files.local:
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
                self._files.make_folder(self.folder(table))
            self._probe()
            self.files.retry_longer()
            with self.locked():
                tidy(self)

    def _probe(self) -> None:
        probe = f"{self.folder('runs')}/.probe-{uuid.uuid4().hex}"
        self._files.write(probe, b"")
        self._files.delete([probe])

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
            write(self, waiting.rows)
            self._waiting = _Waiting()
            self._files.delete(waiting.checkpoints)
            if self._files.local:
                merge_parts(self, at_least=MANY_PARTS)
