"""The sweep: Ray Tune schedules the pending runs; the workers record them; the store is the truth."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clops_sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray
from ray import tune
from ray.tune.search import Searcher

from clops_sweep import provenance, worker_deaths
from clops_sweep.cluster import Resources as Resources
from clops_sweep.cluster import cluster as cluster
from clops_sweep.config import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.display import Display
from clops_sweep.errors import StoreError
from clops_sweep.lockstep import lockstep_key
from clops_sweep.plan import PlannedRun
from clops_sweep.plugins import REGISTRIES
from clops_sweep.quiet import output_to
from clops_sweep.store import RunStore
from clops_sweep.trainable import ContinualRunTrainable, Job, Workplace, record_failure, storing

_JOBS_PER_TUNE_RUN = 2000  # Tune's driver keeps every trial it has ever seen in memory
_NO_MEMORY = "the machine ran out of memory and Ray ended the worker; fewer run at a time with more --cpus-per-trial"
_UNRECORDED_IN_A_ROW = 3  # then the store is at fault, and what else would be computed is computed for nothing


def make_jobs(pending: Sequence[PlannedRun], runs_per_job: int) -> list[Job]:
    """Pending runs as jobs of up to `runs_per_job` that can be trained in lockstep, in the order of the plan."""
    if runs_per_job == 1:
        return [Job((run.config,), (str(run.run_id),)) for run in pending]
    groups: dict[str, list[PlannedRun]] = {}
    for run in pending:
        groups.setdefault(lockstep_key(run.config), []).append(run)
    chunks = [
        runs[start : start + runs_per_job] for runs in groups.values() for start in range(0, len(runs), runs_per_job)
    ]
    place = {run.config: index for index, run in enumerate(pending)}
    chunks.sort(key=lambda runs: place[runs[0].config])
    return [Job(tuple(run.config for run in runs), tuple(str(run.run_id) for run in runs)) for runs in chunks]


@contextmanager
def only_sweep(store: RunStore) -> Iterator[bool]:
    """Whether no other sweep is known to work on the store. Nothing but the order of runs depends on it.

    Two sweeps that went through the same runs in the same order would do each of them at the same time.
    """
    with ExitStack() as held:  # let go when the process ends, however it ends
        alone = store.files.local  # elsewhere nobody can tell
        try:
            if alone:
                folder = Path(store.work_folder)
                folder.mkdir(parents=True, exist_ok=True)
                fcntl.flock(held.enter_context((folder / "lock").open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            alone = False
        yield alone


def shuffled(jobs: Sequence[Job]) -> list[Job]:
    """The jobs in a random order, but for their seeds: as before, a seed comes after the one before it."""
    by_seed: dict[int, list[Job]] = {}
    for job in jobs:
        by_seed.setdefault(job.configs[0].seed, []).append(job)
    return [job for group in by_seed.values() for job in random.sample(group, len(group))]


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended. `interrupted` is true when it was stopped before everything pending had run."""

    finished: int
    failed: int
    interrupted: bool
    log: Path


def run_sweep(
    pending: Sequence[PlannedRun],
    frames: Mapping[DataKey, FrameSet],
    store: RunStore,
    work_folder: Path,
    resources: Resources,
    display: Display,
) -> Outcome:
    """Runs everything that is pending, on this machine or a cluster.

    Args:
        pending: the runs, all with an id.
        frames: the prepared data of each of them.
        store: where the workers record what they have finished.
        work_folder: logs.
        resources: what a trial takes.
        display: told what happens.

    Raises:
        BadInput: no cluster at the address, or it cannot hold a single trial.
        StoreError: results can no longer be written; what is not finished is still pending.
    """
    jobs = make_jobs(pending, resources.runs_per_job)
    log = new_log(work_folder)
    display.begin(sum(len(job.run_ids) for job in jobs), log)
    with only_sweep(store) as alone, output_to(log), cluster(resources, frames, display.warn):
        workplace = make_workplace(jobs if alone else shuffled(jobs), frames, store, resources)
        for first in range(0, len(jobs), _JOBS_PER_TUNE_RUN):
            shard = range(first, min(first + _JOBS_PER_TUNE_RUN, len(jobs)))
            _run_jobs(shard, workplace, resources, display, store)
            if display.interrupted:
                break
            with storing(store):
                store.compact_if_many()
    with storing(store):
        statuses = store.statuses()
    states = [statuses.get(str(run.run_id)) for run in pending]
    return Outcome(states.count("finished"), states.count("failed"), display.interrupted and None in states, log)


