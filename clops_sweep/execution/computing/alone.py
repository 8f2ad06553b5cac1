"""A sweep in this process alone: the jobs of a feed one after another, without Ray."""

from __future__ import annotations

import _thread
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay, RunFed
from clops_sweep.execution.jobs import Job, MakeWorkplace
from clops_sweep.execution.reports import Begun, Report
from clops_sweep.execution.run_log import mark_output, print_for
from clops_sweep.execution.worker.job_runner import JobRunner

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_STOP = 20.0
"""Seconds to wait for the current epoch to end, so that the run can be checkpointed."""


class Watch(Protocol):
    """Follows the jobs that this process computes, and may end its work early."""

    def begun(self, job: Job) -> None:
        """Record that a job started."""

    def heard(self, reports: Sequence[tuple[Job, Begun | Report]]) -> None:
        """Record the reports of a step, each with its job."""

    def should_end(self) -> bool:
        """Return whether to stop; the running job is checkpointed and returned to its feed."""


@contextmanager
def workers(
    frames: Mapping[DataKey, FrameSet],
    display: Display,
    make_workplace: MakeWorkplace,
    watch: Watch | None = None,
) -> Iterator[RunFed]:
    """Yield a function that runs the jobs of a feed; see `on_ray.workers`.

    Args:
        frames: the prepared data.
        display: shows the progress.
        make_workplace: creates the settings of this process.
        watch: may end the work early; None to compute all jobs.
    """
    runner = JobRunner(make_workplace(frames))

    def run_fed(feed: Feed, relay: Relay) -> None:
        lock = threading.Lock()
        with _marked_output(), _looked_after(display, relay, lock):
            _run(feed, runner, display, relay, lock, watch)
        relay.check()

    yield run_fed


def _run(
    feed: Feed, runner: JobRunner, display: Display, relay: Relay, lock: threading.Lock, watch: Watch | None
) -> None:
    while not (display.interrupted or relay.store_error):
        jobs = feed.next_jobs(1)
        if jobs is None:  # all jobs are done, or a trial waits for runs that another trial has just recorded
            time.sleep(0 if feed.finished else _SECONDS_BETWEEN_LOOKS)
            return
        relay.started(jobs[0])
        if watch is not None:
            watch.begun(jobs[0])
        runner.assign(jobs)
        while not runner.done:
            if display.interrupted or relay.store_error:
                runner.stop()
                return
            sent = runner.step()
            with lock:
                reports = relay.pass_on(jobs, sent)
            if watch is not None:
                watch.heard(reports)
                if watch.should_end():
                    runner.stop()
                    break
        relay.returned(jobs)
        if watch is not None and watch.should_end():
            return


@contextmanager
def _looked_after(display: Display, relay: Relay, lock: threading.Lock) -> Iterator[None]:
    """Write rows that are due in a thread, and interrupt this one if it does not stop in time: an epoch may hang.

    An error of the thread stops the sweep in order and is raised at the end of the block: without the thread, no row
    would be written before the end.
    """
    ended = threading.Event()
    errors: list[Exception] = []
    is_main = threading.current_thread() is threading.main_thread()

    def look() -> None:
        stop_at = math.inf
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            with lock:
                relay.look()
            if display.interrupted and stop_at == math.inf:
                display.stopping()
                stop_at = time.monotonic() + _SECONDS_TO_STOP
            elif is_main and time.monotonic() > stop_at:
                _thread.interrupt_main()
                return

    def look_until_an_error() -> None:
        try:
            look()
        except Exception as error:
            errors.append(error)
            if is_main and not display.interrupted:
                _thread.interrupt_main()

    thread = threading.Thread(target=look_until_an_error, name="looking", daemon=True)
    thread.start()
    display.stops_in_order = True
    try:
        yield
    finally:
        display.stops_in_order = False
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def _marked_output() -> Iterator[None]:
    """Mark each line printed in the block with the current run, as workers do."""
    before = sys.stdout, sys.stderr
    mark_output()
    try:
        yield
    finally:
        print_for("")
        sys.stdout, sys.stderr = before
