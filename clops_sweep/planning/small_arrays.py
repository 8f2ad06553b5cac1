"""Data sets of small arrays that are not prepared: a plan prepares them into a scratch folder, to check them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.declared.table_alone import READERS
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.source_code import functions_of, global_names
from clops_sweep.errors import UsageError
from clops_sweep.experiment.prepared_tasks import checked_frames
from clops_sweep.planning.request import Request
from clops_sweep.planning.task_tables import TaskTable, task_tables

SMALL: Final = 50e6
"""Most bytes of arrays, or of the files that hold them, that a plan prepares in a second or two."""

_NO_ARRAYS: Final = READERS | {"combine"}
"""Names in functions whose recordings are in files: of these, a plan reads the table alone."""


def with_small_arrays(tables: Sequence[TaskTable], request: Request) -> list[TaskTable]:
    """Return the tables of tasks, also those of data sets of small arrays that are not prepared.

    These are prepared into a folder that is removed at once, and checked as a launch checks them.

    Args:
        tables: the tables; those of data that are not prepared have no rows.
        request: what is asked for.

    Raises:
        UsageError: the arrays are invalid, or do not fit a scenario or network.
    """
    unknown = dict.fromkeys(table.dataset for table in tables if table.rows is None)
    checked: dict[str, list[TaskTable]] = {}
    for name in unknown:
        declared = DATASETS.declared(name)
        if declared is not None and _is_small(name, declared, request.data.source):
            checked[name] = _checked(name, request)
    complete: list[TaskTable] = []
    for table in tables:
        of_name = checked.get(table.dataset, [])
        complete.append(next((other for other in of_name if _is_same(table, other)), table))
    return complete


def _is_same(one: TaskTable, other: TaskTable) -> bool:
    """Return whether two tables are about the same tasks; only prepared data tell whether their split is given."""
    return replace(one, rows=None, is_given=False) == replace(other, rows=None, is_given=False)


def _checked(name: str, request: Request) -> list[TaskTable]:
    """Return the tables of tasks of a data set, which is prepared, checked and removed again."""
    configs = [config for config in request.selection.configs if config.dataset == name]
    on_signals = [config for config in configs if config.encoder is None and config.start_from is None]
    with TemporaryDirectory() as folder:
        scratch = PreparedData(Path(folder), request.data.source)
        prepare(name, prepared_root=scratch.root, data_root=scratch.source, workers=1)
        checked_frames(on_signals, scratch, request.selection.base_of)
        return task_tables(on_signals, scratch)


def _is_small(name: str, declared: Declared, data_root: Path | None) -> bool:
    """Return whether a function returns arrays that are small: in memory, or in its declared files."""
    function = declared.member
    if inspect.isgeneratorfunction(function) or not _NO_ARRAYS.isdisjoint(function.__code__.co_names):
        return False
    if declared.files:
        with suppress(UsageError, OSError):
            files = declared_files(name, declared.files, data_root or declared.folder)
            return sum(file.stat().st_size for file in files.values()) <= SMALL
        return False
    sizes = [_bytes_of(value) for value in _values_of(function)]
    return 0 < sum(sizes) <= SMALL


def _bytes_of(value: Any) -> int:
    """Return the size of an array of signals, or of a list of them; 0 for other values, such as labels."""
    arrays = value if isinstance(value, list | tuple) else [value]
    size = 0
    for array in arrays:
        if isinstance(array, np.ndarray) and array.ndim > 1:
            size += array.nbytes
    return size


def _values_of(function: Any) -> Iterator[Any]:
    """Yield the values that a function and the functions within it take from its file, and from functions around it."""
    for inner in functions_of(function):
        for name in global_names(inner.__code__):
            yield inner.__globals__.get(name)
        for cell in inner.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                yield cell.cell_contents
