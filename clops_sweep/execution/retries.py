"""What becomes of a job whose worker has died: one policy, for grids and for searches. No torch, no Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.events import after_failure
from clops_sweep.execution.reports import Failed, FoundFinished, WorkerDied, bounded, is_timed_out
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import record_failure, storing
from clops_sweep.store.run_store import RunStore


class Retries:
    """Takes a job up again, from its checkpoint, up to `max_retries` times; after that its runs have failed.

    Of a run that hangs an epoch would take too long once more: it is not taken up again.

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

    def after_death(self, job: Job, error: str) -> Failed | FoundFinished | None:
        """How a job has ended whose worker has died; None if it is to be done once more.

        Raises:
            StoreError: the store cannot be read, or the failure not be recorded.
        """
        self._deaths[job] = self._deaths.get(job, 0) + 1
        with storing(self._store):
            if self._store.finished(job.run_ids).issuperset(job.run_ids):
                return FoundFinished(elsewhere=True)
            if self._deaths[job] <= self._max_retries and not is_timed_out(error):
                return None
            self._record_failure(job, error)
        return Failed(job.run_ids)

    def without_hung(self, job: Job, death: WorkerDied) -> tuple[list[Job], Failed | None]:
        """What is to be done of a job that held several runs, one of which at least hangs.

        Where it is not known which, those that were under way are halved until what hangs is alone.

        Returns:
            The jobs to be done, and the run that has failed, if it is known.

        Raises:
            StoreError: the store cannot be read, or the failure not be recorded.
        """
        with storing(self._store):
            hung, later = ([job.run_ids.index(run_id) for run_id in runs] for runs in (death.hung, death.later))
            if len(hung) == 1:
                self._record_failure(job.part(hung), death.error)
                parts, failed = [later], Failed(job.part(hung).run_ids)
            else:
                half = (len(hung) + 1) // 2
                parts, failed = [hung[:half], hung[half:], later], None
        return [job.part(part) for part in parts if part], failed

    def _record_failure(self, job: Job, error: str) -> None:
        error = bounded(error)
        record_failure(self._store, job.runs, error, self._data_hash, self._software)
        if self._tell is not None:
            self._tell(after_failure(job.runs, error))
