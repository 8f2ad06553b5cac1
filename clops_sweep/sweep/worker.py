"""What a worker does with a job: one lockstep after another."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.origins import ORIGINS
from clops_sweep.experiment.registry import REGISTRIES
from clops_sweep.store.run_store import RunStore
from clops_sweep.sweep.jobs import Job, Workplace
from clops_sweep.sweep.lockstep_runner import LockstepRunner
from clops_sweep.sweep.observers.teller import Observers
from clops_sweep.sweep.plugins import PackedPlugin
from clops_sweep.sweep.reports import Begun, Noted, Report, ends

_SECONDS_PER_STEP = 1.0
_SECONDS_PER_JOB = 60.0
"""After which no further lockstep is begun: runs may take longer than was thought when the job was cut."""

_SECONDS_TO_STOP = 5.0


class JobRunner:
    """Does its job, a second or so a step.

    Args:
        workplace: what every worker of the sweep needs to know.

    Attributes:
        done: whether the job has ended, be it that some of its locksteps have not been begun.
    """

    def __init__(self, workplace: Workplace) -> None:
        for info in workplace.datasets:
            DATASETS.register(info)
        ORIGINS.update(workplace.origins)
        store = RunStore(workplace.store_uri, keep_predictions=workplace.keep_predictions)
        self._observers = Observers(workplace.observers, store.files, workplace.checkpoints)
        self._runner = LockstepRunner(workplace, store, self._observers)
        for registry, members in workplace.plugins.items():
            for name, packed in members.items():
                plugin = packed.unpacked() if isinstance(packed, PackedPlugin) else packed
                REGISTRIES[registry].register(name, plugin.member, plugin.declaration)
        self.done = True

    def assign(self, job: Job) -> None:
        """Takes up a job; whatever was under way is given up."""
        self._job, self._parts, self._at = job, job.parts(), 0
        self._ends_at = time.monotonic() + _SECONDS_PER_JOB
        self._held: deque[tuple[int, Report | Future[Report]]] = deque()
        self._runner.take_up(self._parts[0], job)
        self.done = False

    def step(self) -> list[tuple[int, Report]]:
        """Goes on with the job for a second or so.

        Returns:
            What there is to say, in order, each time with which of the job's parts it is about. What comes after an end
            that is still being recorded is said at the next step.
        """
        until = time.monotonic() + _SECONDS_PER_STEP
        while True:
            report = self._runner.step(until)
            self._held.append((self._at, report))
            if not (isinstance(report, Future) or ends(report)):
                break
            self._at += 1
            now = time.monotonic()
            self.done = self._at == len(self._parts) or now > self._ends_at
            if self.done:
                break
            self._runner.take_up(self._parts[self._at], self._job)
            self._held.append((self._at, Begun()))
            if now > until:
                break
        if self.done:
            self._runner.wait_until_written()
        return list(self._said())

    def _said(self) -> Iterator[tuple[int, Report]]:
        while self._held:
            part, report = self._held[0]
            if isinstance(report, Future):
                if not report.done():
                    return
                report = report.result()
            self._held.popleft()
            yield part, report

    def notes(self) -> tuple[Noted, ...]:
        """What the user is to know of observers."""
        return self._observers.notes()

    def stop(self) -> None:
        """Keeps what has been trained so far, for the next launch to go on with."""
        self._runner.stop()
        self._runner.wait_until_written()
        self._observers.close(_SECONDS_TO_STOP)
