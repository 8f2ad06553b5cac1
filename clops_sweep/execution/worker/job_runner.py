"""Execution of jobs: one run after another."""

from __future__ import annotations

import time

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.origins import ORIGINS
from clops_sweep.execution.jobs import Jobs, Workplace
from clops_sweep.execution.reports import Begun, WorkerReport, ends_attempt
from clops_sweep.execution.worker.run_runner import RunRunner
from clops_sweep.experiment.plugins.declarations import Plugin
from clops_sweep.experiment.plugins.registry import REGISTRIES
from clops_sweep.store.run_store import RunStore

SECONDS_PER_STEP = 1.0
_SECONDS_OF_JOBS = 60.0
"""Seconds after which no further run starts, so that other workers get their share."""


class JobRunner:
    """Computes jobs in steps of about a second, which end between two epochs.

    Args:
        workplace: settings of all workers.

    Attributes:
        done: whether the jobs have ended, some of them perhaps without a start.
    """

    def __init__(self, workplace: Workplace) -> None:
        for info in workplace.datasets:
            DATASETS.register(info)
        store = RunStore(workplace.store_uri, keep=workplace.keep)
        store.files.retry_longer()
        self._reports: list[tuple[int, WorkerReport]] = []
        self._runner = RunRunner(workplace, store, self._report)
        for registry, members in workplace.plugins.items():
            for name, packed in members.items():
                plugin = packed if isinstance(packed, Plugin) else packed.unpacked()
                REGISTRIES[registry].register(name, plugin.member, plugin.declaration)
        ORIGINS.update(workplace.origins)  # last: the registering module counts as the origin
        self.done = True

    def assign(self, jobs: Jobs) -> None:
        """Start the first of some jobs, abandoning a running one."""
        self._jobs = jobs
        self._index = 0
        self.done = False
        self._ends_at = time.monotonic() + _SECONDS_OF_JOBS
        self._runner.begin(jobs[0])

    def step(self) -> list[tuple[int, WorkerReport]]:
        """Compute for about a second, and to the end of an epoch.

        Returns:
            Reports in order, each with the index of a job.
        """
        due_at = time.monotonic() + SECONDS_PER_STEP
        self._reports = []
        while not self.done:
            report = self._runner.step(lambda: time.monotonic() >= due_at)
            self._report(report)
            if not ends_attempt(report):
                break
            self._index += 1
            self.done = self._index == len(self._jobs) or time.monotonic() > self._ends_at
            if not self.done:
                self._runner.begin(self._jobs[self._index])
                self._report(Begun())
            if time.monotonic() >= due_at:
                break
        return self._reports

    def _report(self, report: WorkerReport) -> None:
        self._reports.append((self._index, report))

    def stop(self) -> None:
        """Write a checkpoint, from which the next launch continues."""
        self._runner.stop()
