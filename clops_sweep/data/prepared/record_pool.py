"""An ordered parallel map over records, which works in any script."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

from clops_sweep.data.files.termination import end_with_parent
from clops_sweep.errors import UsageError
from clops_sweep.machine import available_cores

WORTH_PARALLEL = 16
_Result = TypeVar("_Result")


@contextmanager
def record_pool(
    name: str, records: int, workers: int | None
) -> Iterator[Callable[[Callable[..., _Result], Iterable[Any]], Iterator[_Result]]]:
    """Return an ordered map over records: in this process, or in several if there are enough records.

    The worker processes have one thread each. They end with the block, and if this process is killed.
    """
    available = available_cores()
    count = workers if workers is not None else available
    if count < 2 or records < WORTH_PARALLEL:
        yield map
        return
    # spawned, since a fork would copy locks that threads (torch, Ray) of this process hold
    with (
        _script_left_out(),
        ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin) as pool,
    ):
        try:
            yield partial(_in_order, pool, count * 4)
        except BrokenProcessPool:
            raise UsageError(
                f"{name}: a process that read records was killed; start again, or with less at once"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _script_left_out() -> Iterator[None]:
    """Keep spawned processes from running the caller's script, which may lack `if __name__ == "__main__"`.

    They do not need it: the functions that they call are in this package.
    """
    main: dict[str, Any] = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def _in_order(
    pool: ProcessPoolExecutor, ahead: int, function: Callable[..., _Result], items: Iterable[Any]
) -> Iterator[_Result]:
    """Like `Executor.map`, but submit only a few items ahead, so that memory does not grow with the data set."""
    waiting: list[Any] = []
    remaining = iter(items)
    for item in itertools.islice(remaining, ahead):
        waiting.append(pool.submit(function, item))
    while waiting:
        result: _Result = waiting.pop(0).result()
        for item in itertools.islice(remaining, 1):
            waiting.append(pool.submit(function, item))
        yield result


def _begin() -> None:
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"
