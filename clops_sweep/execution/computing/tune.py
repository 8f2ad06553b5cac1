"""Ray Tune over the jobs of a feed: trainable, scheduler and callbacks.

Importing Tune takes a second, so a sweep imports this module only if runs are pending.

A `Feed` decides the next job through Tune's interface `ray.tune.search.Searcher`, so that grids and searches share
workers, retries and display, and a free worker gets its next job at once. Tune's wrapper of Optuna is not used: it
keeps the study in memory and has one run per trial, while here a trial has several runs, the study is persistent, and
values come from the store.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray import tune
from ray.exceptions import RayError
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from clops_sweep.execution.cluster.start import places
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.jobs import Jobs, Resources, Workplace
from clops_sweep.execution.reports import AttemptFailed, bounded
from clops_sweep.execution.worker.scratch import private_folder
from clops_sweep.store.rows import last_line


class FirstWithoutWorker(FIFOScheduler):
    """First come, first served, except that a free worker does not take a trial whose own worker is starting.

    Tune would then end the starting worker and start one for the next trial, which the free worker would take as well:
    with trials shorter than the start of a worker, a single worker would do all the work.
    """

    def __init__(self, resources: Resources, is_stopping: Callable[[], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._resources, self._is_stopping = resources, is_stopping

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Return the next trial; None if the sweep is stopping.

        Places in the cluster without a running trial, except that of the free worker, have workers that are starting or
        being reset, for the trials that have waited longest.
        """
        live: set[Trial] = tune_controller.get_live_trials()
        if self._is_stopping() or not any(trial.status == Trial.PENDING for trial in live):
            return None
        waiting: list[Trial] = [trial for trial in tune_controller.get_trials() if trial.status == Trial.PENDING]
        running = sum(trial.status == Trial.RUNNING for trial in live)
        with_own_worker = max(places(self._resources) - running - 1, 0)
        first_without = min(with_own_worker, len(waiting) - 1)
        return waiting[first_without]


