"""A sweep on a private or running Ray cluster.

Importing this module takes seconds, so a launch imports it only if runs are pending.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.execution.cluster.shared_store import check_shared
from clops_sweep.execution.cluster.start import cluster, start_in_words
from clops_sweep.execution.computing.ray_pays import SECONDS_OF_WORKERS
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay, RunFed
from clops_sweep.execution.jobs import MakeWorkplace, Resources, without_ray

_SECONDS_BETWEEN_REMINDERS = 20.0

_ENDED_TOO = (
    "Ray is ending, too, as by a signal to all processes: what is finished is recorded, and the same sweep, started "
    "again, goes on from the last checkpoints"
)


class ClusterWarnings:
    """Shows warnings about the cluster, and ends a sweep that is stopping once the cluster has ended as well.

    A signal to every process, as batch systems send it, also ends Ray. No trial can be checkpointed any more, and Ray
    ends this process within ten seconds.

    Args:
        display: shows the progress.
        in_main_thread: whether the sweep runs in the main thread, which alone can be interrupted.
    """

    def __init__(self, display: Display, *, in_main_thread: bool) -> None:
        self._display = display
        self._in_main_thread = in_main_thread
        self._has_ended = False

    def warn(self, text: str) -> None:
        """Show a warning, or end the sweep; called from another thread."""
        if not self._display.interrupted:
            self._display.warn(text)
        elif not self._has_ended:
            self._has_ended = True
            self._display.warn(_ENDED_TOO)
            if self._in_main_thread:
                _thread.interrupt_main()


@contextmanager
def reminded(
    display: Display,
    what: str,
    seconds: float = _SECONDS_BETWEEN_REMINDERS,
    *,
    has_ended: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Show a slow step, and repeatedly how long it has taken and what else can be done.

    Args:
        display: shows the step.
        what: the step, such as "starting Ray (about 8 s)".
        seconds: seconds between the reminders.
        has_ended: whether the step has ended before the block; nothing is shown afterwards.
    """
    display.starting(what)
    block_has_ended = threading.Event()
    instead = f"{without_ray()} computes in this process, Ctrl-C stops"
    began = time.monotonic()

    def remind() -> None:
        while not block_has_ended.wait(seconds) and not has_ended():
            if not display.interrupted:
                so_far = time.monotonic() - began
                display.starting(f"{what}: {so_far:.0f} s so far, as on a busy machine; {instead}")

    thread = threading.Thread(target=remind, name="reminder", daemon=True)
    thread.start()
    try:
        yield
    finally:
        block_has_ended.set()
        thread.join()


@contextmanager
def workers(
    frames: Mapping[DataKey, FrameSet], resources: Resources, display: Display, make_workplace: MakeWorkplace
) -> Iterator[RunFed]:
    """Yield a function that runs the jobs of a feed, until there are no more or the user interrupts it.

    Args:
        frames: the prepared data.
        resources: the resources of a job, and where it runs.
        display: shows the progress.
        make_workplace: creates the workers' settings, given references to the frames.

    Raises:
        UsageError: no cluster at the address, it cannot hold a single trial, or a node does not see the results.
    """
    warnings = ClusterWarnings(display, in_main_thread=threading.current_thread() is threading.main_thread())
    with ExitStack() as until_the_end:
        with reminded(display, start_in_words(resources)):
            until_the_end.enter_context(cluster(resources, frames, warnings.warn))
        relays: list[Relay] = []
        what = f"starting workers (about {SECONDS_OF_WORKERS:.0f} s)"
        until_the_end.enter_context(
            reminded(display, what, has_ended=lambda: any(relay.has_started for relay in relays))
        )
        # The start of the cluster has already imported the slow modules.
        from clops_sweep.execution.computing.tune import run_fed

        workplace = make_workplace({key: ray.put(frame_set) for key, frame_set in frames.items()})
        if workplace.witness:
            check_shared(workplace.witness, workplace.store_uri)

        def run(feed: Feed, relay: Relay) -> None:
            relays.append(relay)
            run_fed(feed, workplace, resources, display, relay)

        yield run
