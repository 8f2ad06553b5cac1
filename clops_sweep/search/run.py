"""Runs a search on Ray Tune.

Tune's own way to be told what to run next (`ray.tune.search.Searcher`) is used, so that a search has the cluster, the
workers, the retries and the display of any sweep, and a worker that becomes free gets its next job at once: a batch of
trials would wait for the slowest of each. What comes next is said by `SearchFeed`, and not by Tune's wrapper around
Optuna, which keeps its study in memory, takes one run for a trial, and hears of Tune's trials only: here a trial is
several runs, the study outlives the driver, and what a run is worth is what the store holds of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from clops_sweep.config import DataKey, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.display import Display
from clops_sweep.errors import StoreError
from clops_sweep.quiet import output_to
from clops_sweep.search.feed import SearchFeed
from clops_sweep.search.study import SearchStudy
from clops_sweep.space import SearchSpace
from clops_sweep.store import RunStore
from clops_sweep.sweep import Resources, Watcher, cluster, make_jobs, make_workplace, new_log, run_tune  # isort: split

import ray
from ray.tune.search import Searcher

from clops_sweep.trainable import Workplace, record_failure, storing

_MOST_PENDING = "1000"


def run_search(
    space: SearchSpace,
    study: SearchStudy,
    frames: Mapping[DataKey, FrameSet],
    data_hash: Callable[[RunConfig], str | None],
    store: RunStore,
    work_folder: Path,
    resources: Resources,
    display: Display,
    *,
    retry: bool,
) -> None:
    """Runs the trials that a study is still to have, on this machine or a cluster.

    Args:
        space: the search space.
        study: its study, of which this process is the only driver.
        frames: the prepared data of every run that there may be.
        data_hash: content hash of the data that a config runs on.
        store: where the workers record what they have finished.
        work_folder: logs.
        resources: what a trial of Tune, a job, takes.
        display: told what happens.
        retry: whether runs that have failed are taken up again.

    Raises:
        BadInput: no cluster at the address, or it cannot hold a single trial.
        StoreError: results can no longer be written, or what becomes of trials; both go on from there.
    """
    log = new_log(work_folder)
    software: dict[str, Any] = {}
    feed = SearchFeed(
        space,
        study,
        store,
        data_hash,
        partial(make_jobs, runs_per_job=resources.runs_per_job),
        lambda job, error: record_failure(store, job, error, software),
        max_retries=resources.max_retries,
        retry=retry,
        display=display,
    )
    display.begin(study.left * len(space.seeds), log)
    feed.begin()
    if not feed.finished:  # it is when the store had all that was missing
        with output_to(log), cluster(resources, frames, display.warn):
            workplace = make_workplace([], frames, store, resources)
            software.update(workplace.software)
            watcher = _FeedWatcher(workplace, display, feed)
            with _many_pending():
                run_tune(workplace, resources, watcher, search_alg=_FeedSearcher(feed, resources))
        with storing(store):
            store.compact_if_many()
    if feed.error:
        raise StoreError(feed.error)


class _FeedSearcher(Searcher):
    """What Tune asks for the next job."""

    def __init__(self, feed: SearchFeed, resources: Resources) -> None:
        super().__init__()
        self._feed = feed
        self._resources = resources

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its searchers so that it can restore a sweep, which is never asked of it."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> _FeedSearcher:
        return self

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]  # as Tune documents it
        """The next job; None if there is none now, "FINISHED" if there never will be."""
        job = self._feed.next_job(self._places())
        if job is not None:
            return {"job": job}
        return Searcher.FINISHED if self._feed.finished else None

    def _places(self) -> int:
        """How many jobs the cluster holds, as it is now."""
        there = ray.cluster_resources()
        needed = {"CPU": self._resources.cpus_per_trial, "GPU": self._resources.gpus_per_trial}
        return int(min((there.get(name, 0) // share for name, share in needed.items() if share), default=1))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The watcher has heard of it already, and of the error too."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save: the study and the store have it."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""


class _FeedWatcher(Watcher):
    """Passes on to the feed, too, what Tune hears from the trials."""

    def __init__(self, workplace: Workplace, display: Display, feed: SearchFeed) -> None:
        super().__init__(workplace, display)
        self._feed = feed

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A step of a trial has ended."""
        super().on_trial_result(iteration, trials, trial, result, **info)
        self._feed.heard(self._job(trial), result)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker died, or raised what the trainable could not catch."""
        super().on_trial_error(iteration, trials, trial, **info)
        self._feed.died(self._job(trial), self.died.pop(trial.config["job"]))


@contextmanager
def _many_pending() -> Iterator[None]:
    """Lets Tune ask for more than one job ahead: the feed knows how many there may be."""
    name = "TUNE_MAX_PENDING_TRIALS_PG"
    before = os.environ.get(name)
    os.environ[name] = before or _MOST_PENDING
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
