"""Runs a search on Ray Tune."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import StoreError, several
from clops_sweep.execution.cluster.start import cluster, start_in_words
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.display.terminal import output_to
from clops_sweep.execution.driver import closing, make_workplace, new_log
from clops_sweep.execution.jobs import Resources, make_jobs
from clops_sweep.execution.observers.requested import requested_observers
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.plugins import packed_plugins
from clops_sweep.execution.retries import Retries
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.search.feed import SearchFeed
from clops_sweep.search.study import SearchStudy
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.background import BackgroundCompaction


def run_search(
    space: SearchSpace,
    study: SearchStudy,
    frames: Mapping[DataKey, FrameSet],
    data_hash: Callable[[RunConfig], str | None],
    store: RunStore,
    resources: Resources,
    display: Display,
    *,
    retry_failed: bool,
) -> None:
    """Runs the trials that a study is still to have, on this machine or a cluster.

    Args:
        space: the search space.
        study: its study, of which this process is the only driver.
        frames: the prepared data of every run that there may be.
        data_hash: content hash of the data that a config runs on.
        store: where the workers record what they have finished.
        resources: what a trial of Tune, a job, takes.
        display: shows what happens.
        retry_failed: whether runs that have failed are taken up again.

    Raises:
        UsageError: a plug-in cannot be handed to workers; no cluster at the address, or it cannot hold a single trial.
        StoreError: results can no longer be written, or what becomes of trials; both go on from there.
    """
    plugins = packed_plugins()
    observers = Observers(requested_observers(resources.observe, store), display.warn)
    with storing(store):
        log = new_log(store)
    with output_to(log):
        software: dict[str, Any] = {}
        feed = SearchFeed(
            space,
            study,
            store,
            data_hash,
            partial(make_jobs, runs_in_lockstep=resources.runs_in_lockstep),
            Retries(store, resources.max_retries, data_hash, software, observers.tell),
            retry_failed=retry_failed,
            display=display,
        )
        runs = [space.base.replace(seed=seed) for seed in space.seeds] * study.left
        display.begin(runs, log, f"search {space.name!r}: {several(study.left, 'trial')}, up to ")
        feed.begin()
        if not feed.finished:  # it is when the store had all that was missing
            display.starting(start_in_words(resources))
            with cluster(resources, frames, display.warn), closing(observers, display):
                display.starting("starting workers")
                # What takes seconds of this, the start of the cluster has imported.
                from clops_sweep.execution.tune import run_fed

                workplace = make_workplace(frames, store, resources, plugins)
                software.update(workplace.software)
                with BackgroundCompaction(store) as compaction:
                    while not (feed.finished or display.interrupted):
                        run_fed(feed, workplace, resources, display, compaction, observers)
            with storing(store):
                store.compact_if_many()
    if feed.error:
        raise StoreError(feed.error)
