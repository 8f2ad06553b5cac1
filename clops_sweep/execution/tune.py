"""One run of Ray Tune over the jobs of a feed: its trainable, the order of trials, its callbacks.

Importing this takes a second, with Tune, so a sweep does it only when there is something to run.

Tune's own interface for what to run next (`ray.tune.search.Searcher`) is used, so that grids and searches have the
workers, the retries and the display in common, and a worker that becomes free gets its next job at once. What comes
next is said by a `Feed`. For a search that is not Tune's wrapper around Optuna, which keeps its study in memory, takes
one run for a trial, and knows of Tune's trials only: here a trial of a study is several runs, the study outlives the
driver, and what a run is worth is what the store holds of it.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from clops_sweep.execution.cluster.start import places
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job, Resources, Workplace
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.ray_internals import worker_deaths
from clops_sweep.execution.reports import WorkerDied, bounded
from clops_sweep.execution.worker.scratch import private_folder
from clops_sweep.store.upkeep.background import BackgroundCompaction


class FirstWithoutWorker(FIFOScheduler):
    """First come, first served, but a worker that is free does not take a trial whose own worker is just starting.

    Tune would then end that other worker and start one for the trial after, which the free worker is there for first as
    well: as long as a trial takes less than the start of a worker, a single one would do all the work.
    """

    def __init__(self, resources: Resources) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._resources = resources

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The next trial.

        Of the places in the cluster, those where no trial is running, but for the one of the free worker, are where
        workers start or are being reset, for the trials that have waited longest.
        """
        live: set[Trial] = tune_controller.get_live_trials()
        if not any(trial.status == Trial.PENDING for trial in live):
            return None
        waiting: list[Trial] = [trial for trial in tune_controller.get_trials() if trial.status == Trial.PENDING]
        running = sum(trial.status == Trial.RUNNING for trial in live)
        taken = places(self._resources) - running - 1
        return waiting[min(max(taken, 0), len(waiting) - 1)]


