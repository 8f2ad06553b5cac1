"""`--observe tensorboard[:FOLDER]`: event files for TensorBoard, one folder per run."""

from __future__ import annotations

import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event as EventRecord
from tensorboard.compat.proto.event_pb2 import SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from clops_sweep.execution.observers.scalars import scalars
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.events import Event, RunEnd


class TensorBoard:
    """Writes scalars over epochs, and the config as hyperparameters, for `tensorboard --logdir FOLDER`.

    Args:
        target: the folder, with a subfolder per run id.
        folder: the default folder.
    """

    def __init__(self, target: str | None, folder: str) -> None:
        self._folder = Path(target or folder)
        self._writers: dict[str, EventFileWriter] = {}
        self._steps: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        """Write the event to disk."""
        run_id = event.run_id
        if run_id not in self._writers:
            folder = self._folder / run_id
            goes_on = folder.is_dir()
            self._writers[run_id] = EventFileWriter(str(folder))
            if not goes_on:
                fields = {name: value for name, value in config_row(event.config).items() if value is not None}
                self._write(run_id, 0, hparams_pb(fields, trial_id=run_id))
            elif not isinstance(event, RunEnd):  # TensorBoard then drops earlier data of this step and later ones
                start = SessionLog(status=SessionLog.START)
                self._writers[run_id].add_event(EventRecord(step=event.progress.step, session_log=start))
        if not isinstance(event, RunEnd):
            self._steps[run_id] = event.progress.step
        values = [Summary.Value(tag=name, simple_value=value) for name, value in scalars(event).items()]
        self._write(run_id, self._steps.get(run_id, 0), Summary(value=values))
        self._writers[run_id].flush()
        if isinstance(event, RunEnd):
            self._writers.pop(run_id).close()
            self._steps.pop(run_id, None)

    def _write(self, run_id: str, step: int, summary: Summary) -> None:
        self._writers[run_id].add_event(EventRecord(wall_time=time.time(), step=step, summary=summary))
