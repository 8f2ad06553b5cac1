"""Contract suite of observers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.execution.observers.events import after_epoch, after_failure, after_run
from clops_sweep.execution.observers.requested import check_observers, requested_observers
from clops_sweep.execution.observers.thread import SECONDS, Observers
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import OBSERVERS
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing.frames import tiny_config, tiny_frames
from clops_sweep.testing.watch import ContractViolation

_NAME = "observer_under_test"


def check_observer(member: Any, target: str | None = None, *, seconds: float = SECONDS) -> None:
    """Check an observer against its contract, in a thread as in a sweep.

    It must accept all events of a complete run that a second launch resumes after the first task, and of a failed run.
    No call may take longer than `seconds`.

    Args:
        member: a function of an event, or a class that is instantiated with target and folder.
        target: the text after the colon of `--observe NAME:TARGET`.
        seconds: maximum duration of a call.

    Raises:
        ContractViolation: the observer breaks the contract; the message says how.
    """
    config, frames = tiny_config("class_il"), tiny_frames("class_il", tasks=2)
    run_id, failed_id = config.run_id(frames.data_hash), config.replace(seed=config.seed + 1).run_id(frames.data_hash)
    run = ContinualRun(config, frames)
    parts: list[list[Event]] = [[], []]
    while not run.finished:
        parts[run.tasks_trained] += after_epoch(run_id, run, run.advance())
    parts[1].append(after_run(run_id, config, run.result()))
    parts[1].append(after_failure(failed_id, config.replace(seed=config.seed + 1), "ValueError: as an example"))
    text = _NAME if target is None else f"{_NAME}:{target}"
    try:
        with OBSERVERS.temporarily(_NAME, member), tempfile.TemporaryDirectory() as folder:
            check_observers([text])
            requested = requested_observers([text], RunStore(Path(folder)))
            for events in parts:
                notes: list[str] = []
                observers = Observers(requested, notes.append, seconds)
                observers.tell(events)
                observers.close(seconds * (len(events) + 1))
                for note in notes:
                    raise ContractViolation(note)
    except UsageError as error:
        raise ContractViolation(str(error)) from error
