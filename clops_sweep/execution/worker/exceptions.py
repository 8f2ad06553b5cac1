"""The exception that ended an attempt to compute a run, as a report: its traceback, and its reason on one line."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import torch

from clops_sweep.errors import Diverged, UsageError, one_line
from clops_sweep.execution.reports import AttemptFailed, bounded
from clops_sweep.store.rows import shortened

_UNPRINTABLE = "what was raised cannot be printed"
_MEMORY_HELP = "; fewer run at a time with more --cpus-per-trial, or --gpus-per-trial for the GPU's memory"


def attempt_failed(error: BaseException, facts: Mapping[str, Any]) -> AttemptFailed:
    """Return the report of an attempt that an exception has ended.

    Args:
        error: the exception, perhaps of user code, which may fail to print.
        facts: what the worker knows of host and time, as columns of `runs`.
    """
    is_final = isinstance(error, UsageError | Diverged)
    return AttemptFailed(_with_traceback(error), _reason(error), is_final, facts)


def _with_traceback(error: BaseException) -> str:
    """Return the traceback; of an exception whose own code fails to print it, the type."""
    try:
        return bounded("".join(traceback.format_exception(error)))
    except Exception:
        return f"{type(error).__name__}: {_UNPRINTABLE}"


def _reason(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message; of a want of memory, also what helps."""
    kind = type(error).__name__
    try:
        message = str(error).strip()
    except Exception:
        return f"{kind}: {_UNPRINTABLE}"
    first_line = one_line(message.partition("\n")[0])
    reason = shortened(f"{kind}: {first_line}" if first_line else kind)
    return reason + _MEMORY_HELP if _is_of_memory(error, message) else reason


def _is_of_memory(error: BaseException, message: str) -> bool:
    """Return whether memory of the machine or of a GPU was too small. PyTorch raises a RuntimeError for the former."""
    return isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or "can't allocate memory" in message
