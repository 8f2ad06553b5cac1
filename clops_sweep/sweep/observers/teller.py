"""The worker's side of an observer: a thread that hands events to the process in which it runs, and waits for it.

A run never waits for an observer but at its end, and nothing of an observer happens in the process that trains: what it
raises, prints, changes or hangs in is its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from clops_sweep.errors import BadInput
from clops_sweep.experiment.events import Event, RunEnd, number
from clops_sweep.store.files import Files
from clops_sweep.sweep.observers.asked import Observing
from clops_sweep.sweep.reports import Noted

SECONDS = 60.0
"""What an observer may take for an event, its start included, and at the end of a run for all that it is behind."""


class Observers:
    """All observers of a worker.

    Args:
        asked: which ones.
        files: where it is noted how far each has been told, so that nothing is told twice ...
        folder: ... and in which folder.
        seconds: what an event may take, and catching up at the end of a run.
    """

    def __init__(self, asked: Sequence[Observing], files: Files, folder: str, seconds: float = SECONDS) -> None:
        self._tellers = [_Teller(each, _Told(files, folder, each.name), seconds) for each in asked]
        self._seconds = seconds

    def __bool__(self) -> bool:
        return bool(self._tellers)

    def tell(self, events: Sequence[Event]) -> None:
        """Events that have happened; returns at once."""
        for teller in self._tellers:
            for event in events:
                teller.tell(event)

    def catch_up(self, seconds: float | None = None) -> None:
        """Waits until all is told, at the end of a run. Who is not there in time is given up."""
        until = time.monotonic() + (self._seconds if seconds is None else seconds)
        for teller in self._tellers:
            teller.catch_up(until)

    def close(self, seconds: float) -> None:
        """Waits until all is told, and lets the observers' processes come to their end, as long as that takes."""
        self.catch_up(seconds)
        for teller in self._tellers:
            teller.close(seconds)

    def notes(self) -> tuple[Noted, ...]:
        """What the user is to know and has not been said yet: the first thing that went wrong with each observer."""
        return tuple(note for teller in self._tellers if (note := teller.note()) is not None)


class _Told:
    """The number of the last event of each run that an observer was told, in a file beside the run's checkpoint.

    It is written before the event is handed over: whatever dies then, nothing is told twice.
    """

    def __init__(self, files: Files, folder: str, observer: str) -> None:
        self._files, self._folder, self._observer = files, folder, observer
        self._last: dict[str, int] = {}

    def is_new(self, event: Event) -> bool:
        """Whether it has not been told yet; from now on it has."""
        path, run_id = f"{self._folder}/{event.run_id}.{self._observer}.told", event.run_id
        if run_id not in self._last:
            self._last[run_id] = -1
            with contextlib.suppress(OSError, ValueError):
                self._last[run_id] = int(self._files.read(path).to_pybytes())
        if number(event) <= self._last[run_id]:
            return False
        self._last[run_id] = number(event)
        with contextlib.suppress(OSError, BadInput):  # a full disk: then it may be told twice
            if isinstance(event, RunEnd):  # the run is over; another attempt is told from its beginning
                del self._last[run_id]
                self._files.delete([path])
            else:
                self._files.write(path, str(number(event)).encode())
        return True


class _Teller:
    """One observer: its queue, its thread, its process."""

    def __init__(self, asked: Observing, told: _Told, seconds: float) -> None:
        self._asked, self._told, self._seconds = asked, told, seconds
        self._queue: SimpleQueue[Event] = SimpleQueue()
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up = False
        self._note: str | None = None
        self._noted = False

    def tell(self, event: Event) -> None:
        if self._given_up:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"observer {self._asked.name}", daemon=True)
            self._thread.start()
        with self._changed:
            self._waiting += 1
        self._queue.put(event)

    def catch_up(self, until: float) -> None:
        with self._changed:
            there = self._changed.wait_for(
                lambda: self._given_up or not self._waiting, max(0.0, until - time.monotonic())
            )
        if not there:
            self._give_up(f"has not caught up {self._seconds:g} s after the end of a run")

    def close(self, seconds: float) -> None:
        if self._process is not None and self._process.stdin is not None and not self._given_up:
            self._process.stdin.close()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._give_up(f"has not come to its end within {seconds:g} s")

    def note(self) -> Noted | None:
        if self._note is None or self._noted:
            return None
        self._noted = True
        what = f"observer {self._asked.name!r}"
        return Noted(f"{what} {self._note}", about=what)

    def _work(self) -> None:
        while True:
            event = self._queue.get()
            try:
                if not self._given_up and self._told.is_new(event):
                    self._hand_over(event)
            except Exception as error:  # its process has gone, or could not be started
                code = None if self._process is None else self._process.poll()
                ended = f"has ended its own process (exit status {code})" if code is not None else f"fails ({error!r})"
                self._give_up(ended)
            finally:
                with self._changed:
                    self._waiting -= 1
                    self._changed.notify_all()

    def _hand_over(self, event: Event) -> None:
        if self._process is None:
            self._process = self._started()
            made = self._answer(self._asked)
            if made is not None:
                self._give_up(f"cannot be made ({made})")
        if not self._given_up and (raised := self._answer(event)) is not None:
            self._note = self._note or f"raises {raised}; runs go on, and it is told what comes"

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self._asked.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(
            [sys.executable, "-m", "clops_sweep.sweep.observers.process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip

    def _answer(self, value: Any) -> str | None:
        """What the process says to a value: None, or what was raised."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(value, self._process.stdin)
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], self._seconds)[0]:
            self._give_up(f"has not returned within {self._seconds:g} s")
            return None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(self._seconds)
            raise EOFError
        said: str | None = json.loads(line)
        return said

    def _give_up(self, why: str) -> None:
        with self._changed:
            if self._given_up:
                return
            self._given_up = True
            self._note = self._note or f"{why}; runs go on, and this worker tells it no more"
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._changed.notify_all()
