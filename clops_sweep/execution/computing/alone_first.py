"""A sweep that begins in this process, and goes on with Ray once that ends sooner."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import StoreError, UsageError
from clops_sweep.execution.computing import alone
from clops_sweep.execution.computing.ray_pays import Rest
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay, RunFed
from clops_sweep.execution.jobs import Job, MakeWorkplace, Resources, without_ray
from clops_sweep.execution.reports import Begun, Finished, Paused, Report, Retrying, Running


class _Watch:
    """Measures the runs that this process computes, and decides when Ray takes over."""

    def __init__(self, rest: Rest, display: Display) -> None:
        self._rest = rest
        self._display = display
        self._job: Job | None = None
        self._began = 0.0
        self._cpu_began = 0.0
        self._said = False
        self._feed: Feed | None = None
        self._left_out = 0
        """Number of runs that the feed has left out so far."""
        if rest.known:
            self._say()
        else:
            display.warn("workers: this process computes the first run, which shows whether starting Ray pays")

    def follow(self, feed: Feed) -> None:
        """Subtract the runs that a feed leaves out from now on, unless it is being followed."""
        if feed is not self._feed:
            self._feed = feed
            self._left_out = 0
        self._subtract_left_out()

    def _subtract_left_out(self) -> None:
        if self._feed is not None:
            for run in self._feed.left_out[self._left_out :]:
                self._rest.left_out(run)
            self._left_out = len(self._feed.left_out)

    def begun(self, job: Job) -> None:
        """Record that this process started a job."""
        self._job = job
        self._began = time.monotonic()
        self._cpu_began = time.process_time()

    def heard(self, reports: Sequence[tuple[Job, Begun | Report]]) -> None:
        """Record the reports of a step."""
        for job, report in reports:
            match report:
                case Begun():
                    self.begun(job)
                case Running():
                    pass
                case Retrying():
                    self._attempted()
                case Paused(share=share):
                    self._rest.paused(job, self._attempted(), share)
                case _:
                    self._ended(job, report)
        self._subtract_left_out()
        if any(isinstance(report, Finished | Paused) for _, report in reports):
            self._say()

    def _attempted(self) -> float:
        """Record the end of an attempt, and return its seconds."""
        seconds = time.monotonic() - self._began
        self._rest.computed(seconds, time.process_time() - self._cpu_began)
        self._job = None
        return seconds

    def _ended(self, job: Job, report: Report) -> None:
        whole = report.seconds if isinstance(report, Finished) else None
        self._rest.ended(job, self._attempted(), whole)

    def _say(self) -> None:
        """Say once that this process computes the rest."""
        here, _ = self._rest.seconds()
        if not self._said and here > 0 and not self._rest.ray_pays():
            self._display.warn(self._rest.in_words())
            self._said = True

    def should_end(self) -> bool:
        """Return whether Ray should compute the rest."""
        return self._rest.ray_pays(self._job, self._so_far())

    def _so_far(self) -> float:
        return 0.0 if self._job is None else time.monotonic() - self._began

    def say_switch(self) -> None:
        """Say why Ray takes over."""
        self._display.warn(self._rest.in_words(self._job, self._so_far()))
        self._job = None


@contextmanager
def workers(
    frames: Mapping[DataKey, FrameSet],
    resources: Resources,
    display: Display,
    of_this_process: MakeWorkplace,
    of_ray: MakeWorkplace,
    rest: Rest,
) -> Iterator[RunFed]:
    """Yield a function that runs the jobs of a feed; see `on_ray.workers`.

    A run that is under way when Ray takes over goes on from a checkpoint, with the same numbers.

    Args:
        frames: the prepared data.
        resources: the resources of a job.
        display: shows the progress.
        of_this_process: creates the settings for this process.
        of_ray: creates the settings for workers of Ray.
        rest: the runs to compute, and what is known of their time.

    Raises:
        StoreError: Ray cannot take over.
    """
    watch = _Watch(rest, display)
    run_with_ray: RunFed | None = None
    with ExitStack() as until_the_end:
        until_the_switch = until_the_end.enter_context(ExitStack())
        run_here: RunFed | None = None

        def run(feed: Feed, relay: Relay) -> None:
            nonlocal run_here, run_with_ray
            watch.follow(feed)
            if run_with_ray is not None:
                run_with_ray(feed, relay)
            elif watch.should_end():
                watch.say_switch()
                run_here = None
                until_the_switch.close()  # drops its networks
                run_with_ray = until_the_end.enter_context(_on_ray(frames, resources, display, of_ray))
            else:
                if run_here is None:
                    run_here = until_the_switch.enter_context(alone.workers(frames, display, of_this_process, watch))
                run_here(feed, relay)

        yield run


@contextmanager
def _on_ray(
    frames: Mapping[DataKey, FrameSet], resources: Resources, display: Display, make_workplace: MakeWorkplace
) -> Iterator[RunFed]:
    """Yield what runs the jobs with Ray.

    Raises:
        StoreError: Ray does not start. Runs have been computed, so this ends the launch, and the same one continues.
    """
    from clops_sweep.execution.computing import on_ray

    with ExitStack() as until_the_end:
        try:
            run_fed = until_the_end.enter_context(on_ray.workers(frames, resources, display, make_workplace))
        except UsageError as error:
            raise StoreError(f"{error}; {without_ray()} computes without Ray") from None
        yield run_fed
