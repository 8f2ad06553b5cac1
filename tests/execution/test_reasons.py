"""The reason of a failed run, on one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from clops_sweep import RunConfig
from clops_sweep.errors import Diverged
from clops_sweep.execution.computing.tune import why_it_ended
from clops_sweep.execution.worker.exceptions import attempt_failed
from clops_sweep.store.parts import encoded, named
from clops_sweep.store.rows import last_line, reason_of
from clops_sweep.store.run_store import RunStore
from tests.helpers.contents import failed_row, id_of
from tests.helpers.stores import record_failure

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
    why = why_it_ended(error)
    assert why is not None
    assert why.startswith(begin)
    assert why.endswith("fewer run at a time with more --cpus-per-trial")


def test_other_errors_of_ray_have_their_last_line_as_reason() -> None:
    error = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: no\n'
    assert why_it_ended(error) is None
    assert last_line(error) == "ValueError: no"
    assert last_line("\n") == "unknown error"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no\nmore"), "ValueError: no"),
        (ValueError("\n  first  \nmore"), "ValueError: first"),
        (KeyError(), "KeyError"),
        (Diverged("a parameter is not finite"), "Diverged: a parameter is not finite"),
        (ExceptionGroup("several", [ValueError("x"), TypeError("y")]), "ExceptionGroup: several (2 sub-exceptions)"),
        (Unprintable(), "Unprintable: what was raised cannot be printed"),
        (OSError("s3://key:SECRET@bucket is gone"), "OSError: s3://key:***@bucket is gone"),
        (ValueError("x" * 300), f"ValueError: {'x' * 188}…"),
    ],
)
def test_an_exception_has_its_type_and_the_first_line_of_its_message_as_reason(error: Exception, reason: str) -> None:
    report = attempt_failed(error, {"host": "here"})
    assert report.reason == reason
    assert report.is_final == isinstance(error, Diverged)
    assert report.facts == {"host": "here"}


def test_the_error_has_the_traceback() -> None:
    try:
        [][1]
    except IndexError as error:
        report = attempt_failed(error, {})
    assert report.error.startswith("Traceback (most recent call last):")
    assert report.error.endswith("IndexError: list index out of range\n")
    assert "test_reasons.py" in report.error


def _error_of_numpy() -> Exception:
    with pytest.raises(MemoryError) as raised:
        np.empty(2**59)
    return raised.value


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        (_error_of_numpy(), True),
        (MemoryError(), True),
        (RuntimeError(f"[{'x' * 300}] DefaultCPUAllocator: can't allocate memory: you tried 64 bytes"), True),
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."), True),
        (ValueError("the memory of a method holds nothing"), False),
    ],
)
def test_errors_for_want_of_memory_say_what_helps(error: Exception, helps: bool) -> None:
    reason = attempt_failed(error, {}).reason
    assert reason.startswith(type(error).__name__)
    assert ("fewer run at a time with more --cpus-per-trial" in reason) == helps


def test_a_row_of_an_earlier_version_has_the_last_line_of_its_error_as_reason() -> None:
    assert reason_of({"reason": "ValueError: \x1b no", "error": "Traceback ..."}) == "ValueError: \\x1b no"
    assert reason_of({"reason": None, "error": "Traceback ...\nValueError: \x1b no\n"}) == "ValueError: \\x1b no"
    assert reason_of({"reason": float("nan"), "error": LOW}).startswith("usage threshold of 0.95")
    assert reason_of({"reason": None, "error": None}) == "unknown error"


def test_a_store_of_an_earlier_version_has_reasons(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.open_for_writing()
    row = failed_row(1, "Traceback ...\nValueError: 1").drop_columns(["reason"])
    facts: dict[str, object] = {"files": {}, "predicted": [], "replaces": []}
    content = encoded(row, facts)
    (tmp_path / "runs" / named("20260101T000000-0badcafe-000001", content)).write_bytes(content)
    (stored,) = RunStore(tmp_path).rows("runs", ["reason", "error"])
    assert reason_of(stored) == "ValueError: 1"
    record_failure(store, {id_of(2): RunConfig(seed=2)}, "Traceback ...\nValueError: 2", lambda _: "0", {})
    rows = RunStore(tmp_path).rows("runs", ["run_id", "reason", "error"])
    assert [reason_of(row) for row in rows] == ["ValueError: 1", "ValueError: 2"]
