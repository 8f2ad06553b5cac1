"""The driver: hands jobs to workers, and records what they compute in the store. Imports neither torch nor Ray."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clops_sweep import machine
from clops_sweep.data.catalog import DATASETS, DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.origins import ORIGINS
from clops_sweep.errors import StoreError
from clops_sweep.execution.computing.workers import RayWorkers, ThisProcess, ThisProcessFirst, Workers
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.display.terminal import output_to
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay, RunFed
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Resources, SharedFrames, Workplace
from clops_sweep.execution.observers.requested import requested_observers
from clops_sweep.execution.observers.thread import SECONDS, Observers
from clops_sweep.store.rows import storing
from clops_sweep.store.run_logs import log_folder
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.writing import merge_parts

if TYPE_CHECKING:
    from clops_sweep.execution.plugins import PackedPlugin

_SECONDS_TO_STOP = 5.0  # for observers, at the end of an interrupted launch


Feeds = Callable[[Path], Generator[Feed, None, None]]
"""Creates the feeds of a sweep, given the log file."""


def run_feeds(
    feeds: Feeds,
    reserved: Collection[str],
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    display: Display,
    workers: Workers,
) -> None:
    """Run the jobs of some feeds, one feed after another; no cluster is started without jobs.

    It ends early if the user interrupts it, with `display.interrupted` set.

    Args:
        feeds: creates the feeds.
        reserved: the runs that no other launch may compute meanwhile: those that can start now.
        frames: the prepared data of all runs.
        store: the store for the results.
        resources: the resources of a job.
        display: shows the progress.
        workers: what computes the jobs.

    Raises:
        UsageError: a plug-in cannot be sent to workers, there is no cluster at the address, or no trial fits on it.
        StoreError: results can no longer be read or written; unfinished runs stay pending.
    """
    plugins = _packed_plugins() if isinstance(workers, RayWorkers) else {}
    software = machine.software()
    observers = Observers(requested_observers(resources.observe, store), display.warn)
    retries = Retries(
        store,
        resources.max_retries,
        lambda config: frames[config.data_key].data_hash,
        software,
        observers.tell,
        lambda config: frames[config.data_key].prepared_hash,
    )
    with storing(store):
        log = new_log(store)
    # At the end, from the last to the first: observers hear of the last runs, rows are written on an interrupt, workers
    # end, the feeds end, all rows are written and small parts merged, the runs are free again, output is as before.
    with (
        output_to(log),
        RunsUnderWay(store, reserved, log) as under_way,
        writing(store),
        contextlib.closing(feeds(log)) as all_feeds,
    ):
        unfinished = (feed for feed in all_feeds if not _is_over(feed))
        first = next(unfinished, None)
        if first is None:
            return
        witness = str(log) if resources.address and store.files.local else ""
        workplace = partial(make_workplace, frames, store, resources, plugins, software, witness)
        with (
            _workers(frames, resources, display, workplace, workers) as run_fed,
            _written_if_interrupted(store),
            closing(observers, display),
        ):
            for feed in itertools.chain([first], unfinished):
                relay = Relay(store, display, feed, observers, under_way, retries)
                # One call may end early: all workers died, Ray took over from this process, or one run of Tune is full.
                while not (display.interrupted or _is_over(feed)):
                    run_fed(feed, relay)
                if display.interrupted:
                    return


def _workers(
    frames: Mapping[DataKey, FrameSet],
    resources: Resources,
    display: Display,
    make: partial[Workplace],
    workers: Workers,
) -> AbstractContextManager[RunFed]:
    """Return what computes the jobs: this process, Ray, or one after the other; show which, and why.

    `alone_first` shows that itself, once it knows.
    """
    here = partial(make, alone=True)
    match workers:
        case ThisProcess():
            display.warn(str(workers))
            from clops_sweep.execution.computing import alone

            return alone.workers(frames, display, here)
        case ThisProcessFirst(rest):
            from clops_sweep.execution.computing import alone_first

            return alone_first.workers(frames, resources, display, here, make, rest)
        case RayWorkers():
            display.warn(str(workers))
            from clops_sweep.execution.computing import on_ray

            return on_ray.workers(frames, resources, display, make)


@contextmanager
def _written_if_interrupted(store: RunStore) -> Iterator[None]:
    """Write all added rows on an interrupt, before the cluster ends: if its processes have died, so may this one."""
    try:
        yield
    except KeyboardInterrupt:
        with storing(store):
            store.flush()
        raise


@contextmanager
def writing(store: RunStore) -> Iterator[None]:
    """Write all added rows on exit, also after an error, and merge small parts."""
    try:
        yield
    finally:
        with storing(store):
            store.flush()
            if store.files.local:
                with store.locked():
                    merge_parts(store.parts)


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
    log = log_folder(store) / f"{time.strftime('%Y%m%d-%H%M%S')}-{socket.gethostname()}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def make_workplace(
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    plugins: Mapping[str, Mapping[str, PackedPlugin]],
    software: Mapping[str, Any],
    witness: str,
    shared: SharedFrames,
    *,
    alone: bool = False,
) -> Workplace:
    """Return the workers' settings; `shared` are the frames, or references to them in Ray's object store.

    `alone` is whether they are for this process, in which all plug-ins are registered.
    """
    return Workplace(
        frames=shared,
        data_hashes={key: frame_set.data_hash for key, frame_set in frames.items()},
        store_uri=store.uri,
        software=software,
        plugins=plugins,
        on_gpu=bool(resources.gpus_per_trial),
        witness=witness,
        checkpoint_every=resources.checkpoint_every,
        epoch_timeout=resources.epoch_timeout,
        datasets=() if alone else tuple(DATASETS.added.values()),
        origins={} if alone else dict(ORIGINS),
        is_observed=bool(resources.observe),
        keep=store.keep,
    )
