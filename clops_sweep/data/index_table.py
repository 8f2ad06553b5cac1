"""The index of a prepared data set as a Parquet table: one row per frame, readable by pandas.read_parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.reader import Index


def write_index(
    path: Path, index: Index, split: NDArray[np.int8], classes: tuple[str, ...], lead_names: tuple[str, ...]
) -> None:
    """Columns: patient, record, lead, start (seconds), label, time and domains (if any), split (of split seed 0).

    `label` is the class name; where instances carry several, the names joined by commas in alphabetical order.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def named(codes: NDArray[Any], names: tuple[str, ...]) -> Any:
        return pa.DictionaryArray.from_arrays(_numbers(codes.astype(np.int32)), _texts(names))

    if index.labels.ndim == 2:
        # A data set of C labels has few distinct combinations, so naming them is cheap however many frames there are.
        combinations, codes = np.unique(index.labels, axis=0, return_inverse=True)
        names = tuple(",".join(np.array(classes)[row.astype(bool)]) for row in combinations)
        label = named(codes.reshape(-1), names)
    else:
        label = named(index.labels, classes)
    columns = {
        "patient": named(index.patients, index.patient_names),
        "record": named(index.records, index.record_names),
        "lead": named(index.leads, lead_names),
        "start": _numbers(index.start),
        "label": label,
    }
    if index.times is not None:
        columns["time"] = _numbers(index.times)
    columns |= {f"domain_{name}": named(codes, names) for name, (codes, names) in index.domains.items()}
    columns["split"] = named(split, SPLIT_NAMES)
    with open(path, "wb") as file:  # Arrow itself opens no path that is not UTF-8
        table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
        pq.write_table(table, file, compression="zstd")


def _numbers(values: NDArray[Any]) -> Any:
    """An Arrow array of numbers or dates, not made by `pyarrow.array`, as that imports pandas."""
    import pyarrow as pa

    content = np.ascontiguousarray(values).view(np.uint8)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(content)])


def _texts(names: Sequence[str]) -> Any:
    """An Arrow array of strings, made likewise."""
    import pyarrow as pa

    joined = "".join(names)
    content = joined.encode()
    ends = np.cumsum([0, *map(len, names if joined.isascii() else map(str.encode, names))], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(names), [None, pa.py_buffer(ends), pa.py_buffer(content)])
