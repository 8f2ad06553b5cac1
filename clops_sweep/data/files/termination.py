"""Clean termination of a preparation with all its processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

_SIGNALS = ("SIGTERM", "SIGUSR1", "SIGHUP")


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, SIGUSR1 and SIGHUP raise KeyboardInterrupt in the block, as Ctrl-C does, for a clean-up.

    Batch systems and closed terminals send these signals, which would end the process at once. Nothing changes outside
    the main thread, for signals that the caller handles or ignores (`nohup`), and for those that Windows lacks.
    """
    here = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in _SIGNALS if here and hasattr(signal, name)]
    unhandled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in unhandled:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def end_with_parent() -> None:
    """End this process as soon as its parent is gone, however it was killed; the parent handles Ctrl-C.

    On every platform, the operating system closes the parent's end of a pipe when the parent ends.
    """
    import multiprocessing  # imported here, because every command imports this module, and few start processes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="end-with-parent", daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
