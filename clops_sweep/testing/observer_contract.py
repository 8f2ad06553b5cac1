"""What every observer must do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from clops_sweep.errors import BadInput
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.registry import OBSERVERS
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.run_store import RunStore
from clops_sweep.sweep.observers.asked import asked_observers, check_observers
from clops_sweep.sweep.observers.events import after_epoch, after_failure, after_run
from clops_sweep.sweep.observers.teller import SECONDS, Observers
from clops_sweep.testing.frames import tiny_config, tiny_frames
from clops_sweep.testing.watch import ContractViolation

_NAME = "observer_under_test"


def check_observer(member: Any, target: str | None = None, *, seconds: float = SECONDS) -> None:
    """Runs the contract suite of observers on one of them, in processes as those of a sweep.

    It must be fit for workers, and take all events of a whole run, of one that is resumed in another process after
    its first task, and of one that fails, none of them in more than so many seconds.

    Args:
        member: a function of an event, or a class that is made with target and folder.
        target: what stands behind the colon of `--observe NAME:TARGET`.
        seconds: what an event may take.

    Raises:
        ContractViolation: with a sentence that says what is wrong.
    """
    config, frames = tiny_config("class_il"), tiny_frames("class_il", tasks=2)
    run_id, failed_id = config.run_id(frames.data_hash), config.replace(seed=config.seed + 1).run_id(frames.data_hash)
    run = ContinualRun(config, frames)
    parts: list[list[Event]] = [[], []]
    while not run.finished:
        parts[run.tasks_trained] += after_epoch([run_id], run, run.advance())
    parts[1] += after_run({run_id: config}, run.result())
    parts[1] += after_failure({failed_id: config.replace(seed=config.seed + 1)}, "ValueError: as an example")
    text = _NAME if target is None else f"{_NAME}:{target}"
    try:
        with OBSERVERS.temporarily(_NAME, member), tempfile.TemporaryDirectory() as folder:
            check_observers([text])
            store = RunStore(Path(folder))
            asked = asked_observers([text], store)
            for events in parts:
                observers = Observers(asked, store.files, f"{store.work_folder}/checkpoints", seconds)
                observers.tell(events)
                observers.catch_up(seconds * len(events))
                observers.close(seconds)
                for note in observers.notes():
                    raise ContractViolation(note.text)
    except BadInput as error:
        raise ContractViolation(str(error)) from error