class ContinualRunTrainable(tune.Trainable):
    """The Trainable: a trial is one or more jobs, each a whole continual-learning run.

    `clops_sweep.execution.worker.job_runner` does the work.
    """

    def setup(self, config: dict[str, Any], workplace: Workplace) -> None:  # type: ignore[override]
        """Set up the actor, once."""
        from clops_sweep.execution.run_log import mark_output
        from clops_sweep.execution.worker.job_runner import JobRunner

        mark_output()
        self._runner = JobRunner(workplace)
        self._assign(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the actor's next trial."""
        self._assign(new_config)
        return True

    def _assign(self, config: dict[str, Any]) -> None:
        self._runner.assign(config["jobs"])
        self.config: dict[str, Any] = {}  # Tune returns it with every result

    def step(self) -> dict[str, Any]:
        """Work on the jobs for about a second, and return the reports for the driver."""
        reports = self._runner.step()
        return {"reports": reports, "done": self._runner.done}

    def cleanup(self) -> None:
        """Stop when the sweep is interrupted."""
        self._runner.stop()


_NO_MEMORY = (
    "OutOfMemory: the machine ran out of memory and Ray ended the worker; fewer run at a time with more "
    "--cpus-per-trial"
)
_KILLED = (
    "WorkerKilled: the worker's process ended without an error: killed for want of memory, or crashed (the log then "
    "has its stack); fewer run at a time with more --cpus-per-trial"
)
_TIMED_OUT = (
    "TimedOut: an epoch took longer than --epoch-timeout {:g} s, and the worker was ended; the run's log shows where "
    "it was"
)
_TRIALS_PER_TUNE_RUN = 2000  # Tune's driver keeps every trial in memory
_MOST_PENDING = "1000"
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_STOP = 20.0


def run_fed(
    feed: Feed,
    workplace: Workplace,
    resources: Resources,
    display: Display,
    relay: Relay,
) -> None:
    """Run Tune over jobs of a feed, until there are no more or a batch is done.

    Raises:
        StoreError: one run after the other could not be recorded.
    """
    trainable = tune.with_resources(
        tune.with_parameters(ContinualRunTrainable, workplace=workplace),
        {"cpu": resources.cpus_per_trial, "gpu": resources.gpus_per_trial},
    )
    # Tune's own files are not needed, since results are in the store.
    searcher = FeedSearcher(feed, resources)
    watcher = Watcher(workplace, display, relay)
    with private_folder() as files, _many_pending():
        tuner = tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=FirstWithoutWorker(resources, lambda: watcher.is_stopping),
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
                stop=watcher,
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        except Exception as error:
            if not _is_of_a_worker(error):
                raise
            # Such as one that Ray ended because memory ran out; Tune then ends all workers.
            watcher.all_lost(searcher.suggested, str(error))
            return
    relay.check()
    if not searcher.ended:  # stopped, or SIGUSR1 arrived while Tune handled it itself
        display.interrupted = True


def _is_of_a_worker(error: BaseException | None) -> bool:
    """Return whether Ray's error about a worker or its machine is the cause of an error of Tune."""
    while error is not None and not isinstance(error, RayError):
        error = error.__cause__
    return error is not None


def why_it_ended(error: str) -> str | None:
    """Return why Ray says that a worker ended, and what helps; None for any other error.

    Ray says it behind its first line and before pages of advice, of which `status` shows one line.
    """
    if "low on memory" in error:
        return _NO_MEMORY
    is_unknown = "OOM killer" in error or "SIGKILL" in error  # in Ray's guesses, whose words differ by its version
    return _KILLED if is_unknown else None


@contextmanager
def _many_pending() -> Iterator[None]:
    """Let Tune request more than one job ahead; the feed limits their number."""
    name = "TUNE_MAX_PENDING_TRIALS_PG"
    before = os.environ.get(name)
    os.environ[name] = before or _MOST_PENDING
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


class FeedSearcher(Searcher):
    """Tune's searcher, which returns the next jobs of the feed.

    Attributes:
        ended: whether Tune was told that there are no more jobs; otherwise it was stopped.
        suggested: jobs of trials that have not ended, by trial.
    """

    def __init__(self, feed: Feed, resources: Resources) -> None:
        super().__init__()
        self._feed, self._resources = feed, resources
        self._trials_to_start, self.ended = _TRIALS_PER_TUNE_RUN, False
        self.suggested: dict[str, Jobs] = {}
        self._places, self._looked_at = 0, -_SECONDS_BETWEEN_LOOKS

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing: Tune pickles searchers to restore sweeps, which is never used."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> FeedSearcher:
        return self

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]  # as Tune documents it
        """Return the next jobs; None if no job is ready, "FINISHED" if all are done."""
        if time.monotonic() - self._looked_at >= _SECONDS_BETWEEN_LOOKS:  # a request to another process
            self._places, self._looked_at = places(self._resources), time.monotonic()
        jobs = self._feed.next_jobs(self._places) if self._trials_to_start else None
        if jobs is not None:
            self._trials_to_start -= 1
            self.suggested[trial_id] = jobs
            return {"jobs": jobs}
        self.ended = self._feed.finished or not self._trials_to_start
        return Searcher.FINISHED if self.ended else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Forget the jobs; the watcher is also called, with the error."""
        self.suggested.pop(trial_id, None)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: study and store have the state."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing."""


