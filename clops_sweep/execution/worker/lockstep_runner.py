"""Execution of a lockstep: one or several continual-learning runs, from config to store."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
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
    Paused,
    Recorded,
    Report,
    Resumed,
    Retrying,
    Running,
    Unrecorded,
    bounded,
    ends,
)
from clops_sweep.execution.run_log import epoch_line, print_for
from clops_sweep.execution.worker.epoch_watch import epoch_limit
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.learning.frame_bank import LastBank
from clops_sweep.learning.process_state import ProcessState
from clops_sweep.learning.result import RunResult
from clops_sweep.learning.run import ContinualRun, Progress
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.rows import failure_reason, rows_of_failure, rows_of_result, storing
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    import ray

_log = logging.getLogger(__name__)

_SECONDS_WITHOUT_CHECKPOINT, _ON_S3 = 15.0, 60.0
_SECONDS_WORTH_A_CHECKPOINT = 2.0
"""Least seconds of training between checkpoints after tasks: repeating less is faster than waiting for the disk."""


class LockstepRunner:
    """Trains a lockstep in steps of about a second, and returns the rows of its runs.

    A step ends between two epochs and returns reports for the display. Locksteps are independent: numbers depend on
    nothing computed before.

    A failing run does not affect the others of its lockstep: if the diverged runs are known, the others restart without
    them; otherwise the lockstep is halved until the failing run is alone. This also finds the number of runs that a
    GPU's memory holds.

    Args:
        workplace: settings of all workers.
        store: the store, for checkpoints and models.
        record: called with the rows of each run that has finished or failed.
        tell: called with the events of its runs; None without observers.
    """

    def __init__(
        self,
        workplace: Workplace,
        store: RunStore,
        record: Callable[[Recorded], object],
        tell: Callable[[Sequence[Event]], object] | None,
    ) -> None:
        self._process = ProcessState()
        self._workplace, self._store, self._record, self._tell = workplace, store, record, tell
        self._frames: dict[DataKey, FrameSet] = {}
        self._bank_of = LastBank()

    def take_up(self, part: Job) -> None:
        """Start a lockstep of the worker's job, abandoning a running one."""
        self._runs_failed: tuple[str, ...] = ()
        self._reason = ""
        self._runs_finished: tuple[str, ...] = ()
        self._so_far: dict[str, Mapping[str, float]] = {}
        self._part = part
        self._taken_up: float | None = time.monotonic()
        self._begin_job(part)

    def _begin_job(self, job: Job, *later: Job) -> None:
        """Start a lockstep; parts that it was split into follow later."""
        self._job, self._later = job, later
        print_for(job.run_ids)
        self._run: ContinualRun | None = None
        self._retries_left = self._workplace.max_retries
        self._began_at, self._started = datetime.now(UTC), time.monotonic()
        self._print_at = self._started + 1.0
        self._checkpoint = CheckpointFile(self._store, job.run_ids)

    def step(self, is_due: Callable[[], bool]) -> Report:
        """Advance the lockstep by some epochs.

        A run whose checkpoint or model could not be written (a full disk) has not failed, but stays pending.

        Args:
            is_due: returns whether to end the step; called after each epoch.

        Returns:
            A report; at the end of a lockstep its rows have been recorded.
        """
        try:
            try:
                report = self._advance(is_due)
            except StoreError:
                raise
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) or hasattr(error, "ray_terminate_msg"):
                    raise  # this worker should end
                report = self._after(error)
        except StoreError as error:
            self._run = None
            return Unrecorded(str(error))
        return self._ended(report) if ends(report) else report

    def _ended(self, report: Report) -> Report:
        """Handle the end of a lockstep: continue with the next part, or report on the whole."""
        match report:
            case Unrecorded():
                return report
            case Paused():
                self._so_far |= report.so_far
            case Finished():
                self._runs_finished += self._job.run_ids
        if self._later:
            self._begin_job(*self._later)
            return Retrying()
        if self._runs_failed:
            return Failed(self._runs_failed, self._reason)
        if self._so_far:
            return Paused(self._so_far, self._runs_finished)
        return report

    def _after(self, error: BaseException) -> Report:
        """Retry from the last checkpoint, restart without the failing runs, or end the job."""
        job, runs = self._job, len(self._job.run_ids)
        self._process.restore()
        self._run = self._taken_up = None
        if isinstance(error, Diverged) and len(error.runs) < runs:
            self._record_failure(job.part(error.runs))
            if job.until is None:
                return self._fall_apart(job.part(run for run in range(runs) if run not in error.runs))
            return Failed(self._runs_failed, self._reason)
        own_fault = isinstance(error, UsageError | Diverged)
        certain = own_fault or (isinstance(error, torch.OutOfMemoryError) and runs > 1)
        if self._retries_left and not certain:
            self._retries_left -= 1
            return Retrying()
        if runs > 1 and not own_fault:
            half = (runs + 1) // 2
            return self._fall_apart(job.part(range(half)), job.part(range(half, runs)))
        self._record_failure(job)
        return Failed(job.run_ids, self._reason)

    def _fall_apart(self, *jobs: Job) -> Report:
        """Replace the running lockstep by parts, which restart."""
        with storing(self._store):
            self._checkpoint.delete()
        self._begin_job(*jobs, *self._later)
        return Retrying()

    def _record_failure(self, job: Job) -> None:
        """Record runs that failed with the current exception."""
        facts = {**self._facts(), "started_at": self._began_at}
        error = _printed_error()
        self._reason = failure_reason(error)
        for run_id, tables in rows_of_failure(job.runs, error, self._workplace.data_hash, facts).items():
            self._record((run_id, tables, None))
        if self._tell is not None:
            self._tell(after_failure(job.runs, error))
        self._runs_failed += job.run_ids

    def _advance(self, is_due: Callable[[], bool]) -> Report:
        """Train some epochs, or finish the lockstep."""
        if self._run is None:
            self._check_shared()
            self._process.restore()  # earlier code may have changed global settings of PyTorch and the process
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
            if (now := time.monotonic()) >= self._print_at:
                self._print_at = now + max(1.0, (now - self._started) / 100)
                print(epoch_line(run, progress))  # 460 lines in an hour
            if not run.finished and (run.tasks_trained == until or self._is_checkpoint(run, progress)):
                self._save()
            if not run.finished and run.tasks_trained != until and is_due():
                return Running(**vars(progress))
        with self._limit():
            result = run.result()
        self._process.restore()  # recording must not depend on global settings that the run's code has left
        self._run = None
        seconds = None if self._taken_up is None else time.monotonic() - self._taken_up
        return self._finish(self._job, result, seconds)

    def _check_shared(self) -> None:
        """Raise a StoreError on a node that joined the cluster later and does not see the folder of results."""
        witness = self._workplace.witness
        if witness and not os.path.exists(witness):
            raise StoreError(
                f"results {self._store.files.shown}: not seen by {socket.gethostname()}, a node of the cluster"
            )

    def _is_checkpoint(self, run: ContinualRun, progress: Progress) -> bool:
        """Return whether to write a checkpoint: after tasks, as the user requests, and every 15 seconds (60 on S3)."""
        every, unsaved = self._workplace.checkpoint_every, time.monotonic() - self._saved_at
        limit = _SECONDS_WITHOUT_CHECKPOINT if self._store.files.local else _ON_S3
        due = unsaved > (_SECONDS_WORTH_A_CHECKPOINT if run.at_task_end else limit)
        return due or (every > 0 and progress.epoch % every == 0)

    def _limit(self) -> AbstractContextManager[None]:
        """Apply the time limit to code in which a plug-in may hang."""
        return epoch_limit(self._workplace.epoch_timeout, self._store.log_folder / "logs", self._job.run_ids[0])

    def _save(self) -> None:
        assert self._run is not None
        with storing(self._store):
            self._checkpoint.save(self._run.state())
        self._saved_at = time.monotonic()

    def _begin(self) -> tuple[ContinualRun, bool]:
        """Return the run and whether it resumed from a checkpoint, if there is one of this version."""
        device = self._device()
        if device.type == "cuda":
            torch.cuda.empty_cache()  # frees memory of earlier runs for other workers on this GPU
        key = self._job.configs[0].data_key
        if key not in self._frames:
            self._frames[key] = _frames(self._workplace.frames[key])
        self._saved_at = time.monotonic()
        with storing(self._store):
            state = self._checkpoint.load()
        with self._limit():  # a plug-in may also hang while it is created or restored
            if state is not None:
                run = self._new_run(device)
                try:
                    run.restore(state)
                    return run, True
                except (LookupError, TypeError, ValueError, RuntimeError, AttributeError, AssertionError):
                    _log.exception("%s is of another version: the run starts anew", self._checkpoint.path)
            return self._new_run(device), False

    def _device(self) -> torch.device:
        """Return the GPU of this worker, else the CPU.

        Raises:
            UsageError: PyTorch cannot use that GPU; on the CPU the run would take many times longer.
        """
        if not self._workplace.on_gpu:
            return torch.device("cpu")
        if not torch.cuda.is_available():
            raise UsageError(f"this worker has a GPU, and PyTorch {torch.__version__} on its machine cannot use it")
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
        """Return host and device of the job, as columns of the `runs` table."""
        return {**self._workplace.software, **machine.host("cuda" if self._workplace.on_gpu else "cpu")}

    def _finish(self, job: Job, result: RunResult, seconds: float | None) -> Report:
        """Record the rows of a lockstep and its models, and return its report."""
        with storing(self._store):
            for run_id, models in result.models.items():
                if models and self._store.keep_models:
                    self._store.models.write(run_id, models, self._store.keep_models)
        path = self._checkpoint.path if self._checkpoint.may_exist else None
        for run_id, tables in rows_of_result(job.runs, result, self._workplace.data_hash, self._facts()).items():
            self._record((run_id, tables, path))
        if self._tell is not None:
            self._tell(after_run(job.runs, result))
        rows = [result.columns[run_id]["runs"] for run_id in job.run_ids]
        first, *others = headline(job.configs[0].scenario)[:2]
        of_test = "test_" * all(isnan(row[first][0]) for row in rows)  # the data have no validation set
        values = {f"{of_test}{it}": tuple(float(row[f"{of_test}{it}"][0]) for row in rows) for it in (first, *others)}
        return Finished(values, seconds)

    def stop(self) -> None:
        """Write a checkpoint, from which the next launch continues."""
        if self._run is not None and not self._run.finished:
            self._save()


def _printed_error() -> str:
    """Return the current exception with its traceback; exceptions of user code may fail to print."""
    kind, error, _ = sys.exc_info()
    try:
        printed = bounded(traceback.format_exc())
        last = printed.rstrip().rpartition("\n")[2]
        # The end of a long error or exception group does not name the exception.
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
