"""How a preparation ends early: its processes with it, and nothing half-written behind it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM (a batch system whose time is up) raises KeyboardInterrupt inside, as Ctrl-C does, so that all is tidied.

    Without a handler the process would end on the spot. Nothing is changed outside the main thread, where Python sets
    no handlers, or where the caller has a handler of its own.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_with_parent() -> None:
    """Ends this process as soon as the one that started it is gone, however that was killed; Ctrl-C is the parent's.

    The operating system closes the parent's end of a pipe when the parent ends, which holds on every platform.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="end-with-parent", daemon=True).start()


def _end_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
