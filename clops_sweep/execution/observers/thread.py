"""The thread of the driver that calls all observers, one event after another."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clops_sweep.errors import reason, several
from clops_sweep.execution.observers.requested import RequestedObserver
from clops_sweep.experiment.events import EpochEnd, Event, number

SECONDS = 60.0
"""Maximum seconds of a call of an observer, and of the wait for all observers at the end of a launch."""

_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_WAITING = 5_000
"""Length of the queue above which epoch events are dropped; an event takes a few kilobytes."""


class Observers:
    """Calls observers from a separate thread; nothing else waits for them.

    The thread is a daemon. If an observer hangs in it, a new thread serves the other observers. Only `look` and `close`
    call `warn`, so no observer can disturb the display.

    Args:
        requested: the observers; each is made in the thread, before its first event.
        warn: called with each warning, from the caller's thread.
        seconds: maximum duration of a call.
    """

    def __init__(
        self, requested: Sequence[RequestedObserver], warn: Callable[[str], object], seconds: float = SECONDS
    ) -> None:
        self._warn, self._seconds = warn, seconds
        self._active = [_Observer(each) for each in requested]
        self._last: dict[str, int] = {}
        self._dropped = 0
        self._notes: list[str] = []
        self._changed = threading.Condition()
        self._queue: deque[tuple[_Observer, Event]] = deque()
        self._called: _Observer | None = None
        self._called_at = 0.0
        self._thread: threading.Thread | None = None

    def tell(self, events: Iterable[Event]) -> None:
        """Queue events, except those that a resumed run has repeated. Returns at once."""
        with self._changed:
            for event in events:
                if number(event) <= self._last.get(event.run_id, -1):
                    continue
                self._last[event.run_id] = number(event)
                if isinstance(event, EpochEnd) and len(self._queue) >= _MOST_WAITING:
                    self._dropped += 1
                else:
                    self._queue.extend((observer, event) for observer in self._active)
            if self._queue and self._thread is None:
                self._start()
            self._changed.notify_all()

    def look(self) -> None:
        """Give up an observer that hangs, and pass new sentences to `warn`. Call it every second or so."""
        with self._changed:
            if self._called is not None and time.monotonic() - self._called_at >= self._seconds:
                self._give_up(self._called, f"has not returned within {self._seconds:g} s")
                self._start()
            notes, self._notes = self._notes, []
        for note in notes:
            self._warn(note)

    def close(self, seconds: float) -> None:
        """Wait until the queue is empty, for a limited time, and end the thread unless an observer hangs."""
        until = time.monotonic() + seconds
        while self._is_busy(until):
            self.look()
        with self._changed:
            if self._called is not None:
                rest = f"; observers missed {several(len(self._queue), 'event')}" if self._queue else ""
                self._notes.append(f"observer {self._called.name!r} has not returned at the end of the sweep{rest}")
            if self._dropped:
                missed = several(self._dropped, "epoch event")
                self._notes.append(f"observers are slower than the runs and missed {missed}")
            self._active, self._thread, self._called = [], None, None
            self._queue.clear()
            self._changed.notify_all()
        self.look()

    def _is_busy(self, until: float) -> bool:
        with self._changed:
            if self._queue or self._called:
                self._changed.wait(_SECONDS_BETWEEN_LOOKS)
            return bool(self._queue or self._called) and time.monotonic() < until

    def _start(self) -> None:
        self._called = None
        self._thread = threading.Thread(target=self._work, name="observers", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            observer, event = call
            try:
                observer(event)
            except BaseException as error:  # interrupts reach only the main thread: everything here is user code
                self._raised(observer, error)

    def _next(self) -> tuple[_Observer, Event] | None:
        """Wait for the next call; None if this thread has been replaced or is no longer needed."""
        me = threading.current_thread()
        with self._changed:
            if self._thread is me:
                self._called = None
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._thread is not me or self._queue)
            if self._thread is not me:
                return None
            call = self._queue.popleft()
            self._called, self._called_at = call[0], time.monotonic()
            return call

    def _raised(self, observer: _Observer, error: BaseException) -> None:
        what = reason(error)
        with self._changed:
            if self._thread is not threading.current_thread():
                return  # it was given up before
            if observer.call is None:
                self._give_up(observer, f"cannot be made ({what})")
            elif not observer.has_raised:
                observer.has_raised = True
                self._notes.append(f"observer {observer.name!r} raises {what}; runs go on, and so do its later events")

    def _give_up(self, observer: _Observer, why: str) -> None:
        self._active.remove(observer)
        self._queue = deque(call for call in self._queue if call[0] is not observer)
        self._notes.append(f"observer {observer.name!r} {why}; runs go on, and it gets no more events")


class _Observer:
    """A requested observer with its state."""

    def __init__(self, requested: RequestedObserver) -> None:
        self._requested, self.name = requested, requested.name
        self.call: Callable[[Event], Any] | None = None
        self.has_raised = False

    def __call__(self, event: Event) -> None:
        if self.call is None:
            self.call = self._requested.made()
        self.call(event)
