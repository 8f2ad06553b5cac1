"""Ends a worker in which an epoch takes too long, whatever it hangs in, and tells the driver why it has died."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from clops_sweep.execution.ray_internals import key_value
from clops_sweep.execution.reports import WorkerDied, bounded, timed_out

SECONDS_OF_GRACE = 5.0
"""Compiled code that lets no other thread of Python run is ended so much later, without a word to the driver."""

_SECONDS_BETWEEN_LOOKS = 0.2
_ERROR_OUTPUT = 2
_NAMESPACE = b"clops_sweep"


class EpochWatch:
    """Looks from another thread how long an epoch takes.

    That thread says where the epoch hangs, and ends the process. It does not come to it where compiled code keeps all
    other threads of Python from running: then one that is none of Python's ends the process, a few seconds later.

    Args:
        seconds: what an epoch may take; None for any time.
        overdue: called in that thread, before the end of the process, with the error to be recorded.
    """

    def __init__(self, seconds: float | None, overdue: Callable[[str], None]) -> None:
        self._seconds = seconds
        self._overdue = overdue
        self._until: float | None = None
        self._thread: int | None = None
        self._looking = False

    @contextmanager
    def epoch(self) -> Iterator[None]:
        """Around an epoch."""
        if self._seconds is None:
            yield
            return
        if not self._looking:
            self._looking = True
            threading.Thread(target=self._look, args=(self._seconds,), daemon=True).start()
        self._thread = threading.get_ident()
        faulthandler.dump_traceback_later(self._seconds + SECONDS_OF_GRACE, exit=True, file=_ERROR_OUTPUT)
        self._until = time.monotonic() + self._seconds
        try:
            yield
        finally:
            self._until = None
            faulthandler.cancel_dump_traceback_later()

    def _look(self, seconds: float) -> None:
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            until = self._until
            if until is not None and time.monotonic() > until:
                try:
                    self._overdue(timed_out(seconds, self._place()))
                finally:
                    os._exit(1)

    def _place(self) -> str:
        """Where it hangs, as a traceback has it."""
        frame = sys._current_frames().get(self._thread or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame))


def leave_word(sweep: str, job: Sequence[str], death: WorkerDied) -> None:
    """Leaves word with the cluster of why the worker of a job dies.

    Args:
        sweep: which sweep.
        job: the runs of the trial's job.
        death: what the driver is to know.
    """
    word = json.dumps([bounded(death.error), death.hung, death.later])
    key_value("put")(_key(sweep, job), word.encode(), overwrite=True, namespace=_NAMESPACE)


def word_left(sweep: str, job: Sequence[str]) -> WorkerDied | None:
    """What the worker of a job has left word of; None if it has died of something else."""
    key = _key(sweep, job)
    found = key_value("get")(key, namespace=_NAMESPACE)
    if found is None:
        return None
    key_value("del")(key, namespace=_NAMESPACE)
    error, hung, later = json.loads(found)
    return WorkerDied(error, tuple(hung), tuple(later))


def _key(sweep: str, job: Sequence[str]) -> bytes:
    return f"epoch timeout {sweep} {'-'.join(job)}".encode()
