"""SearchFeed: turns the trials of a study into jobs, and results of jobs into values of trials. Independent of Ray."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import fmean

from clops_sweep.errors import StoreError, UsageError, one_line, several
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.jobs import Job, Jobs, LeftOut
from clops_sweep.execution.reports import Failed, Finished, FoundFinished, Paused, Report, Unrecorded, ends
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.axes import in_words, value_in_words
from clops_sweep.experiment.spaces.run_names import Label, RunName
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.search.study import Study, Trial
from clops_sweep.store.run_store import RunStore

_STORING = (UsageError, StoreError, OSError)
"""Errors of the store or the study's journal during a search."""


@dataclass
class _RunningTrial:
    """A running trial: its runs and their progress.

    Attributes:
        in_study: the trial in its study.
        until: number of tasks after which its runs pause; None if they do not.
        finished: runs whose rows are in the store.
        so_far: average objective over these tasks, for each run that has paused.
        queued: jobs that no worker has.
        under_way: number of jobs that workers have.
        counted: runs that the display counts as over, however they ended.
        unrecorded: the error that kept a result out of the store, if any.
        over: whether the trial has ended in the study, or was left for another launch.
    """

    in_study: Trial
    runs: dict[str, RunConfig]
    rungs: Iterator[int]
    until: int | None = None
    finished: set[str] = field(default_factory=set)
    so_far: dict[str, float] = field(default_factory=dict)
    queued: list[Job] = field(default_factory=list)
    under_way: int = 0
    counted: set[str] = field(default_factory=set)
    unrecorded: str | None = None
    over: bool = False

    @property
    def name(self) -> RunName:
        """Name of its runs: "trial 3: learning_rate 0.00012"."""
        labels = [Label(value_in_words(value), name) for name, value in self.in_study.labels.items()]
        return RunName(tuple(labels), f"trial {self.in_study.number}")


