"""`index.parquet`, the table of a prepared folder: one row per frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import natural, one_sentence
from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.prepared.manifest import INDEX, Manifest, remedy
from clops_sweep.data.records import Index
from clops_sweep.errors import DamagedStore

if TYPE_CHECKING:
    import pyarrow as pa

_STATISTICS: Final = ("minimum", "maximum", "mean", "deviation")
_LABEL, _DOMAIN, _GROUP = "label:", "domain_", "group_"


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """What the table stores about each of the n frames.

    Shapes: gain, offset [n] float32; statistics [n, 4] float64 (`frame_statistics`); split [n] int8 of split seed 0.
    """

    index: Index
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    statistics: NDArray[np.float64]
    split: NDArray[np.int8]

    def write(self, path: Path, classes: tuple[str, ...], lead_names: tuple[str, ...]) -> None:
        """Write the table.

        Its columns are patient, record, lead, start (seconds), label, time, domains and groups (if any), split, gain,
        offset, and minimum, maximum, mean and deviation of the stored samples. If frames can have several labels,
        `label` joins their names by commas, and a column `label:NAME` of 0 and 1 is added for each class.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        index = self.index
        columns = {
            "patient": _named(index.patients, index.patient_names),
            "record": _named(index.records, index.record_names),
            "lead": _named(index.leads, lead_names),
            "start": _numbers(index.start),
            "label": _label(index.labels, classes),
        }
        if index.labels.ndim == 2:
            columns |= {f"{_LABEL}{name}": _numbers(index.labels[:, code]) for code, name in enumerate(classes)}
        if index.times is not None:
            columns["time"] = _numbers(index.times)
        columns |= {f"{_DOMAIN}{name}": _named(codes, names) for name, (codes, names) in index.domains.items()}
        columns |= {f"{_GROUP}{name}": _named(codes, names) for name, (codes, names) in index.groups.items()}
        columns |= {
            "split": _named(self.split, SPLIT_NAMES),
            "gain": _numbers(self.gain),
            "offset": _numbers(self.offset),
        }
        columns |= {name: _numbers(self.statistics[:, column]) for column, name in enumerate(_STATISTICS)}
        with open(path, "wb") as file:  # Arrow cannot open a path that is not UTF-8
            table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
            pq.write_table(table, file, compression="zstd")


