"""Retry policy for jobs whose worker died, for grids and searches. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.events import after_failure
from clops_sweep.execution.reports import Failed, WorkerDied
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import failure_reason, rows_of_failure
from clops_sweep.store.run_store import RunStore


class Retries:
    """Retries a job from its checkpoint up to `max_retries` times. After that its run has failed.

    A job that exceeded the time limit of an epoch is not retried.

    Tune's own retries count the death of a worker several times, once per pending request, and give up too early.

    Args:
        store: the store for failures.
        max_retries: number of retries.
        data_hash: returns the content hash of a config's data.
        software: columns of `runs` with software versions.
        tell: called with the events of failed runs; None without observers.
    """

    def __init__(
        self,
        store: RunStore,
        max_retries: int,
        data_hash: Callable[[RunConfig], str | None],
        software: Mapping[str, Any],
        tell: Callable[[Sequence[Event]], object] | None = None,
    ) -> None:
        self._store, self._max_retries = store, max_retries
        self._data_hash, self._software, self._tell = data_hash, software, tell
        self._deaths: dict[Job, int] = {}

    def after_death(self, job: Job, death: WorkerDied) -> Failed | None:
        """Return the end of a job whose worker died; None for a retry."""
        self._deaths[job] = self._deaths.get(job, 0) + 1
        if self._deaths[job] <= self._max_retries and not death.timed_out:
            return None
        tables = rows_of_failure(job.run_id, job.config, death.error, self._data_hash, self._software)
        self._store.add(job.run_id, tables)
        if self._tell is not None:
            self._tell([after_failure(job.run_id, job.config, death.error)])
        return Failed(failure_reason(death.error))
