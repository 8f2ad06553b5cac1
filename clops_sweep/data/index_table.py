"""The index of a prepared data set as a Parquet table: one row per frame, readable by pandas.read_parquet."""

from __future__ import annotations

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
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(list(names), pa.string()))

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
        "start": pa.array(index.start),
        "label": label,
    }
    if index.times is not None:
        columns["time"] = pa.array(index.times)
    columns |= {f"domain_{name}": named(codes, names) for name, (codes, names) in index.domains.items()}
    columns["split"] = named(split, SPLIT_NAMES)
    with open(path, "wb") as file:  # Arrow itself opens no path that is not UTF-8
        pq.write_table(pa.table(columns), file, compression="zstd")
