"""A sweep on a private or running Ray cluster.

Importing this module takes seconds, so a launch imports it only if runs are pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

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
from clops_sweep.execution.jobs import MakeWorkplace, Resources

_ENDED_TOO = (
    "Ray is ending, too, as by a signal to all processes: what is finished is recorded, and the same sweep, started "
    "again, goes on from the last checkpoints"
)


def warn_of_cluster(display: Display, text: str) -> None:
    """Show a warning about the cluster, or that it has ended as well if the sweep is stopping.

    A signal to the whole process group, as `timeout` sends it, also ends Ray.
    """
    display.warn(_ENDED_TOO if display.interrupted else text)


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
    display.starting(start_in_words(resources))
    with cluster(resources, frames, partial(warn_of_cluster, display)):
        display.starting(f"starting workers (about {SECONDS_OF_WORKERS:.0f} s)")
        # The start of the cluster has already imported the slow modules.
        from clops_sweep.execution.computing.tune import run_fed

        workplace = make_workplace({key: ray.put(frame_set) for key, frame_set in frames.items()})
        if workplace.witness:
            check_shared(workplace.witness, workplace.store_uri)

        def run(feed: Feed, relay: Relay) -> None:
            run_fed(feed, workplace, resources, display, relay)

        yield run
