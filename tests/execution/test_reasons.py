"""The line that summarises the error of a failed run."""

from __future__ import annotations

import pytest

from clops_sweep.execution.tune import _why_it_ended
from clops_sweep.store.rows import failure_reason

LOW = """Failure # 1 (occurred at 2026-01-01_00-00-00)
Traceback (most recent call last):
  File "ray/_private/worker.py", line 929, in get_objects
    raise value
ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
Memory on the node (IP: 10.0.0.1) where the task was running was 59.14GB / 62.00GB (0.95), which exceeds the memory
usage threshold of 0.95. Ray killed this worker because it was the most recently scheduled task.
"""
KILLED = """Traceback (most recent call last):
  File "ray/_private/worker.py", line 929, in get_objects
    raise value
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. Some potential root causes:
(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.
"""
ENDED = """Failure # 1 (occurred at 2026-01-01_00-00-00)
The actor died unexpectedly before finishing this task.
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker
unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed
by the OOM killer due to high memory usage, (2) ray stop --force was called, or (3) the worker crashed.
"""


@pytest.mark.parametrize(
    ("error", "begin"),
    [(LOW, "OutOfMemory: the machine ran out"), (KILLED, "WorkerKilled: the w"), (ENDED, "WorkerKilled: the w")],
)
def test_the_reason_of_a_killed_worker_says_what_helps(error: str, begin: str) -> None:
    why = _why_it_ended(error)
    assert why is not None
    reason = failure_reason(f"{error.rstrip()}\n{why}")
    assert reason.startswith(begin)
    assert reason.endswith("fewer run at a time with more --cpus-per-trial")


def test_other_errors_have_the_reason_that_their_traceback_names() -> None:
    error = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: no\nmore\n'
    assert _why_it_ended(error) is None
    assert failure_reason(error) == "ValueError: no"


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 64.0 MiB for an array", True),
        ("MemoryError", True),
        (f"RuntimeError: [{'x' * 300}] DefaultCPUAllocator: can't allocate memory: you tried 64 bytes", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", True),
        ("ValueError: the memory of a method holds nothing", False),
    ],
)
def test_errors_for_want_of_memory_say_what_helps(said: str, helps: bool) -> None:
    reason = failure_reason(f'Traceback (most recent call last):\n  File "x.py", line 1, in f\n{said}\n')
    assert reason.startswith(said[:200])
    assert ("fewer run at a time with more --cpus-per-trial" in reason) == helps