class SearchFeed:
    """Turns a study's trials into jobs one at a time, and the jobs' results into the trials' values.

    A trial is one run per seed and split, each a job. With pruning, a job pauses at the next pruning decision; if the
    trial is kept, another job of the same run resumes from its checkpoint. The life of a trial:

    ===========  ============================================================================  =========================
    it is        while                                                                         then
    ===========  ============================================================================  =========================
    accepted     its runs are made from its parameters; parameters that do not go together     blocked, started, or over
                 end it
    blocked      another trial computes one of its runs, which it then finds in the store      started
    started      runs that the store has are counted; a failed one ends it                     queued, or over
    queued       jobs wait for a worker; later they are under way (`_jobs`)                    decided, once all ended
    decided      if jobs have paused, the pruner decides; if all runs are finished, it is      queued, or over
                 complete; if a result could not be stored, the next launch continues it
    over         jobs that workers still have are left out when they end
    ===========  ============================================================================  =========================

    Args:
        space: the search space.
        study: its study.
        store: the store with the finished runs, which determine the values of trials.
        data_hash: returns the content hash of a config's data.
        retry_failed: whether to retry failed runs.
        display: shows how trials and runs end.
    """

    def __init__(
        self,
        space: SearchSpace,
        study: Study,
        store: RunStore,
        data_hash: Callable[[RunConfig], str | None],
        *,
        retry_failed: bool,
        display: Display,
    ) -> None:
        self._space = space
        self._search = study.search
        self._study = study
        self._store = store
        self._data_hash = data_hash
        self._retry_failed = retry_failed
        self._display = display
        self._trials: list[_RunningTrial] = []
        """Trials that have begun and not ended, in the order of their jobs."""
        self._blocked: list[tuple[Trial, dict[str, RunConfig]]] = []
        """Trials with runs that other trials are computing, and their runs by id."""
        self._jobs: dict[Job, _RunningTrial] = {}
        """Jobs that workers have, each with its trial, which may have ended meanwhile."""
        self.error: str | None = None
        """The error that ended the search early, such as a journal that could not be written to."""
        self.left_out: list[LeftOut] = []
        """The runs that are over without the end of a job: found finished, or of trials that ended before."""

    def begin(self) -> None:
        """Take over the trials that an earlier driver left running; an error ends the search."""
        try:
            for trial in self._study.running():
                self._accept(trial)
        except _STORING as error:
            self.error = one_line(error)

    @property
    def finished(self) -> bool:
        """Whether there are no more jobs, and none is running."""
        if self._jobs:
            return False
        return self.error is not None or not (self._trials or self._blocked or self._is_to_ask())

    def _is_to_ask(self) -> bool:
        """Return whether trials are still to be suggested; False after an error, which ends the search."""
        try:
            return bool(self._study.to_ask)
        except _STORING as error:
            self.error = one_line(error)
            return False

    def next_jobs(self, places: int) -> Jobs | None:
        """Return the next job alone, of a trial that has begun if possible, else of a new one; None if no job is ready.

        A new trial is suggested as late as possible, so that the suggestion uses as many results as possible: with
        `max_concurrent`, while fewer trials have begun and not ended, else only for a free place. A trial that waits
        for equal runs of another one takes a place.

        Args:
            places: number of jobs that can run at once.
        """
        if self.error is not None:
            return None
        try:
            job = self._next_job(places)
        except _STORING as error:
            self.error = one_line(error)
            return None
        return None if job is None else (job,)

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a job; jobs that are still running are ignored."""
        try:
            self._job_ended(job, report)
        except _STORING as error:
            self.error = self.error or one_line(error)

    def unfinished(self, jobs: Jobs) -> list[Job]:
        """Return a worker's job unless it was reported as ended."""
        return [job for job in jobs if job in self._jobs]

    def returned(self, jobs: Jobs) -> None:
        """Take back a worker's job; one that was not reported as ended is queued again."""
        (job,) = jobs
        trial = self._jobs.pop(job, None)
        if trial is not None:
            trial.under_way -= 1
            if trial.over:
                self._leave_out(trial, job)
            else:
                trial.queued.insert(0, job)

    def lost(self, jobs: Jobs) -> None:
        """Take back the job of a worker that has died."""
        self.returned(jobs)

    def _next_job(self, places: int) -> Job | None:
        while True:
            for trial in self._trials:
                if trial.queued:
                    job = trial.queued.pop(0)
                    trial.under_way += 1
                    self._jobs[job] = trial
                    return job
            if self._start_unblocked():
                continue
            if not self._has_place(places) or not self._study.to_ask:
                return None
            self._accept(self._study.ask())

    def _has_place(self, places: int) -> bool:
        """Return whether another trial may be suggested now.

        A blocked trial takes a place, too: sooner suggestions would use no more results than it did.
        """
        if self._search.max_concurrent is not None:
            return len(self._trials) + len(self._blocked) < self._search.max_concurrent
        return len(self._jobs) + len(self._blocked) < max(places, 1)

    def _start_unblocked(self) -> bool:
        """Start the first trial that waited for runs that have now ended."""
        for index, (trial, runs) in enumerate(self._blocked):
            if not self._taken_runs() & runs.keys():
                del self._blocked[index]
                self._start(trial, runs)
                return True
        return False

    def _taken_runs(self) -> set[str]:
        """Return the runs of running trials and jobs."""
        of_trials = {run_id for trial in self._trials for run_id in trial.runs}
        return of_trials | {job.run_id for job in self._jobs}

    def _accept(self, trial: Trial) -> None:
        """Make the runs of a trial that was suggested, or left by an earlier driver; start it unless it is blocked."""
        try:
            base = self._space.base.replace(**self._search.settings(trial.labels))
            configs = [base.replace(**replicate) for replicate in self._space.replicates()]
        except UsageError as error:  # values that are valid, but not together
            self._study.tell(trial, "failed", error=str(error))
            ended = [f"{in_words(replicate)} of trial {trial.number}" for replicate in self._space.replicates()]
            self._display.trial_ended(f"trial {trial.number} failed: {error}", ended)
            configs = [self._space.base.replace(**replicate) for replicate in self._space.replicates()]
            self.left_out += [LeftOut(None, config) for config in configs]
            return
        runs = {config.run_id(str(self._data_hash(config))): config for config in configs}
        trial.record_runs(list(runs))
        if self._taken_runs() & runs.keys():
            self._blocked.append((trial, runs))
        else:
            self._start(trial, runs)

    def _start(self, suggested: Trial, runs: dict[str, RunConfig]) -> None:
        """Start a trial: count the runs that the store has, and queue the others."""
        statuses = self._store.statuses()
        pruner = self._search.pruner
        reported = suggested.tasks_reported
        rungs = (tasks for tasks in pruner.rungs() if tasks > reported) if pruner else iter(())
        trial = _RunningTrial(suggested, runs, rungs)
        trial.finished = {run_id for run_id in runs if statuses.get(run_id) == "finished"}
        trial.counted = set(trial.finished)
        for job in self._jobs_of(trial, trial.finished):
            self._display.report(job, FoundFinished())
            self.left_out.append(LeftOut(job.run_id, job.config))
        self._trials.append(trial)
        failed = [run_id for run_id in runs if statuses.get(run_id) == "failed"]
        if failed and not self._retry_failed:
            self._end_failed(trial, f"run {failed[0]} has failed before")
            return
        pruned_after = suggested.unfinished_pruning()
        if pruned_after is None:
            self._queue_next_jobs(trial)
        else:
            self._end_pruned(trial, pruned_after)

    def _jobs_of(self, trial: _RunningTrial, run_ids: Collection[str]) -> list[Job]:
        """Return the jobs of some runs of a trial, in its order."""
        jobs = []
        for run_id, config in trial.runs.items():
            if run_id in run_ids:
                labels = [Label(str(config.get(axis)), axis) for axis in self._space.axes]
                name = replace(trial.name, labels=(*trial.name.labels, *labels))
                jobs.append(Job(run_id, config, name=name))
        return jobs

    def _queue_next_jobs(self, trial: _RunningTrial) -> None:
        """Queue the trial's next jobs, or set its values if all its runs are finished."""
        pending = self._jobs_of(trial, trial.runs.keys() - trial.finished)
        if not pending:
            self._end_complete(trial)
            return
        trial.until = next(trial.rungs, None)
        trial.so_far = {}
        trial.queued = [replace(job, until=trial.until) for job in pending]

    def _job_ended(self, job: Job, report: Report) -> None:
        """Count a job that ended, if the report says so; once all jobs of its trial have, decide how that goes on."""
        if not ends(report):
            return
        trial = self._jobs.pop(job)
        trial.under_way -= 1
        if trial.over:
            if isinstance(report, Paused):
                self._leave_out(trial, job)
        elif isinstance(report, Failed):
            self._store.flush()  # if this fails, the trial stays under way
            trial.counted.add(job.run_id)
            self._end_failed(trial, f"run {job.run_id} has failed")
        else:
            self._record(trial, job, report)
            if not (trial.queued or trial.under_way):
                self._decide(trial)

    def _record(self, trial: _RunningTrial, job: Job, report: Report) -> None:
        """Record how the job of a running trial ended, other than by a failure."""
        match report:
            case Paused(so_far):
                trial.so_far[job.run_id] = so_far[self._measure]
            case Unrecorded(error):
                trial.counted.add(job.run_id)
                trial.unrecorded = error
            case Finished():
                trial.counted.add(job.run_id)
                trial.finished.add(job.run_id)

    def _decide(self, trial: _RunningTrial) -> None:
        """Decide how a trial goes on whose jobs have all ended."""
        if trial.unrecorded:
            self._forget(trial)  # it stays running in the study, and the next launch continues it
        elif trial.until is None or trial.finished.issuperset(trial.runs):
            self._queue_next_jobs(trial)
        else:
            self._decide_on_pruning(trial, trial.until)

    def _decide_on_pruning(self, trial: _RunningTrial, tasks: int) -> None:
        """Compare a trial that has paused after some tasks with the others."""
        so_far = trial.so_far | self._after(tasks, trial.finished)
        if trial.in_study.prune(fmean(so_far.values()), tasks):
            self._end_pruned(trial, tasks)
        else:
            self._queue_next_jobs(trial)

    @property
    def _measure(self) -> str:
        """The measure for pruning decisions: the only objective."""
        return next(iter(self._space.objectives))

    def _after(self, tasks: int, run_ids: set[str]) -> dict[str, float]:
        """Return the mean of R[k][j] over j <= k of finished runs, for k = `tasks`."""
        if not run_ids:
            return {}
        rows = self._store.read("r_matrix", sorted(run_ids))
        rows = rows[(rows["split"] == "validation") & (rows["trained_on"] == tasks) & (rows["evaluated_on"] <= tasks)]
        return {str(run_id): fmean(group[self._measure]) for run_id, group in rows.groupby("run_id")}

    def _end_complete(self, trial: _RunningTrial) -> None:
        """End a trial whose runs are all finished, with the mean of each objective."""
        rows = self._store.read("runs", list(trial.runs))
        values = []
        for column in self._space.objectives:
            numbers = [float(value) for value in rows[column]]
            if len(numbers) < len(trial.runs) or not all(map(isfinite, numbers)):
                self._end_failed(trial, f"{column} is not defined in all of its runs")
                return
            values.append(fmean(numbers))
        if self._search.pruner:
            self._report_rungs(trial)
        best = self._study.tell(trial.in_study, "complete", values)
        said = ", ".join(f"{name} {value:.3f}" for name, value in zip(self._space.objectives, values, strict=True))
        runs = f", mean of {len(trial.runs)} runs" if len(trial.runs) > 1 else ""
        self._end(trial, f"complete: {said}{runs}", best=best)

    def _report_rungs(self, trial: _RunningTrial) -> None:
        """Report a finished trial's values at the tasks of pruning decisions that it passed without a pause."""
        matrix = self._store.read("r_matrix", list(trial.runs))
        reported, tasks = trial.in_study.tasks_reported, int(matrix["trained_on"].max())
        for rung in self._search.pruner.rungs() if self._search.pruner else ():
            if rung >= tasks:
                return
            if rung > reported and (matrix["trained_on"] == rung).any():
                trial.in_study.report(fmean(self._after(rung, set(trial.runs)).values()), rung)

    def _end_pruned(self, trial: _RunningTrial, tasks: int) -> None:
        self._study.tell(trial.in_study, "pruned")
        self._end(trial, f"pruned after {several(tasks, 'task')}")

    def _end_failed(self, trial: _RunningTrial, error: str) -> None:
        self._study.tell(trial.in_study, "failed", error=error)
        self._end(trial, f"failed: {error}")

    def _end(self, trial: _RunningTrial, how: str, *, best: bool = False) -> None:
        """Show how a trial ended, and leave out its runs that have not ended and that no worker has."""
        under_way = {job.run_id for job, owner in self._jobs.items() if owner is trial}
        left_out = trial.runs.keys() - trial.counted - under_way
        text = f"trial {trial.in_study.number} {how} ({in_words(trial.in_study.labels)})"
        self._display.trial_ended(text, left_out, best=best)
        self.left_out += [LeftOut(run_id, trial.runs[run_id]) for run_id in left_out]
        self._forget(trial)

    def _forget(self, trial: _RunningTrial) -> None:
        """Compute no more jobs of a trial, whether it has ended in the study or is left for another launch."""
        trial.over = True
        trial.queued = []
        self._trials.remove(trial)

    def _leave_out(self, trial: _RunningTrial, job: Job) -> None:
        """Count a run that was under way when its trial ended, and now goes on no further."""
        if job.run_id not in trial.counted:
            trial.counted.add(job.run_id)
            self._display.left_out([job.run_id])
            self.left_out.append(LeftOut(job.run_id, job.config))
