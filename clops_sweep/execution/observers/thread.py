"""The thread of the driver that calls all observers, one event after another."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from queue import Queue
from typing import Any

from clops_sweep.errors import reason, several
from clops_sweep.execution.observers.requested import RequestedObserver
from clops_sweep.experiment.events import EpochEnd, Event, number

SECONDS = 60.0
"""Seconds after which an observer that hangs is named, and longest wait for observers at the end of a launch."""

MOST_WAITING = 5_000
"""Length of the queue above which epoch events are dropped; an event takes a few kilobytes."""


class Observers:
    """Calls observers from one daemon thread with a queue; nothing else waits for them.

    An observer that hangs is named, and the others get no more events until it returns. Only `look` and `close` call
    `warn`, so no observer can disturb the display.

    Args:
        requested: the observers; each is made in the thread, before its first event.
        warn: called with each warning, from the caller's thread.
        seconds: duration of a call after which the observer is named.
    """

    def __init__(
        self, requested: Sequence[RequestedObserver], warn: Callable[[str], object], seconds: float = SECONDS
    ) -> None:
        self._warn, self._seconds = warn, seconds
        self._made: dict[RequestedObserver, Callable[[Event], Any] | None] = dict.fromkeys(requested)
        self._last: dict[str, int] = {}
        self._dropped, self._closed = 0, False
        self._notes: deque[str] = deque()
        self._queue: Queue[Event | None] = Queue()
        self._called: tuple[str, float] | None = None
        self._named: tuple[str, float] | None = None
        self._thread = threading.Thread(target=self._work, name="observers", daemon=True)

    def tell(self, events: Iterable[Event]) -> None:
        """Queue events, except those that a resumed run has repeated. Returns at once."""
        for event in () if self._closed or not self._made else events:
            if number(event) <= self._last.get(event.run_id, -1):
                continue
            self._last[event.run_id] = number(event)
            if isinstance(event, EpochEnd) and self._queue.qsize() >= MOST_WAITING:
                self._dropped += 1
            else:
                self._queue.put(event)
            if self._thread.ident is None:
                self._thread.start()

    def look(self) -> None:
        """Name an observer that hangs, and pass new sentences to `warn`. Call it every second or so."""
        called = self._called
        if called is not None and called != self._named and time.monotonic() - called[1] >= self._seconds:
            self._named = called
            self._notes.append(
                f"observer {called[0]!r} has not returned within {self._seconds:g} s; runs go on, and observers get no "
                "events until it does"
            )
        while self._notes:
            self._warn(self._notes.popleft())

    def close(self, seconds: float) -> None:
        """Wait until the queue is empty, for a limited time, and end the thread unless an observer hangs."""
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(seconds)
        if self._thread.is_alive() and (called := self._called):
            missed = self._queue.qsize() - 1
            rest = f"; observers missed {several(missed, 'event')}" if missed else ""
            self._notes.append(f"observer {called[0]!r} has not returned at the end of the sweep{rest}")
        if self._dropped:
            self._notes.append(f"observers are slower than the runs and missed {several(self._dropped, 'epoch event')}")
        self._closed, self._called = True, None
        self.look()

    def _work(self) -> None:
        raised: set[RequestedObserver] = set()
        while (event := self._queue.get()) is not None:
            for observer in () if self._closed else list(self._made):
                self._called = observer.name, time.monotonic()
                try:
                    call = self._made[observer] = self._made[observer] or observer.made()
                    call(event)
                except BaseException as error:  # interrupts reach only the main thread: everything here is user code
                    name, what = f"observer {observer.name!r}", reason(error)
                    if self._made[observer] is None:
                        del self._made[observer]
                        self._notes.append(f"{name} cannot be made ({what}); runs go on, and it gets no more events")
                    elif observer not in raised:
                        raised.add(observer)
                        self._notes.append(f"{name} raises {what}; runs go on, and so do its later events")
            self._called = None
