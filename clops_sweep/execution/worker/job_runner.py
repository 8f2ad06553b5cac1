"""What a worker does with a job: one lockstep after another."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.origins import ORIGINS
from clops_sweep.execution.jobs import Job, Workplace
from clops_sweep.execution.reports import Begun, Report, ends
from clops_sweep.execution.worker.lockstep_runner import LockstepRunner
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import REGISTRIES, Plugin
from clops_sweep.store.run_store import RunStore

_SECONDS_PER_STEP = 1.0
_SECONDS_PER_JOB = 60.0
"""After which no further lockstep is begun: runs may take longer than was thought when the job was cut."""

_Said = tuple[int, Report | Future[Report]]
"""What there is to say of one of a job's parts, maybe only once that is recorded."""


class JobRunner:
    """Does its job, and says how that goes a second or so a step.

    The job is computed by a thread of its own, which does not wait until the driver asks for the next step: on its way
    are some milliseconds, in which the thread that is asked does nothing.

    Args:
        workplace: what every worker of the sweep needs to know.

    Attributes:
        done: whether the job has ended, be it that some of its locksteps have not been begun.
    """

    def __init__(self, workplace: Workplace) -> None:
        for info in workplace.datasets:
            DATASETS.register(info)
        store = RunStore(workplace.store_uri, keep=workplace.keep)
        self._events: deque[Event] = deque()
        self._runner = LockstepRunner(workplace, store, self._events.extend if workplace.is_observed else None)
        for registry, members in workplace.plugins.items():
            for name, packed in members.items():
                plugin = packed if isinstance(packed, Plugin) else packed.unpacked()
                REGISTRIES[registry].register(name, plugin.member, plugin.declaration)
        ORIGINS.update(workplace.origins)  # last: the registering module counts as the origin
        self.done = True
        self._computing: threading.Thread | None = None

    def assign(self, job: Job) -> None:
        """Begins with a job; whatever was under way is given up."""
        self._give_up()
        self.done = self._stopping = False
        self._due_at = self._answered = math.inf
        self._said: SimpleQueue[_Said | BaseException | None] = SimpleQueue()
        self._held: deque[_Said] = deque()
        self._computing = threading.Thread(target=self._compute, args=(job, self._said), daemon=True)
        self._computing.start()

    def _give_up(self) -> None:
        """Has the job that is under way end at the next epoch's end."""
        self._stopping = True
        if self._computing is not None:
            self._computing.join()

    def _compute(self, job: Job, said: SimpleQueue[_Said | BaseException | None]) -> None:
        """A job, in its thread, to its end, which is said with nothing or with the error that it has ended with."""
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
                ended = isinstance(report, Future) or ends(report)
        self._runner.wait_until_written()

    def _is_due(self) -> bool:
        """Whether it is time to say something, which a step waits for: once each step."""
        due_at = self._due_at
        if due_at == self._answered or time.monotonic() <= due_at:
            return self._stopping
        self._answered = due_at
        return True

    def step(self, patience: float | None = None) -> list[tuple[int, Report]]:
        """Look at the job for a second or so, and then until an epoch ends.

        Args:
            patience: seconds after which it returns anyway; None waits for the end of an epoch.

        Returns:
            What there is to say, in order, each time with which of the job's parts it is about. What comes after an end
            that is still being recorded is said at the next step.
        """
        if self._due_at == math.inf:  # else the last step has lost patience
            self._due_at = time.monotonic() + _SECONDS_PER_STEP
        while True:
            try:
                said = self._said.get(timeout=patience)
            except Empty:
                return list(self._reported())
            if isinstance(said, BaseException):
                raise said
            if said is None:
                self.done = True
                break
            self._held.append(said)
            report = said[1]
            ended = isinstance(report, Future) or ends(report)  # something follows at once
            if not (ended or (isinstance(report, Begun) and time.monotonic() <= self._due_at)):
                break
        self._due_at = math.inf  # no one waits until the next step
        return list(self._reported())

    def _reported(self) -> Iterator[tuple[int, Report]]:
        while self._held:
            part, report = self._held[0]
            if isinstance(report, Future):
                if not report.done():
                    return
                report = report.result()
            self._held.popleft()
            yield part, report

    def events(self) -> list[Event]:
        """Return the events since the last call; after `step`, those of all that it has reported are among them."""
        return [self._events.popleft() for _ in range(len(self._events))]

    def stop(self) -> None:
        """Keeps what has been trained so far, for the next launch to go on with."""
        self._give_up()
        self._runner.stop()
        self._runner.wait_until_written()