class Watcher(tune.Callback, tune.Stopper):
    """Passes on reports of trials, and stops Tune when the user wants to.

    Each trial is stopped after the step that it is in, so that what the step computed reaches the driver. A trial whose
    step lasts longer than `_SECONDS_TO_STOP` is ended; its last checkpoint remains.

    Attributes:
        is_stopping: whether trials are being stopped, and no more are started.
    """

    def __init__(self, workplace: Workplace, display: Display, relay: Relay) -> None:
        self._workplace = workplace
        self._display = display
        self._relay = relay
        self._user_signal = getattr(signal, "SIGUSR1", None)  # Windows has no such signal
        self._before = signal.getsignal(self._user_signal) if self._user_signal else None
        self.is_stopping, self._stop_at = False, math.inf
        self._last_heard: dict[str, float] = {}
        """When the worker of a trial last said something; only of trials that have started and not ended."""

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing: Tune pickles callbacks to restore sweeps, which is never used."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Watcher:
        return self

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Restore the display's handler of SIGUSR1, which Tune has replaced. `on_step_end` is called from here on."""
        if self._user_signal and signal.getsignal(self._user_signal) is not self._before:
            signal.signal(self._user_signal, self._before)
        self._display.stops_in_order = True

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Several times a second, write rows that are due, and check whether the user wants to stop."""
        self._relay.look()
        if (self._display.interrupted or self._relay.store_error) and not self.is_stopping:
            self.is_stopping, self._stop_at = True, time.monotonic() + _SECONDS_TO_STOP
            self._display.stops_in_order = False
            if self._display.interrupted:
                self._display.stopping()

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return whether to stop a trial, after a step."""
        return self.is_stopping

    def stop_all(self) -> bool:
        """Return whether to end Tune: all trials have been stopped, or do not stop in time."""
        return self.is_stopping and (not self._last_heard or time.monotonic() > self._stop_at)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Ignore interrupts from here on."""
        self._display.stops_in_order = False

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Pass on that a worker has started its first job."""
        self._last_heard[trial.trial_id] = time.monotonic()
        self._relay.started(_jobs(trial)[0])

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Pass on the reports of a step."""
        self._last_heard[trial.trial_id] = time.monotonic()
        jobs = _jobs(trial)
        reports = result["reports"]
        self._relay.pass_on(jobs, reports)
        reports.clear()  # frees memory: Tune keeps the last result of every trial
        if result["done"]:  # Tune sets it before it calls this, also if the stopper ends the trial
            self._relay.returned(jobs)
            self._last_heard.pop(trial.trial_id, None)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Handle the death of a worker, or an error that the trainable could not catch."""
        try:
            error = Path(trial.error_file).read_text(errors="replace")
        except (OSError, TypeError):  # the file does not exist or could not be written
            error = "the worker died"
        self.lost(trial.trial_id, _jobs(trial), error)

    def lost(self, trial_id: str, jobs: Jobs, error: str) -> None:
        """Handle the death of the worker of some jobs."""
        why = why_it_ended(error)
        death = AttemptFailed(bounded(error), last_line(error))
        if why is not None:
            death = AttemptFailed(f"{death.error.rstrip()}\n{why}", why)
        limit = self._workplace.epoch_timeout
        if limit is not None and why != _NO_MEMORY and self._is_timed_out(trial_id, jobs, limit):
            late = _TIMED_OUT.format(limit)
            death = AttemptFailed(late, late, is_final=True)
        self._relay.lost(jobs, death)
        self._last_heard.pop(trial_id, None)

    def _is_timed_out(self, trial_id: str, jobs: Jobs, limit: float) -> bool:
        """Return whether the time limit of an epoch ended the worker of some jobs."""
        last_heard = self._last_heard.get(trial_id)
        if last_heard is None or time.monotonic() - last_heard <= limit:
            return False
        return self._relay.left_stacks(jobs)

    def all_lost(self, trials: Mapping[str, Jobs], error: str) -> None:
        """Handle the end of all workers: jobs of trials that had not begun, if any had, are queued again."""
        begun = self._last_heard.keys() & trials.keys()
        if not begun:  # it is not known which trial ended the workers
            begun = set(trials)
        for trial_id, jobs in trials.items():
            if trial_id in begun:
                self.lost(trial_id, jobs, error)
            else:
                self._relay.returned(jobs)


def _jobs(trial: Any) -> Jobs:
    jobs: Jobs = trial.config["jobs"]
    return jobs
