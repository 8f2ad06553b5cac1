"""What Tune runs next in a search.

Tune's own interface for what to run next (`ray.tune.search.Searcher`) is used, so that a search has the cluster, the
workers, the retries and the display of any sweep, and a worker that becomes free gets its next job at once: a batch of
trials would wait for the slowest of each. What comes next is said by `SearchFeed`, and not by Tune's wrapper around
Optuna, which keeps its study in memory, takes one run for a trial, and knows of Tune's trials only: here a trial is
several runs, the study outlives the driver, and what a run is worth is what the store holds of it.
"""

from __future__ import annotations

from typing import Any

import clops_sweep.sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray.tune.search import Searcher

from clops_sweep.search.feed import SearchFeed
from clops_sweep.sweep.cluster import places
from clops_sweep.sweep.display import Display
from clops_sweep.sweep.jobs import Resources, Workplace
from clops_sweep.sweep.tune import Watcher, run_tune


def run_fed(feed: SearchFeed, workplace: Workplace, resources: Resources, display: Display) -> None:
    """One Tune run over the jobs of a feed, until it has no more.

    Raises:
        StoreError: one run after the other could not be recorded.
    """
    watcher = FeedWatcher(workplace, display, feed)
    run_tune(workplace, resources, watcher, search_alg=FeedSearcher(feed, resources))


class FeedSearcher(Searcher):
    """What Tune asks for the next job."""

    def __init__(self, feed: SearchFeed, resources: Resources) -> None:
        super().__init__()
        self._feed = feed
        self._resources = resources

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its searchers so that it can restore a sweep, which is never asked of it."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> FeedSearcher:
        return self

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]  # as Tune documents it
        """The next job; None if there is none now, "FINISHED" if there never will be."""
        job = self._feed.next_job(places(self._resources))
        if job is not None:
            return {"job": job}
        return Searcher.FINISHED if self._feed.finished else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the watcher is called too, with the error as well."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save: the study and the store have it."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""


class FeedWatcher(Watcher):
    """Passes the reports of trials on to the feed, too."""

    def __init__(self, workplace: Workplace, display: Display, feed: SearchFeed) -> None:
        super().__init__(workplace, display)
        self._feed = feed

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A step of a trial has ended."""
        super().on_trial_result(iteration, trials, trial, result, **info)
        self._feed.report(self._job(trial), result["report"])

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker died, or raised what the trainable could not catch."""
        super().on_trial_error(iteration, trials, trial, **info)
        self._feed.died(self._job(trial), self.died.pop(trial.config["job"]).error)
