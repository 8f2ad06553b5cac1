"""The sweep: Ray Tune schedules the pending runs; the workers record them; the store is the truth."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray

from clops_sweep import machine
from clops_sweep.data.catalog import DATASETS, DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.origins import ORIGINS
from clops_sweep.errors import StoreError
from clops_sweep.execution.cluster.start import cluster, start_in_words
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.display.terminal import output_to
from clops_sweep.execution.feed import GridFeed
from clops_sweep.execution.jobs import Job, Resources, Workplace, make_jobs, shuffled
from clops_sweep.execution.observers.requested import requested_observers
from clops_sweep.execution.observers.thread import SECONDS, Observers
from clops_sweep.execution.plugins import PackedPlugin, packed_plugins
from clops_sweep.execution.retries import Retries
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.background import BackgroundCompaction
from clops_sweep.store.locks import held
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore

_SECONDS_TO_STOP = 5.0  # for observers, at the end of an interrupted launch
_JOBS_TO_SHUFFLE = 32  # so that two sweeps seldom meet


@contextmanager
def only_sweep(store: RunStore) -> Iterator[bool | None]:
    """Yield whether no other sweep works on the store, or None if unknown. Only the order of runs depends on it.

    Two sweeps that went through the same runs in the same order would do each of them at the same time.

    Raises:
        UsageError: the parts of the store are being rewritten.
    """
    if not store.files.local:
        yield None
        return
    with store.rewriting(shared=True), held(store.log_folder / "lock") as alone:
        yield alone


def run_sweep(
    rounds: Iterable[Sequence[PlannedRun]],
    runs: Sequence[PlannedRun],
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    display: Display,
) -> None:
    """Runs what is pending, on this machine or a cluster, and what becomes pending by that.

    Where the user interrupts it, it ends early, with `display.interrupted` set.

    Args:
        rounds: runs, all with an id. The next round is asked for when one has run: the task order of some runs depends
            on others.
        runs: those of all rounds, as far as they are known.
        frames: the prepared data of each of them.
        store: where the workers record what they have finished.
        resources: what a trial takes.
        display: shows what happens.

    Raises:
        UsageError: a plug-in cannot be handed to workers; no cluster at the address, or it cannot hold a single trial.
        StoreError: results can no longer be written; what is not finished is still pending.
    """
    plugins = packed_plugins()
    observers = Observers(requested_observers(resources.observe, store), display.warn)
    with storing(store):
        log = new_log(store)
    display.begin([run.config for run in runs], log)
    display.starting(start_in_words(resources))
    with (
        only_sweep(store) as alone,
        output_to(log),
        cluster(resources, frames, display.warn),
        closing(observers, display),
    ):
        display.starting("starting workers")
        workplace = make_workplace(frames, store, resources, plugins)
        for pending in rounds:
            locksteps = make_jobs(pending, resources.runs_in_lockstep)
            if not alone:
                locksteps = shuffled(locksteps, at_least=1 if alone is None else _JOBS_TO_SHUFFLE)
            _run_locksteps(locksteps, workplace, store, resources, display, observers)
            if display.interrupted:
                return


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
    """A file for what Ray prints during a sweep that starts now."""
    log = store.log_folder / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def make_workplace(
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    resources: Resources,
    plugins: Mapping[str, Mapping[str, PackedPlugin]],
) -> Workplace:
    """What the workers need to know, with the frames in the object store of the cluster that is running."""
    return Workplace(
        frames={key: ray.put(frame_set) for key, frame_set in frames.items()},
        data_hashes={key: frame_set.data_hash for key, frame_set in frames.items()},
        store_uri=store.uri,
        checkpoints=store.checkpoint_folder,
        software=machine.software(),
        plugins=plugins,
        max_retries=resources.max_retries,
        checkpoint_every=resources.checkpoint_every,
        epoch_timeout=resources.epoch_timeout,
        sweep=uuid.uuid4().hex,
        datasets=tuple(DATASETS.added.values()),
        origins=dict(ORIGINS),
        is_observed=bool(resources.observe),
        keep=store.keep,
    )


def _run_locksteps(
    locksteps: Sequence[Job],
    workplace: Workplace,
    store: RunStore,
    resources: Resources,
    display: Display,
    observers: Observers,
) -> None:
    """Runs some locksteps, and those whose worker died once more, as long as the policy says so."""
    from clops_sweep.execution.tune import run_fed  # slow to import, but for what the start of the cluster has imported

    retries = Retries(store, resources.max_retries, workplace.data_hash, workplace.software, observers.tell)
    feed = GridFeed(locksteps, store, retries, display, may_grow=resources.address is not None)
    with BackgroundCompaction(store) as compaction:
        while not feed.finished:
            run_fed(feed, workplace, resources, display, compaction, observers)
            if display.interrupted:
                return
    with storing(store):
        store.compact_if_many()
    if feed.error:
        raise StoreError(feed.error)
