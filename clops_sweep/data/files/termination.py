"""How a preparation ends early: its processes with it, and nothing half-written behind it."""

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
    """SIGTERM, SIGUSR1 and SIGHUP raise KeyboardInterrupt inside, as Ctrl-C does, so that everything is tidied.

    Batch systems and closed terminals send them, and without a handler the process would end on the spot. Nothing
    changes outside the main thread, where Python sets no handlers, for signals that the caller handles or ignores
    (`nohup`), and for those that Windows does not have.
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
    """Ends this process as soon as the one that started it is gone, however that was killed; Ctrl-C is the parent's.

    The operating system closes the parent's end of a pipe when the parent ends, which holds on every platform.
    """
    import multiprocessing  # every command imports this module, and few start processes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="end-with-parent", daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
