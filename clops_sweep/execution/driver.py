"""The driver: hands pending runs to workers, which record them in the store. Imports neither torch nor Ray."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clops_sweep import machine
from clops_sweep.data.catalog import DATASETS, DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.origins import ORIGINS
from clops_sweep.errors import StoreError
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.display.terminal import output_to
from clops_sweep.execution.feeding.feed import Feed, GridFeed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import HeldFrames, Resources, Workplace, make_jobs, shuffled
from clops_sweep.execution.observers.requested import requested_observers
from clops_sweep.execution.observers.thread import SECONDS, Observers
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.locks import held
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.background import BackgroundCompaction

if TYPE_CHECKING:
    from clops_sweep.execution.plugins import PackedPlugin

_SECONDS_TO_STOP = 5.0  # for observers, at the end of an interrupted launch
_JOBS_TO_SHUFFLE = 32  # so that two sweeps rarely run the same job


@contextmanager
def only_sweep(store: RunStore) -> Iterator[bool | None]:
    """Yield whether no other sweep is running on the store, or None if unknown. Only the order of runs depends on it.

    Two sweeps with the same runs in the same order would compute each of them twice.

    Raises:
        UsageError: the store is being rewritten.
    """
    if not store.files.local:
        yield None
        return
    with store.rewriting(shared=True), held(store.log_folder / "lock") as alone:
        yield alone


Feeds = Callable[[Retries, Path, RunsUnderWay], Generator[Feed, None, None]]
"""Creates the feeds of a sweep, given the retry policy, the log file and the running runs."""


def run_sweep(
    rounds: Iterable[Sequence[PlannedRun]],
    runs: Sequence[PlannedRun],
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    display: Display,
    shard: str = "",
) -> None:
    """Run pending runs, and then those that depend on them, on this machine or a cluster.

    Args:
        rounds: runs with ids. The next round is requested after the previous one, as task orders may depend on it.
        runs: the known runs of all rounds.
        frames: the prepared data of each run.
        store: the store that workers write to.
        resources: the resources of a trial.
        display: shows the progress.
        shard: the shard of the runs, such as "3/16"; empty for all.

    Raises:
        UsageError, StoreError: see `run_feeds`.
    """

    def feeds(retries: Retries, log: Path, leases: RunsUnderWay) -> Generator[Feed, None, None]:
        display.begin([run.config for run in runs], log)
        with only_sweep(store) as alone:
            for pending in rounds:
                locksteps = make_jobs(pending, resources.runs_in_lockstep)
                if not alone:
                    locksteps = shuffled(locksteps, at_least=1 if alone is None else _JOBS_TO_SHUFFLE)
                may_grow = resources.address is not None
                yield GridFeed(locksteps, store, retries, display, may_grow=may_grow, leases=leases)

    run_feeds(feeds, frames, store, resources, display, shard)


def run_feeds(
    feeds: Feeds,
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    display: Display,
    shard: str = "",
) -> None:
    """Run the jobs of some feeds, one feed after another; no cluster is started without jobs.

    It ends early if the user interrupts it, with `display.interrupted` set.

    Raises:
        UsageError: a plug-in cannot be sent to workers, there is no cluster at the address, or no trial fits on it.
        StoreError: results can no longer be written; unfinished runs stay pending.
    """
    plugins = {} if resources.no_ray else _packed_plugins()
    software = machine.software()
    observers = Observers(requested_observers(resources.observe, store), display.warn)
    retries = Retries(
        store, resources.max_retries, lambda config: frames[config.data_key].data_hash, software, observers.tell
    )
    with storing(store):
        log = new_log(store)
    runs_under_way = RunsUnderWay(store, shard)
    with output_to(log), contextlib.closing(feeds(retries, log, runs_under_way)) as made:
        found = (feed for feed in made if not _is_over(feed))
        if (feed := next(found, None)) is None:
            return
        if resources.no_ray:
            from clops_sweep.execution.alone import workers
        else:
            from clops_sweep.execution.on_ray import workers
        witness = str(log) if resources.address and store.files.local else ""
        workplace = partial(make_workplace, frames, store, resources, plugins, software, witness)
        working = workers(frames, resources, display, workplace)
        with working as run_fed, closing(observers, display), runs_under_way as under_way:
            while feed is not None:
                with BackgroundCompaction(store) as compaction:
                    relay = Relay(store, display, feed, compaction, observers, under_way)
                    while not (display.interrupted or _is_over(feed)):
                        run_fed(feed, relay)
                if display.interrupted:
                    return
                with storing(store):
                    store.compact_if_many()
                feed = next(found, None)


def _packed_plugins() -> Mapping[str, Mapping[str, PackedPlugin]]:
    from clops_sweep.execution.plugins import packed_plugins  # with Ray

    return packed_plugins()


def _is_over(feed: Feed) -> bool:
    """Return whether a feed has no more jobs.

    Raises:
        StoreError: an error ended it early.
    """
    if feed.finished and feed.error:
        raise StoreError(feed.error)
    return feed.finished


@contextmanager
def closing(observers: Observers, display: Display) -> Iterator[None]:
    """Wait for observers on exit, at most `SECONDS`.

    Enter it inside of the cluster: when Ray ends before a thread that imports TensorBoard, it ends the process.
    """
    try:
        yield
    finally:
        observers.close(_SECONDS_TO_STOP if display.interrupted else SECONDS)


def new_log(store: RunStore) -> Path:
    """Create the log file of a sweep that starts now."""
    log = store.log_folder / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{socket.gethostname()}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def make_workplace(
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    plugins: Mapping[str, Mapping[str, PackedPlugin]],
    software: Mapping[str, Any],
    witness: str,
    held: HeldFrames,
) -> Workplace:
    """Return the workers' settings; `held` are the frames, or references to them in Ray's object store."""
    alone = resources.no_ray  # by now, all plug-ins are registered
    return Workplace(
        frames=held,
        data_hashes={key: frame_set.data_hash for key, frame_set in frames.items()},
        store_uri=store.uri,
        software=software,
        plugins=plugins,
        on_gpu=bool(resources.gpus_per_trial),
        witness=witness,
        max_retries=resources.max_retries,
        checkpoint_every=resources.checkpoint_every,
        epoch_timeout=resources.epoch_timeout,
        datasets=() if alone else tuple(DATASETS.added.values()),
        origins={} if alone else dict(ORIGINS),
        is_observed=bool(resources.observe),
        keep=store.keep,
    )