class ContinualRunTrainable(tune.Trainable):
    """A worker as Tune sees it: a trial is a job, of one whole continual-learning run or many.

    What it does with a job is in `clops_sweep.execution.worker.job_runner`.
    """

    def setup(self, config: dict[str, Any], workplace: Workplace) -> None:  # type: ignore[override]
        """Called once an actor."""
        from clops_sweep.execution.run_log import mark_output
        from clops_sweep.execution.worker.job_runner import JobRunner

        mark_output()
        self._runner = JobRunner(workplace)
        self._assign(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Called when Tune gives this actor its next trial."""
        self._assign(new_config)
        return True

    def _assign(self, config: dict[str, Any]) -> None:
        self._runner.assign(config["job"])
        self.config: dict[str, Any] = {}  # Tune sends it back with every result

    def step(self) -> dict[str, Any]:
        """A second or so of its job; display, feed and observers get what it reports."""
        reports = self._runner.step()
        return {"reports": reports, "events": self._runner.events(), "done": self._runner.done}

    def cleanup(self) -> None:
        """Called when the sweep is interrupted."""
        self._runner.stop()


_NO_MEMORY = "the machine ran out of memory and Ray ended the worker; fewer run at a time with more --cpus-per-trial"
_TIMED_OUT = (
    "TimedOut: an epoch took longer than --epoch-timeout {:g} s, and the worker was ended; the run's log shows where "
    "it was"
)
_SECONDS_TO_HEAR = 2.0  # what a worker reports before an epoch may reach the driver so much later
_JOBS_PER_TUNE_RUN = 2000  # Tune's driver keeps every trial that it has ever seen in memory
_MOST_PENDING = "1000"
_SECONDS_BETWEEN_LOOKS = 1.0


def run_fed(
    feed: Feed,
    workplace: Workplace,
    resources: Resources,
    display: Display,
    compaction: BackgroundCompaction | None = None,
    observers: Observers | None = None,
    under_way: RunsUnderWay | None = None,
) -> None:
    """One Tune run over jobs of a feed, until it has no more or there have been many.

    The compaction gets the number of recorded runs, the observers all events, and `under_way` all reports.

    Raises:
        StoreError: one run after the other could not be recorded.
    """
    trainable = tune.with_resources(
        tune.with_parameters(ContinualRunTrainable, workplace=workplace),
        {"cpu": resources.cpus_per_trial, "gpu": resources.gpus_per_trial},
    )
    watcher = Watcher(workplace, display, feed, compaction, observers, under_way)
    # What Tune keeps is of no use to anybody, the store is the truth. It is not to be in the way of what goes there.
    searcher = FeedSearcher(feed, resources)
    with private_folder() as files, _many_pending(), worker_deaths(display.warn):
        tuner = tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=FirstWithoutWorker(resources),
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=lambda trial: str(trial.trial_id),
                trial_dirname_creator=lambda trial: str(trial.trial_id),
            ),
            run_config=tune.RunConfig(
                name=files.name,
                storage_path=str(files.parent),
                failure_config=tune.FailureConfig(max_failures=0, fail_fast=False),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=[watcher],
                verbose=0,
            ),
        )
        tuner.fit()
    watcher.relay.check()
    if not searcher.ended:  # SIGUSR1 came in the moment in which Tune handles it by itself
        display.interrupted = True


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


class FeedSearcher(Searcher):
    """What Tune asks for the next job.

    Attributes:
        ended: whether Tune has heard that there are no more jobs; else something has stopped it.
    """

    def __init__(self, feed: Feed, resources: Resources) -> None:
        super().__init__()
        self._feed, self._resources = feed, resources
        self._left, self.ended = _JOBS_PER_TUNE_RUN, False
        self._places, self._looked_at = 0, -_SECONDS_BETWEEN_LOOKS

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its searchers so that it can restore a sweep, which is never asked of it."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> FeedSearcher:
        return self

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]  # as Tune documents it
        """The next job; None if no job is ready, "FINISHED" if all are done."""
        if time.monotonic() - self._looked_at >= _SECONDS_BETWEEN_LOOKS:  # a question to another process
            self._places, self._looked_at = places(self._resources), time.monotonic()
        job = self._feed.next_job(self._places) if self._left else None
        if job is not None:
            self._left -= 1
            return {"job": job}
        self.ended = self._feed.finished or not self._left
        return Searcher.FINISHED if self.ended else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the watcher is called too, with the error as well."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save: the study and the store have it."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""


class Watcher(tune.Callback):
    """Passes on what trials report, and stops Tune when the user wants it."""

    def __init__(
        self,
        workplace: Workplace,
        display: Display,
        feed: Feed,
        compaction: BackgroundCompaction | None,
        observers: Observers | None,
        under_way: RunsUnderWay | None = None,
    ) -> None:
        self._workplace = workplace
        self._display = display
        self._feed = feed
        self._observers = observers
        self.relay = Relay(display, feed, compaction, observers, under_way)
        self._user_signal = getattr(signal, "SIGUSR1", None)  # Windows has no such signal
        self._before = signal.getsignal(self._user_signal) if self._user_signal else None
        self._stop: Any = None
        self._heard: dict[Any, float] = {}
        self._at: dict[Any, Job] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its callbacks so that it can restore a sweep, which is never asked of it."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Watcher:
        return self

    def setup(self, *arguments: Any, **info: Any) -> None:
        """From here on `on_step_end` is called. Tune has replaced the display's handler of SIGUSR1."""
        if self._user_signal and signal.getsignal(self._user_signal) is not self._before:
            self._stop = signal.signal(self._user_signal, self._before)
        self._display.stops_in_order = True

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Several times a second: the moment to see whether the user wants to stop, or an observer hangs."""
        if self._observers is not None:
            self._observers.look()
        if (self._display.interrupted or self.relay.store_error) and self._display.stops_in_order:
            self._display.stops_in_order = False
            if self._display.interrupted:
                self._display.stopping()
            if self._stop is None:
                raise KeyboardInterrupt
            self._stop(self._user_signal, None)  # what Tune does on that signal: it ends the trials in good order

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """From here on interrupts are ignored."""
        self._display.stops_in_order = False

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker has got its job."""
        self._heard[trial.trial_id] = time.monotonic()
        self._begun(trial, _job(trial).parts()[0])

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A step of a trial has ended."""
        self._heard[trial.trial_id] = time.monotonic()
        job = _job(trial)
        self.relay.pass_on(job.parts(), result["reports"], result["events"], partial(self._begun, trial))
        result["events"].clear()  # Tune keeps the last result of every trial
        if result["done"]:
            self._feed.returned(job)
            self._forget(trial)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker died, or raised what the trainable could not catch."""
        try:
            error = Path(trial.error_file).read_text(errors="replace")
        except (OSError, TypeError):  # there is no such file, or none that could be written
            error = "the worker died"
        if "low on memory" in error:  # Ray's words, before pages of advice; the last line is what `status` shows
            error = f"{error.rstrip()}\n{_NO_MEMORY}"
        job = _job(trial)
        death = WorkerDied(bounded(error))
        limit, silent = self._workplace.epoch_timeout, time.monotonic() - self._heard.get(trial.trial_id, math.inf)
        if limit is not None and silent > limit - _SECONDS_TO_HEAR and _NO_MEMORY not in error:
            death = WorkerDied(_TIMED_OUT.format(limit), timed_out=True)
        self.relay.report(self._at.get(trial.trial_id, job.parts()[0]), death)
        self._feed.died(job, death)
        self._forget(trial)

    def _begun(self, trial: Any, part: Job) -> None:
        self._at[trial.trial_id] = part
        self.relay.started(part)

    def _forget(self, trial: Any) -> None:
        for known in (self._at, self._heard):
            known.pop(trial.trial_id, None)


def _job(trial: Any) -> Job:
    job: Job = trial.config["job"]
    return job
