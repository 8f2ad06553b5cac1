"""What becomes of a job whose worker has died: one policy, for grids and for searches. No torch, no Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.events import after_failure
from clops_sweep.execution.reports import Failed, FoundFinished, WorkerDied
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import record_failure, storing
from clops_sweep.store.run_store import RunStore


class Retries:
    """Takes a job up again, from its checkpoint, up to `max_retries` times. After that its runs have failed.

    Runs that were computed in lockstep are halved first, until what kills the worker is alone. An epoch that took too
    long would do so once more, so such a job is not taken up again as it is.

    Tune could start jobs again itself, but it counts one death of a worker several times, once for everything that it
    had asked of it, and so gives a job up too early.

    Args:
        store: where failures are recorded.
        max_retries: how often.
        data_hash: content hash of the data that a config runs on.
        software: columns of `runs` that say what computes.
        tell: called with the events of runs that have failed; None if they have no observer.
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

    def after_death(self, job: Job, death: WorkerDied) -> Failed | FoundFinished | list[Job]:
        """How a job has ended whose worker has died, or the jobs that are to be done in its place.

        Raises:
            StoreError: the store cannot be read, or the failure not be recorded.
        """
        self._deaths[job] = self._deaths.get(job, 0) + 1
        with storing(self._store):
            if self._store.finished(job.run_ids).issuperset(job.run_ids):
                return FoundFinished(elsewhere=True)
            if self._deaths[job] <= self._max_retries and not death.timed_out:
                return [job]
            if (runs := len(job.run_ids)) > 1:
                halves = [job.part(range(runs // 2)), job.part(range(runs // 2, runs))]
                self._deaths |= dict.fromkeys(halves, self._max_retries)
                return halves
            record_failure(self._store, job.runs, death.error, self._data_hash, self._software)
        if self._tell is not None:
            self._tell(after_failure(job.runs, death.error))
        return Failed(job.run_ids)
