"""The native CPU kernels: whether they are there, and which of their variants this process uses."""

from __future__ import annotations

import importlib
import logging
import os
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIANTS = ("avx512", "avx2", "baseline")
"""Best first. What was compiled and what the CPU can run decides which of them there are."""

ENVIRONMENT = "CLOPS_NATIVE"
"""Names a variant, or `off` for PyTorch; for tests and comparisons."""

NOT_BUILT = (
    "the native kernels were not built (no C++ compiler at installation): a CPU computes with PyTorch, four to five "
    "times slower"
)

_kernels: ModuleType | None
try:
    _kernels = importlib.import_module("clops_sweep.native._kernels")
except ImportError:
    _kernels = None


def available() -> tuple[str, ...]:
    """The variants that can run here, best first; none where the extension was not built."""
    return () if _kernels is None else tuple(_kernels.variants())


def chosen() -> str | None:
    """The variant to compute with, or None for PyTorch.

    Raises:
        ValueError: the environment asks for a variant that there is not.
    """
    wanted = os.environ.get(ENVIRONMENT, "")
    there = available()
    if wanted == "off":
        return None
    if wanted:
        if wanted not in there:
            raise ValueError(f"{ENVIRONMENT}={wanted}: not here; there is {', '.join((*there, 'off'))}")
        return wanted
    if not there:
        _say_once()
        return None
    return there[0]


def core(**arguments: Any) -> Any:
    """A `_kernels.Core` (see src/core.hpp) over the memory of S networks."""
    assert _kernels is not None
    return _kernels.Core(**arguments)


def frame_statistics(stored: NDArray[Any]) -> NDArray[np.float64] | None:
    """What `clops_sweep.data.normalization.frame_statistics` gives; None of other types, or where nothing was built."""
    if _kernels is None or stored.dtype not in (np.int16, np.float32):
        return None
    found: NDArray[np.float64] = _kernels.frame_statistics(np.ascontiguousarray(stored))
    return found


@cache
def _say_once() -> None:
    logging.getLogger("clops_sweep").warning(NOT_BUILT)
