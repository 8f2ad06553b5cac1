"""A sweep in this process alone: the jobs of a feed one after another, without Ray."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay, RunFed
from clops_sweep.execution.jobs import MakeWorkplace, Resources
from clops_sweep.execution.run_log import mark_output, print_for
from clops_sweep.execution.worker.job_runner import JobRunner

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_STOP = 20.0
"""Seconds to wait for the current epoch to end, so that the run can be checkpointed."""


@contextmanager
def workers(
    frames: Mapping[DataKey, FrameSet], resources: Resources, display: Display, make_workplace: MakeWorkplace
) -> Iterator[RunFed]:
    """Yield a function that runs the jobs of a feed; see `on_ray.workers`."""
    del resources
    workplace = make_workplace(frames)

    def run_fed(feed: Feed, relay: Relay) -> None:
        with _marked_output():
            _run(feed, JobRunner(workplace), display, relay)
        relay.check()

    yield run_fed


def _run(feed: Feed, runner: JobRunner, display: Display, relay: Relay) -> None:
    display.stops_in_order = True
    try:
        while not (display.interrupted or relay.store_error):
            job = feed.next_job(1)
            if job is None:  # all jobs are done, or a trial waits for runs that another trial has just recorded
                time.sleep(0 if feed.finished else _SECONDS_BETWEEN_LOOKS)
                return
            parts = job.parts()
            relay.started(parts[0])
            runner.assign(job)
            while not runner.done:
                if display.interrupted or relay.store_error:
                    if display.interrupted:
                        display.stopping()
                    _stop(runner, _SECONDS_TO_STOP)
                    return
                reports = runner.step(_SECONDS_BETWEEN_LOOKS)
                found = runner.rows_and_events()
                relay.pass_on(parts, found["rows"], reports, found["events"], relay.started)
                relay.look()
            feed.returned(job)
    except BaseException:
        _stop(runner, 0)
        raise
    finally:
        display.stops_in_order = False


def _stop(runner: JobRunner, seconds: float) -> None:
    """Stop the current run with a checkpoint, and wait for it at most a number of seconds: it may hang in an epoch."""
    thread = threading.Thread(target=runner.stop, name="stopping", daemon=True)
    thread.start()
    thread.join(seconds)


@contextmanager
def _marked_output() -> Iterator[None]:
    """Mark each line printed in the block with the current runs, as workers do."""
    before = sys.stdout, sys.stderr
    mark_output()
    try:
        yield
    finally:
        print_for(())
        sys.stdout, sys.stderr = before
