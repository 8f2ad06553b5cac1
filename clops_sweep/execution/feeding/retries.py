"""The only retry policy, for grids and searches: of runs that raised, and of runs whose worker died.

Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.events import after_failure
from clops_sweep.execution.reports import AttemptFailed, Failed, Retrying
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import DataHash, printable, rows_of_failure
from clops_sweep.store.run_store import RunStore


class Retries:
    """Retries a job from its last checkpoint up to `max_retries` times; after that its run has failed.

    Every attempt that fails counts once, whether by an exception or by the death of a worker, also if the run has
    paused for pruning since. Tune's own retries count the death of a worker several times, once per pending request,
    and give up too early.

    Args:
        store: the store for failures.
        max_retries: number of retries.
        data_hash: returns the content hash of a config's data.
        software: columns of `runs` with software versions.
        tell: called with the events of failed runs; None without observers.
        prepared_hash: returns what all views of the data set of a config share; None if it is not known.
    """

    def __init__(
        self,
        store: RunStore,
        max_retries: int,
        data_hash: DataHash,
        software: Mapping[str, Any],
        tell: Callable[[Sequence[Event]], object] | None = None,
        prepared_hash: DataHash = lambda config: None,
    ) -> None:
        self._store = store
        self._max_retries = max_retries
        self._data_hash = data_hash
        self._software = software
        self._tell = tell
        self._prepared_hash = prepared_hash
        self._failures: Counter[str] = Counter()
        """Failed attempts by run id."""
        self._started_at: dict[str, Any] = {}

    def after(self, job: Job, failure: AttemptFailed) -> Retrying | Failed:
        """Return how a job goes on after an attempt has failed; a run that has failed is recorded.

        A feed queues a job that is retried once its worker returns it, see `Feed`.
        """
        run_id = job.run_id
        self._failures[run_id] += 1
        if "started_at" in failure.facts:
            self._started_at.setdefault(run_id, failure.facts["started_at"])
        if self._failures[run_id] <= self._max_retries and not failure.is_final:
            return Retrying()
        del self._failures[run_id]  # if a later trial computes the run again, it has all its retries
        facts = {**self._software, **failure.facts, "prepared_hash": self._prepared_hash(job.config)}
        if run_id in self._started_at:
            facts["started_at"] = self._started_at.pop(run_id)
        tables = rows_of_failure(job.run_id, job.config, failure.error, failure.reason, self._data_hash, facts)
        self._store.add(job.run_id, tables)
        if self._tell is not None:
            self._tell([after_failure(job.run_id, job.config, failure.error)])
        return Failed(printable(failure.reason))
