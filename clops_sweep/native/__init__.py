"""The native CPU kernels: their availability, and the variant that this process uses."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIANTS = ("avx512", "avx2", "baseline")
"""Variants, best first. The compiler and the CPU decide which are available."""

ENVIRONMENT = "CLOPS_NATIVE"
"""Environment variable with the name of a variant, or `off` for PyTorch; for tests and comparisons."""

_kernels: ModuleType | None
_error: ImportError | None = None
try:
    _kernels = importlib.import_module("clops_sweep.native._kernels")
except ImportError as error:
    _kernels, _error = None, error


def available() -> tuple[str, ...]:
    """Return the variants that can run here, best first; empty if the extension was not built."""
    return () if _kernels is None else tuple(_kernels.variants())


def chosen() -> str | None:
    """Return the variant to compute with, or None for PyTorch.

    Raises:
        ValueError: the environment variable names a missing variant.
    """
    requested = os.environ.get(ENVIRONMENT, "")
    if requested == "off":
        return None
    variants = available()
    if requested:
        if requested not in variants:
            raise ValueError(f"{ENVIRONMENT}={requested}: not available; expected {', '.join((*variants, 'off'))}")
        return requested
    if not variants:
        _warn_once()
        return None
    return variants[0]


def chosen_for_programs() -> str | None:
    """Return the variant to compute networks other than the paper's with, or None for PyTorch; see `chosen`."""
    return chosen() if hasattr(_kernels, "TrainedProgram") else None


@cache
def why_missing() -> str:
    """Return a sentence on why this process has no kernels, and what to do about it."""
    consequence = "so a CPU computes with PyTorch, about fifteen times slower"
    if _error is not None and not isinstance(_error, ModuleNotFoundError):
        return f"the native kernels cannot be loaded ({_error}), {consequence}: install clops-sweep again"
    folder = Path(__file__).parent
    if any(built != folder for built in _installed_folders()):
        return (
            f"{folder.parents[1]} hides the installed clops-sweep and has no native kernels, {consequence}: run "
            "`pip install -e .` in that folder, or start Python in another"
        )
    return f"the native kernels are not built, {consequence}: install a C++ compiler (g++), then clops-sweep again"


def _installed_folders() -> Iterator[Path]:
    """Yield the folders of the kernels of installed distributions."""
    for distribution in importlib.metadata.distributions(name="clops-sweep"):
        for path in distribution.files or ():
            if path.match("clops_sweep/native/_kernels.*"):
                yield Path(str(distribution.locate_file(path))).parent


def core(**arguments: Any) -> Any:
    """Return a `_kernels.Core` (see src/core.hpp) over the memory of a network."""
    assert _kernels is not None
    return _kernels.Core(**arguments)


def program(**arguments: Any) -> Any:
    """Return a `_kernels.Program` (see src/programs.hpp) over parameters and running statistics."""
    assert _kernels is not None
    return _kernels.Program(**arguments)


def trained_program(**arguments: Any) -> Any:
    """Return a `_kernels.TrainedProgram` (see src/trained_program.hpp) over the memory of a program."""
    assert _kernels is not None
    return _kernels.TrainedProgram(**arguments)


def frame_statistics(stored: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return `data.prepared.normalization.frame_statistics`; None for other types or without the kernels."""
    if _kernels is None or stored.dtype not in (np.int16, np.float32):
        return None
    statistics: NDArray[np.float64] = _kernels.frame_statistics(np.ascontiguousarray(stored))
    return statistics


def gather(
    stored: NDArray[np.int16], gain: NDArray[np.float32], offset: NDArray[np.float32], rows: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Return gain * stored + offset of some rows, float32 [n, samples]; None without the kernels."""
    if _kernels is None:
        return None
    signals: NDArray[np.float32] = _kernels.gather(stored, gain, offset, rows)
    return signals


def kept(priorities: NDArray[np.float64], groups: NDArray[np.int64], capacity: int) -> NDArray[np.int64] | None:
    """Return `learning.replay.division.kept`; None without the kernels, or with those of an earlier build."""
    if _kernels is None or not hasattr(_kernels, "kept"):
        return None
    positions: NDArray[np.int64] = _kernels.kept(priorities, groups, capacity)
    return positions


@cache
def _warn_once() -> None:
    logging.getLogger("clops_sweep").warning(why_missing())
