"""Execution of a job: one lockstep after another."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.origins import ORIGINS
from clops_sweep.execution.jobs import Job, Workplace
from clops_sweep.execution.reports import Begun, Recorded, Report, ends
from clops_sweep.execution.worker.lockstep_runner import LockstepRunner
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import REGISTRIES, Plugin
from clops_sweep.store.run_store import RunStore

_SECONDS_PER_STEP = 1.0
_SECONDS_PER_JOB = 60.0
"""Seconds after which no further lockstep starts: runs may take longer than estimated."""

_Said = tuple[int, Report]
"""A report on a part of a job."""


class JobRunner:
    """Computes a job, and returns reports about once a second.

    A separate thread computes the job and does not wait for the driver's next request, which takes milliseconds.

    Args:
        workplace: settings of all workers.

    Attributes:
        done: whether the job has ended, perhaps with some locksteps not started.
    """

    def __init__(self, workplace: Workplace) -> None:
        for info in workplace.datasets:
            DATASETS.register(info)
        store = RunStore(workplace.store_uri, keep=workplace.keep)
        store.files.retry_longer()
        self._events: deque[Event] = deque()
        self._rows: deque[Recorded] = deque()
        tell = self._events.extend if workplace.is_observed else None
        self._runner = LockstepRunner(workplace, store, self._rows.append, tell)
        for registry, members in workplace.plugins.items():
            for name, packed in members.items():
                plugin = packed if isinstance(packed, Plugin) else packed.unpacked()
                REGISTRIES[registry].register(name, plugin.member, plugin.declaration)
        ORIGINS.update(workplace.origins)  # last: the registering module counts as the origin
        self._queues: dict[str, deque[Any]] = {"rows": self._rows, "events": self._events}
        self.done = True
        self._computing: threading.Thread | None = None

    def assign(self, job: Job) -> None:
        """Start a job, abandoning a running one."""
        self._give_up()
        self.done = self._stopping = False
        self._due_at = self._answered = math.inf
        self._said: SimpleQueue[_Said | BaseException | None] = SimpleQueue()
        self._computing = threading.Thread(target=self._compute, args=(job, self._said), daemon=True)
        self._computing.start()

    def _give_up(self) -> None:
        """Let the running job end after its current epoch."""
        self._stopping = True
        if self._computing is not None:
            self._computing.join()

    def _compute(self, job: Job, said: SimpleQueue[_Said | BaseException | None]) -> None:
        """Compute a job in its thread; at the end, queue None or the error."""
        try:
            for it in self._locksteps(job):
                said.put(it)
        except BaseException as error:
            said.put(error)
        else:
            said.put(None)

    def _locksteps(self, job: Job) -> Iterator[_Said]:
        ends_at = time.monotonic() + _SECONDS_PER_JOB
        for index, part in enumerate(job.parts()):
            if index:
                if time.monotonic() > ends_at:
                    break
                yield index, Begun()
            self._runner.take_up(part)
            ended = False
            while not ended:
                if self._stopping:
                    return
                report = self._runner.step(self._is_due)
                yield index, report
                ended = ends(report)

    def _is_due(self) -> bool:
        """Return whether a step is waiting for reports; once per step."""
        due_at = self._due_at
        if due_at == self._answered or time.monotonic() <= due_at:
            return self._stopping
        self._answered = due_at
        return True

    def step(self, patience: float | None = None) -> list[tuple[int, Report]]:
        """Look at the job for a second or so, and then until an epoch ends.

        Args:
            patience: maximum seconds to wait; None waits for the end of an epoch.

        Returns:
            Reports in order, each with the index of a part.
        """
        if self._due_at == math.inf:  # else the last step has timed out
            self._due_at = time.monotonic() + _SECONDS_PER_STEP
        found: list[_Said] = []
        while True:
            try:
                said = self._said.get(timeout=patience)
            except Empty:
                return found
            if isinstance(said, BaseException):
                raise said
            if said is None:
                self.done = True
                break
            found.append(said)
            report = said[1]
            if not (ends(report) or (isinstance(report, Begun) and time.monotonic() <= self._due_at)):
                break
        self._due_at = math.inf  # no step is waiting
        return found

    def rows_and_events(self) -> dict[str, list[Any]]:
        """Return rows and events since the last call, including those of everything that `step` has reported."""
        return {name: [queue.popleft() for _ in range(len(queue))] for name, queue in self._queues.items()}

    def stop(self) -> None:
        """Write a checkpoint, from which the next launch continues."""
        self._give_up()
        self._runner.stop()
