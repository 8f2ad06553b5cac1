"""What a worker does with a lockstep of its job: one continual-learning run, or several, from config to store."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

import torch

from clops_sweep import machine
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import Diverged, StoreError, UsageError, reason
from clops_sweep.execution.jobs import Job, Workplace
from clops_sweep.execution.observers.events import after_epoch, after_failure, after_run
from clops_sweep.execution.reports import (
    Failed,
    Finished,
    FoundFinished,
    Paused,
    Report,
    Resumed,
    Retrying,
    Running,
    Unrecorded,
    bounded,
    ends,
)
from clops_sweep.execution.run_log import print_for
from clops_sweep.execution.worker.epoch_watch import epoch_limit
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.learning.frame_bank import LastBank
from clops_sweep.learning.process_state import ProcessState
from clops_sweep.learning.result import RunResult
from clops_sweep.learning.run import ContinualRun, Progress
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.rows import record_failure, record_result, storing
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    import ray

_log = logging.getLogger(__name__)

_SECONDS_WITHOUT_CHECKPOINT = 60.0
_SECONDS_WORTH_A_CHECKPOINT = 2.0
"""What took less is computed anew sooner than that all runs wait for the disk at the end of each of their tasks."""

_PAUSES = (1.0, 4.0)
"""Seconds before a finished run is offered to the store once more: a file server may be away for a moment."""


class LockstepRunner:
    """Trains a lockstep, a second or so a step, and writes the result to the store itself.

    A step ends between two epochs; what it returns is for the display alone. The next lockstep is started from nothing
    but its job: what was done before leaves no trace in the numbers.

    Runs that fail do not take those with them that were to be trained together: where it is known which have diverged,
    the others start anew without them; else the lockstep is halved until what fails is alone. That also finds how many
    runs a GPU's memory holds.

    What a lockstep comes to is written by another thread, which mostly waits for the disk: the next one can be taken
    up meanwhile.

    Args:
        workplace: what every worker of the sweep needs to know.
        store: where results go.
        tell: called with the events of its runs; None if they have no observer.
    """

    def __init__(self, workplace: Workplace, store: RunStore, tell: Callable[[Sequence[Event]], object] | None) -> None:
        self._process = ProcessState()
        self._workplace, self._store, self._tell = workplace, store, tell
        self._frames: dict[DataKey, FrameSet] = {}
        self._bank_of = LastBank()
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="recording")
        self._written: Future[Report] | None = None

    def take_up(self, part: Job) -> None:
        """Takes up a lockstep of the job that the worker has; whatever was under way is given up."""
        self._runs_failed: tuple[str, ...] = ()
        self._runs_finished: tuple[str, ...] = ()
        self._so_far: dict[str, Mapping[str, float]] = {}
        self._part = part
        self._taken_up: float | None = time.monotonic()
        self._begin_job(part)

    def _begin_job(self, job: Job, *later: Job) -> None:
        """Takes up a lockstep; others, into which it has fallen apart, come later."""
        self._job, self._later = job, later
        print_for(job.run_ids)
        self._run: ContinualRun | None = None
        self._retries_left = self._workplace.max_retries
        self._began_at = datetime.now(UTC)
        self._checkpoint = CheckpointFile(self._store, job.run_ids)

    def step(self, is_due: Callable[[], bool]) -> Report | Future[Report]:
        """Advances the lockstep by some epochs.

        When it ends, its rows are in the store, or what kept them out is reported: a run that could not be written (a
        full disk) is not a failed one, it stays pending.

        Args:
            is_due: whether the step is to end; asked after each epoch.

        Returns:
            What there is to say; at the end of a lockstep maybe only once its rows are in the store.
        """
        try:
            try:
                report = self._advance(is_due)
            except StoreError:
                raise
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) or hasattr(error, "ray_terminate_msg"):
                    raise  # this worker is to end
                report = self._after(error)
        except StoreError as error:
            self._run = None
            return Unrecorded(str(error))
        return self._ended(report) if not isinstance(report, Future) and ends(report) else report

    def _ended(self, report: Report) -> Report:
        """A lockstep has ended: what comes next, or what became of the one of which it may have been a part."""
        match report:
            case Unrecorded():
                return report
            case Paused():
                self._so_far |= report.so_far
            case Finished() | FoundFinished():
                self._runs_finished += self._job.run_ids
        if self._later:
            self._begin_job(*self._later)
            return Retrying()
        if self._runs_failed:
            return Failed(self._runs_failed)
        if self._so_far:
            return Paused(self._so_far, self._runs_finished)
        return report

    def _after(self, error: BaseException) -> Report:
        """Another try from the last checkpoint, one without the runs that are at fault, or the end of the job."""
        job, runs = self._job, len(self._job.run_ids)
        self._process.restore()
        self._run = self._taken_up = None
        if isinstance(error, Diverged) and len(error.runs) < runs:
            self._record_failure(job.part(error.runs))
            if job.until is None:
                return self._fall_apart(job.part(run for run in range(runs) if run not in error.runs))
            return Failed(self._runs_failed)
        own_fault = isinstance(error, UsageError | Diverged)
        certain = own_fault or (isinstance(error, torch.OutOfMemoryError) and runs > 1)
        if self._retries_left and not certain:
            self._retries_left -= 1
            return Retrying()
        if runs > 1 and not own_fault:
            half = (runs + 1) // 2
            return self._fall_apart(job.part(range(half)), job.part(range(half, runs)))
        self._record_failure(job)
        return Failed(job.run_ids)

    def _fall_apart(self, *jobs: Job) -> Report:
        """Replace the running job by others, which start again."""
        with storing(self._store):
            self._checkpoint.delete()
        self._begin_job(*jobs, *self._later)
        return Retrying()

    def _record_failure(self, job: Job) -> None:
        """Runs that have failed with the error that is being handled."""
        with storing(self._store):
            facts = {**self._facts(), "started_at": self._began_at}
            error = _printed_error()
            record_failure(self._store, job.runs, error, self._workplace.data_hash, facts)
        if self._tell is not None:
            self._tell(after_failure(job.runs, error))
        self._runs_failed += job.run_ids

    def _advance(self, is_due: Callable[[], bool]) -> Report | Future[Report]:
        """Some epochs, or the end of the lockstep."""
        if self._run is None:
            self._check_shared()
            with storing(self._store):
                finished = self._store.finished(self._job.run_ids, lately=True)
            if finished.issuperset(self._job.run_ids):
                return FoundFinished(elsewhere=True)  # another sweep on the same store was faster
            self._process.restore()  # whatever ran before may have changed what PyTorch and the process go by
            self._run, resumed = self._begin()
            if resumed:
                self._taken_up = None
                return Resumed(**vars(self._run.comes_to))
        run = self._run
        until = self._job.until
        while not run.finished:
            if until is not None and run.tasks_trained >= until:
                self._run = None
                return Paused(dict(zip(self._job.run_ids, run.so_far(until), strict=True)))
            with self._limit():
                progress = run.advance()
            if self._tell is not None:
                self._tell(after_epoch(self._job.run_ids, run, progress))
            if not run.finished and (run.tasks_trained == until or self._is_checkpoint(run, progress)):
                self._save()
            if not run.finished and run.tasks_trained != until and is_due():
                return Running(**vars(progress))
        with self._limit():
            result = run.result()
        self._process.restore()  # what records the result may not depend on what the run's code has left behind
        self._run = None
        seconds = None if self._taken_up is None else time.monotonic() - self._taken_up
        ended = partial(self._record, self._job, result, self._checkpoint, self._facts(), seconds)
        self.wait_until_written()
        if self._job is not self._part:
            return ended()
        self._written = self._writing.submit(ended)
        return self._written

    def _check_shared(self) -> None:
        """Raise a StoreError on a node that joined the cluster later and does not see the folder of results."""
        witness = self._workplace.witness
        if witness and not os.path.exists(witness):
            raise StoreError(
                f"results {self._store.files.shown}: not seen by {socket.gethostname()}, a node of the cluster"
            )

    def wait_until_written(self) -> None:
        """Waits until what has been computed is in the store, or cannot be."""
        if self._written is not None:
            wait([self._written])
            self._written = None

    def _is_checkpoint(self, run: ContinualRun, progress: Progress) -> bool:
        """At the end of a task, as often as the user wants, and so that a killed worker loses about a minute."""
        every, unsaved = self._workplace.checkpoint_every, time.monotonic() - self._saved_at
        due = unsaved > (_SECONDS_WORTH_A_CHECKPOINT if run.at_task_end else _SECONDS_WITHOUT_CHECKPOINT)
        return due or (every > 0 and progress.epoch % every == 0)

    def _limit(self) -> AbstractContextManager[None]:
        """Around whatever a plug-in may hang in."""
        return epoch_limit(self._workplace.epoch_timeout, self._store.log_folder / "logs", self._job.run_ids[0])

    def _save(self) -> None:
        assert self._run is not None
        with storing(self._store):
            self._checkpoint.save(self._run.state())
        self._saved_at = time.monotonic()

    def _begin(self) -> tuple[ContinualRun, bool]:
        """The run, and whether it is at its last checkpoint: there may be none, or none that fits this version."""
        device = self._device()
        if device.type == "cuda":
            torch.cuda.empty_cache()  # what earlier runs took, and other workers on this GPU may need
        key = self._job.configs[0].data_key
        if key not in self._frames:
            self._frames[key] = _frames(self._workplace.frames[key])
        self._saved_at = time.monotonic()
        with storing(self._store):
            state = self._checkpoint.load()
        with self._limit():  # a plug-in may hang where it is made or restored as well
            if state is not None:
                run = self._new_run(device)
                try:
                    run.restore(state)
                    return run, True
                except (KeyError, IndexError, TypeError, ValueError, RuntimeError):
                    _log.exception("%s is of another version: the run starts anew", self._checkpoint.path)
            return self._new_run(device), False

    def _device(self) -> torch.device:
        """Return the GPU that this worker is to use, else the CPU.

        Raises:
            UsageError: PyTorch cannot use that GPU. The run would take many times as long on the CPU.
        """
        if not self._workplace.on_gpu:
            return torch.device("cpu")
        if not torch.cuda.is_available():
            raise UsageError(f"this worker has a GPU, and PyTorch {torch.__version__} on its machine can use none")
        return torch.device("cuda")

    def _new_run(self, device: torch.device) -> ContinualRun:
        configs, store = self._job.configs, self._store
        return ContinualRun(
            configs,
            self._frames[configs[0].data_key],
            device,
            keep_predictions=store.keep_predictions,
            keep_models=store.keep_models,
            bank_of=self._bank_of,
        )

    def _facts(self) -> dict[str, Any]:
        """Where the job is computed, as columns of the `runs` table."""
        return {**self._workplace.software, **machine.host("cuda" if self._workplace.on_gpu else "cpu")}

    def _record(
        self, job: Job, result: RunResult, checkpoint: CheckpointFile, facts: dict[str, Any], seconds: float | None
    ) -> Report:
        """Writes what a lockstep has come to, which took so long."""
        for pause in (*_PAUSES, None):
            try:
                record_result(self._store, job.runs, result, self._workplace.data_hash, facts)
                break
            except StoreError as error:
                if pause is None:
                    return Unrecorded(str(error))
                _log.exception("another try follows in %g s", pause)
                time.sleep(pause)
        if self._tell is not None:
            self._tell(after_run(job.runs, result))
        try:
            with storing(self._store):
                checkpoint.delete()
        except StoreError as error:
            return Unrecorded(str(error))
        rows = [result.columns[run_id]["runs"] for run_id in job.run_ids]
        first, *others = headline(job.configs[0].scenario)[:2]
        of_test = "test_" * all(isnan(row[first][0]) for row in rows)  # the data have no validation set
        values = {f"{of_test}{it}": tuple(float(row[f"{of_test}{it}"][0]) for row in rows) for it in (first, *others)}
        return Finished(values, seconds)

    def stop(self) -> None:
        """Keeps what has been trained so far, for the next launch to go on with."""
        if self._run is not None and not self._run.finished:
            self._save()


def _printed_error() -> str:
    """The error that is being handled, with its traceback; what a user's code raises may not let itself be printed."""
    kind, error, _ = sys.exc_info()
    try:
        printed = bounded(traceback.format_exc())
        last = printed.rstrip().rpartition("\n")[2]
        # The end of a long error, or of the drawing of an exception group, does not say what was raised.
        return f"{printed.rstrip()}\n{reason(error)}" if error and last.startswith(" ") else printed
    except Exception:
        return f"{kind.__name__ if kind else 'Exception'}: what was raised cannot be printed"


def _frames(held: FrameSet | ray.ObjectRef[FrameSet]) -> FrameSet:
    """Return the frames, from Ray's object store if they are there."""
    if isinstance(held, FrameSet):
        return held
    import ray

    frames: FrameSet = ray.get(held)
    return frames
