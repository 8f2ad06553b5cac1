"""Execution of one continual-learning run, from config to store."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from math import isnan
from typing import TYPE_CHECKING, Any

import torch

from clops_sweep import machine
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import StoreError, UsageError
from clops_sweep.execution.jobs import Job, Workplace
from clops_sweep.execution.observers.events import after_epoch, after_run
from clops_sweep.execution.reports import (
    AttemptFailed,
    Computed,
    Observed,
    Paused,
    Running,
    Scored,
    Unrecorded,
    WorkerReport,
)
from clops_sweep.execution.run_log import epoch_line, print_for, scores_after
from clops_sweep.execution.worker.epoch_watch import epoch_limit
from clops_sweep.execution.worker.exceptions import attempt_failed
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.provenance import changed_since, plugins_of
from clops_sweep.learning.frame_bank import LastBank
from clops_sweep.learning.process_state import ProcessState
from clops_sweep.learning.result import RunResult
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.rows import rows_of_result, storing
from clops_sweep.store.run_logs import log_folder
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    import ray

_log = logging.getLogger(__name__)

_PLUGINS = "plugins"
"""Key of a checkpoint: the custom plug-ins that computed it, as in the column of `runs`."""

_SECONDS_WITHOUT_CHECKPOINT, _ON_S3 = 15.0, 60.0
_SECONDS_WORTH_A_CHECKPOINT = 2.0
"""Least seconds of training between checkpoints after tasks: repeating less is faster than waiting for the disk."""


class RunRunner:
    """Trains a run in steps of about a second.

    A step ends between two epochs. Numbers depend on nothing computed before.

    Args:
        workplace: settings of all workers.
        store: the store, for checkpoints and models.
        send: called with the reports that do not end a step.
    """

    def __init__(
        self,
        workplace: Workplace,
        store: RunStore,
        send: Callable[[WorkerReport], object],
    ) -> None:
        self._process = ProcessState()
        self._workplace = workplace
        self._store = store
        self._send = send
        self._frames: dict[DataKey, FrameSet] = {}
        self._bank_of = LastBank()

    def begin(self, job: Job) -> None:
        """Start a job, abandoning a running one."""
        self._job = job
        print_for(job.run_id)
        self._run: ContinualRun | None = None
        self._began_at = datetime.now(UTC)
        self._started = time.monotonic()
        self._is_whole = True
        """Whether the run has been computed since `_started` without a resume."""
        self._print_at = self._started + 1.0
        self._checkpoint = CheckpointFile(self._store, job.run_id)

    def step(self, is_due: Callable[[], bool]) -> WorkerReport:
        """Advance the run by some epochs.

        A run whose checkpoint or model could not be written (a full disk) has not failed, but stays pending.

        Args:
            is_due: returns whether to end the step; called after each epoch.

        Returns:
            The report that ends the step, and perhaps the attempt.
        """
        try:
            try:
                return self._advance(is_due)
            except StoreError:
                raise
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) or hasattr(error, "ray_terminate_msg"):
                    raise  # Ray ends this worker, such as on SIGTERM; a plug-in's own SystemExit lacks the message
                return self._failed(error)
        except StoreError as error:
            self._run = None
            return Unrecorded(str(error))

    def _failed(self, error: BaseException) -> AttemptFailed:
        """End the attempt with the current exception; the driver decides whether there is another one."""
        self._process.restore()
        self._run = None
        return attempt_failed(error, {**self._facts(), "started_at": self._began_at})

    def _advance(self, is_due: Callable[[], bool]) -> WorkerReport:
        """Train some epochs, or finish the run."""
        if self._run is None:
            self._check_shared()
            self._process.restore()  # earlier code may have changed global settings of PyTorch and the process
            self._run, is_resumed = self._begin()
            if is_resumed:
                self._is_whole = False
                return Running(self._run.progress, resumed=True)
        run = self._run
        until = self._job.until
        while not run.finished:
            if until is not None and run.tasks_trained >= until:
                self._run = None
                return Paused(run.so_far(until), run.progress.share)
            with self._limit():
                progress = run.advance()
            if self._workplace.is_observed:
                self._send(Observed(after_epoch(self._job.run_id, run, progress)))
            self._report_scores(run, progress)
            if not run.finished and (run.tasks_trained == until or self._is_checkpoint(run, progress)):
                self._save()
            if not run.finished and run.tasks_trained != until and is_due():
                return Running(progress)
        with self._limit():
            result = run.result()
        self._process.restore()  # recording must not depend on global settings that the run's code has left
        self._run = None
        return self._finish(result, time.monotonic() - self._started if self._is_whole else None)

    def _report_scores(self, run: ContinualRun, progress: Progress) -> None:
        """Print and send the scores after an epoch, if it is time: 460 lines in an hour."""
        now = time.monotonic()
        if now < self._print_at:
            return
        self._print_at = now + max(1.0, (now - self._started) / 100)
        scores = scores_after(run, progress)
        print(epoch_line(scores, run.config.curves or "validation"))
        self._send(Scored(scores))

    def _check_shared(self) -> None:
        """Raise a StoreError on a node that joined the cluster later and does not see the folder of results."""
        witness = self._workplace.witness
        if witness and not os.path.exists(witness):
            raise StoreError(
                f"results {self._store.files.shown}: not seen by {socket.gethostname()}, a node of the cluster"
            )

    def _is_checkpoint(self, run: ContinualRun, progress: Progress) -> bool:
        """Return whether to write a checkpoint now, after an epoch.

        It is time after 15 seconds (60 on S3), after two seconds at the end of a task, and as often as requested.
        """
        every = self._workplace.checkpoint_every
        unsaved = time.monotonic() - self._saved_at
        limit = _SECONDS_WITHOUT_CHECKPOINT if self._store.files.local else _ON_S3
        due = unsaved > (_SECONDS_WORTH_A_CHECKPOINT if run.at_task_end else limit)
        return due or (every > 0 and progress.epoch % every == 0)

    def _limit(self) -> AbstractContextManager[None]:
        """Apply the time limit to code in which a plug-in may hang."""
        return epoch_limit(self._workplace.epoch_timeout, log_folder(self._store), self._job.run_id)

    def _save(self) -> None:
        assert self._run is not None
        with storing(self._store):
            self._checkpoint.save({**self._run.state(), _PLUGINS: plugins_of(self._job.config)})
        self._saved_at = time.monotonic()

    def _begin(self) -> tuple[ContinualRun, bool]:
        """Return the run and whether it resumed from a checkpoint, if there is one of this version and this code."""
        device = self._device()
        if device.type == "cuda":
            torch.cuda.empty_cache()  # frees memory of earlier runs for other workers on this GPU
        key = self._job.config.data_key
        if key not in self._frames:
            self._frames[key] = _frames(self._workplace.frames[key])
        self._saved_at = time.monotonic()
        state = self._saved()
        with self._limit():  # a plug-in may also hang while it is created or restored
            if state is not None:
                run = self._new_run(device)
                try:
                    run.restore(state)
                    return run, True
                except torch.OutOfMemoryError:
                    raise  # the checkpoint is whole, and the next attempt may find room
                except (LookupError, TypeError, ValueError, RuntimeError, AttributeError, AssertionError):
                    _log.exception("%s is of another version: the run starts anew", self._checkpoint.path)
            return self._new_run(device), False

    def _saved(self) -> dict[str, Any] | None:
        """Return the state in the checkpoint; None without one, or if the code of a plug-in has changed since."""
        with storing(self._store):
            state = self._checkpoint.load()
        if state is None:
            return None
        changed = changed_since(self._job.config, state.pop(_PLUGINS, None))
        if changed:
            print(f"{changed[0]} has changed since the checkpoint was written: the run starts anew")
            return None
        return state

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
        config, store = self._job.config, self._store
        return ContinualRun(
            config,
            self._frames[config.data_key],
            device,
            keep_predictions=store.keep_predictions,
            keep_models=store.keep_models,
            bank_of=self._bank_of,
        )

    def _facts(self) -> dict[str, Any]:
        """Return host and device of the job, as columns of the `runs` table."""
        return {**self._workplace.software, **machine.host("cuda" if self._workplace.on_gpu else "cpu")}

    def _finish(self, result: RunResult, seconds: float | None) -> Computed:
        """Write the models of the run, and return its rows."""
        job = self._job
        with storing(self._store):
            if result.models and self._store.keep_models:
                self._store.models.write(job.run_id, result.models, self._store.keep_models)
        path = self._checkpoint.path if self._checkpoint.may_exist else None
        tables = rows_of_result(job.run_id, job.config, result, self._workplace.data_hash, self._facts())
        if self._workplace.is_observed:
            self._send(Observed([after_run(job.run_id, job.config, result)]))
        row = result.columns["runs"]
        names = headline(job.config.scenario)[:2]
        if isnan(row[names[0]][0]):  # the data have no validation set
            names = tuple(f"test_{name}" for name in names)
        values = {name: float(row[name][0]) for name in names}
        return Computed(tables, path, values, seconds)

    def stop(self) -> None:
        """Write a checkpoint, from which the next launch continues."""
        if self._run is not None and not self._run.finished:
            self._save()


def _frames(shared: FrameSet | ray.ObjectRef[FrameSet]) -> FrameSet:
    """Return the frames, from Ray's object store if they are there."""
    if isinstance(shared, FrameSet):
        return shared
    import ray

    frames: FrameSet = ray.get(shared)
    return frames