class FrameTable:
    """The table of a prepared folder; columns are read on first use, as read-only arrays.

    Raises:
        DamagedStore: from any method, if the file is not a table with the column.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path, self._manifest = folder / INDEX, manifest

    @cached_property
    def gain(self) -> NDArray[np.float32]:
        """Gains, float32 [n]."""
        return self._column("gain")

    @cached_property
    def offset(self) -> NDArray[np.float32]:
        """Offsets, float32 [n]."""
        return self._column("offset")

    @cached_property
    def statistics(self) -> NDArray[np.float64]:
        """`frame_statistics` of the stored samples, float64 [n, 4]."""
        return _read_only(np.stack([self._column(name) for name in _STATISTICS], axis=1))

    @cached_property
    def patients(self) -> NDArray[np.int32]:
        """Patients, int32 [n], indices into the manifest's `patient_names`."""
        return self._codes("patient", self._manifest.patient_names, np.int32)

    @cached_property
    def leads(self) -> NDArray[np.int16]:
        """Leads, int16 [n], indices into the manifest's `lead_names`."""
        return self._codes("lead", self._manifest.lead_names, np.int16)

    @cached_property
    def split(self) -> NDArray[np.int8]:
        """The split of seed 0, int8 [n]."""
        return self._codes("split", SPLIT_NAMES, np.int8)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Labels: int64 [n], indices into the manifest's `classes`, or uint8 [n, C]."""
        if not self._manifest.multi_label:
            return self._codes("label", self._manifest.classes, np.int64)
        return _read_only(np.stack([self._column(f"{_LABEL}{name}") for name in self._manifest.classes], axis=1))

    @cached_property
    def times(self) -> NDArray[np.datetime64] | None:
        """Dates, datetime64[s] [n], or None."""
        if not self._manifest.dated:
            return None
        import pyarrow as pa

        milliseconds = self._read("time").view(pa.int64())  # Parquet has no unit of seconds
        return _read_only(_numpy(milliseconds).astype("datetime64[ms]").astype("datetime64[s]"))

    def domain(self, name: str) -> NDArray[np.int32]:
        """Return a domain of the frames, int32 [n], indices into the manifest's names of this domain."""
        return self._codes(f"{_DOMAIN}{name}", self._manifest.domains[name], np.int32)

    def group(self, name: str) -> NDArray[np.int32]:
        """Return a column for subgroups, int32 [n], indices into the manifest's names of this column."""
        return self._codes(f"{_GROUP}{name}", self._manifest.groups[name], np.int32)

    @cached_property
    def recordings(self) -> NDArray[np.int32]:
        """The number of each frame's recording, int32 [n], in the order of the data.

        In declared data sets without dates, recordings of one person are in natural order of their names.
        """
        column, manifest = self._read("record"), self._manifest
        codes = _numpy(column.indices).astype(np.int32)
        if (
            manifest.fingerprint is not None
            and not manifest.dated
            and len(manifest.patient_names) < len(column.dictionary)
        ):
            names = column.dictionary.to_pylist()
            codes = np.argsort(sorted(range(len(names)), key=lambda code: natural(names[code]))).astype(np.int32)[codes]
        return _read_only(codes)

    def record_names(self) -> NDArray[np.object_]:
        """Return the name of each frame's recording, str [n]."""
        column = self._read("record")
        names: NDArray[np.object_] = np.array(column.dictionary.to_pylist(), object)
        of_frames: NDArray[np.object_] = names[_numpy(column.indices)]
        return of_frames

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """Start of each frame in its recording in seconds, float64 [n]."""
        return self._column("start")

    def moments(self) -> NDArray[np.int64]:
        """Return a number for each row [n], which increases where the record or the start of the frame changes."""
        changes = (np.diff(self.recordings) != 0) | (np.diff(self.start) != 0)
        return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)

    def index(self) -> Index:
        """Return the index of all frames, without records and starts, on which no split depends."""
        patients = self.patients
        return Index(
            self._manifest.patient_names,
            ("",),
            patients,
            np.zeros_like(patients),
            self.leads,
            np.zeros(len(patients)),
            self.labels,
            self.times,
        )

    def _read(self, name: str) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with one_sentence(self._path), open(self._path, "rb") as file:
                table = pq.ParquetFile(file, pre_buffer=False).read([name], use_threads=False)
                return table.unify_dictionaries()[name].combine_chunks()
        except (pa.ArrowException, KeyError):
            raise DamagedStore(
                f"{self._path}: not a table with a column {name!r}; {remedy(self._path.parent)}"
            ) from None

    def _column(self, name: str) -> NDArray[Any]:
        return _read_only(_numpy(self._read(name)))

    def _codes(self, name: str, names: Sequence[str], kind: type) -> NDArray[Any]:
        column = self._read(name)
        codes = _numpy(column.indices)
        if not column.dictionary.equals(_texts(names)):
            code_of = {name_of_code: code for code, name_of_code in enumerate(names)}
            new_codes = [code_of[name_of_code] for name_of_code in column.dictionary.to_pylist()]
            codes = np.array(new_codes, np.int64)[codes]
        return _read_only(codes.astype(kind))


def _numpy(array: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of numbers without copying; Arrow's `to_numpy` would import pandas."""
    return np.from_dlpack(array).view()


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _named(codes: NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(_numbers(codes.astype(np.int32)), _texts(names))


def _label(labels: NDArray[Any], classes: tuple[str, ...]) -> pa.DictionaryArray:
    if labels.ndim == 1:
        return _named(labels, classes)
    # a data set has few distinct combinations of labels, so naming them is cheap
    combinations, codes = np.unique(labels, axis=0, return_inverse=True)
    return _named(codes.reshape(-1), [",".join(np.array(classes)[row.astype(bool)]) for row in combinations])


def _numbers(values: NDArray[Any]) -> pa.Array:
    """Return an Arrow array of numbers or dates without `pyarrow.array`, which imports pandas."""
    import pyarrow as pa

    content = np.ascontiguousarray(values).view(np.uint8)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(content)])


def _texts(names: Sequence[str]) -> pa.Array:
    """Return an Arrow array of strings without `pyarrow.array`, which imports pandas."""
    import pyarrow as pa

    joined = "".join(names)
    content = joined.encode()
    ends = np.cumsum([0, *map(len, names if joined.isascii() else map(str.encode, names))], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(names), [None, pa.py_buffer(ends), pa.py_buffer(content)])
