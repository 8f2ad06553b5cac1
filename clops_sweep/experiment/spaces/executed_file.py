"""Execution of a Python file of search spaces or plug-ins."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, closest, one_line
from clops_sweep.experiment.spaces.local_modules import importable
from clops_sweep.experiment.spaces.misspelt import suggestion, without_path
from clops_sweep.experiment.spaces.started_sweeps import executed_by_command

_LONGEST_SAID = 200


def names_in(path: Path) -> dict[str, Any]:
    """Execute a file of search spaces or plug-ins, with modules in its folder importable, and return its names.

    Raises:
        UsageError: the file does not exist, raises, calls `sweep`, or imports a compiled module in its folder.
    """
    try:
        is_there = path.is_file()
    except OSError as error:  # an invalid file name, or a folder without read permission
        raise UsageError(f"{shorten(path)}: cannot be read ({error.strerror or one_line(error)})") from None
    if not is_there:
        raise UsageError(f"{path}: no such search-space file{_similar_file(path)}")
    try:
        with importable(path.resolve().parent), executed_by_command():
            # absolute: a worker, which runs in another folder, shows the lines of this file in tracebacks
            return runpy.run_path(os.path.abspath(path), run_name="clops_sweep_search_space")
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        kind = f"{type(error).__name__}{_line_in(path, error)}"
        meant = suggestion(error, path.resolve().parent)
        raise UsageError(f"{path} raises {kind}: {_said(error)}{meant}") from None


def _similar_file(path: Path) -> str:
    """Return " (did you mean 'wards.py'?)" if the folder of a missing file has a file of a similar name."""
    try:
        names = [file.name for file in path.parent.glob("*.py")]
    except (OSError, ValueError):
        return ""
    meant = closest(path.name, names)
    return "" if meant is None else f" (did you mean {str(path.parent / meant)!r}?)"


def _said(error: BaseException) -> str:
    """Return the message of an exception of user code on one line, shortened."""
    said = without_path(one_line(error)).encode("utf-8", "backslashreplace").decode("utf-8")
    return said if len(said) <= _LONGEST_SAID else f"{said[:_LONGEST_SAID]}..."


def _line_in(path: Path, error: BaseException) -> str:
    """Return the line in the user's file, if the traceback has it."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" in line {error.lineno}"
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == os.path.abspath(path):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return f" in line {lines[-1]}" if lines else ""