def new_log(work_folder: Path) -> Path:
    """A file for what Ray prints during a sweep that starts now."""
    log = work_folder / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def make_workplace(
    jobs: Sequence[Job], frames: Mapping[DataKey, FrameSet], store: RunStore, resources: Resources
) -> Workplace:
    """What the workers need to know, with the frames in the object store of the cluster that is running."""
    return Workplace(
        jobs=jobs,
        frames={key: ray.put(frame_set) for key, frame_set in frames.items()},
        store_uri=store.uri,
        checkpoints=f"{store.work_folder}/checkpoints",
        software=provenance.software(),
        plugins={name: registry.added for name, registry in REGISTRIES.items()},
        max_retries=resources.max_retries,
        checkpoint_every=resources.checkpoint_every,
    )


def _run_jobs(
    jobs: Sequence[int],
    workplace: Workplace,
    resources: Resources,
    display: Display,
    store: RunStore,
) -> None:
    """Runs some jobs; those whose worker died once more, from their checkpoints, up to `max_retries` times.

    Tune could start them again itself, but it counts one death of a worker several times, once for everything that
    it had asked of it, and so gives a job up too early.
    """
    for attempt in range(resources.max_retries + 1):
        watcher = Watcher(workplace, display)
        param_space = {"job": tune.grid_search(list(jobs))}
        run_tune(workplace, resources, watcher, param_space=param_space)
        with storing(store):
            finished = {run_id for run_id, status in store.statuses().items() if status == "finished"}
        died = {
            job: error for job, error in watcher.died.items() if not finished.issuperset(workplace.jobs[job].run_ids)
        }
        if display.interrupted or not died:
            return
        jobs = sorted(died)
        for index in jobs if attempt == resources.max_retries else ():
            with storing(store):
                record_failure(store, workplace.jobs[index], died[index], workplace.software)
            display.heard(workplace.jobs[index], {"status": "failed"})


def run_tune(
    workplace: Workplace,
    resources: Resources,
    watcher: Watcher,
    param_space: dict[str, Any] | None = None,
    search_alg: Searcher | None = None,
) -> None:
    """One Tune run over a grid of jobs, or over those that a searcher comes up with until it has no more.

    Raises:
        StoreError: one run after the other could not be recorded.
    """
    trainable = tune.with_resources(
        tune.with_parameters(ContinualRunTrainable, workplace=workplace),
        {"cpu": resources.cpus_per_trial, "gpu": resources.gpus_per_trial},
    )
    # What Tune keeps is of no use to anybody, the store is the truth. It is not to be in the way of what goes there.
    files = Path(tempfile.mkdtemp(prefix="clops-sweep-"))
    worker_deaths.install()
    tuner = tune.Tuner(
        trainable,
        param_space=param_space,
        tune_config=tune.TuneConfig(
            search_alg=search_alg,
            num_samples=-1 if search_alg else 1,
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
    try:
        tuner.fit()
    finally:
        shutil.rmtree(files, ignore_errors=True)
    if watcher.store_error:
        raise StoreError(watcher.store_error)


class Watcher(tune.Callback):
    """Passes on to the display what Tune hears from the trials, and to Tune that the user wants it to stop.

    Attributes:
        died: the jobs whose worker died, by their index, and what Tune knows about it.
        store_error: what kept the last runs out of the store, once it is clear that it keeps out all others as well.
    """

    def __init__(self, workplace: Workplace, display: Display) -> None:
        self._workplace = workplace
        self._display = display
        self.died: dict[int, str] = {}
        self.store_error: str | None = None
        self._unrecorded = 0

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its callbacks so that it can restore a sweep, which is never asked of it."""
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Watcher:
        return self

    def setup(self, *arguments: Any, **info: Any) -> None:
        """From here on `on_step_end` is called."""
        self._display.stops_in_order = True

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Several times a second: the moment to see whether the user wants to stop."""
        if (self._display.interrupted or self.store_error) and self._display.stops_in_order:
            self._display.stops_in_order = False
            if self._display.interrupted:
                self._display.stopping()
            stop = signal.getsignal(signal.SIGUSR1)  # Tune's own way to be told: it ends the trials in good order
            if not callable(stop):
                raise KeyboardInterrupt
            stop(signal.SIGUSR1, None)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """From here on nobody looks whether the user wants to stop."""
        self._display.stops_in_order = False

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker has got its job."""
        self._display.started(self._job(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A step of a trial has ended."""
        if result["status"] == "unrecorded":
            self._unrecorded += 1
            if self._unrecorded == _UNRECORDED_IN_A_ROW:
                self.store_error = result["error"]
        elif result["done"]:
            self._unrecorded = 0
        self._display.heard(self._job(trial), result)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker died, or raised what the trainable could not catch."""
        try:
            error = Path(trial.error_file).read_text()
        except (OSError, TypeError):  # there is no such file, or none that could be written
            error = "the worker died"
        if "low on memory" in error:  # Ray's words, before pages of advice; the last line is what `status` shows
            error = f"{error.rstrip()}\n{_NO_MEMORY}"
        self.died[trial.config["job"]] = error
        self._display.heard(self._job(trial), {"status": "died"})

    def _job(self, trial: Any) -> Job:
        return self._workplace.job(trial.config)
