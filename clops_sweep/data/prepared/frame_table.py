"""`index.parquet`: one row per frame, for pandas and for everything that opens frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import one_sentence
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
    """What is stored of each of the n frames beside its samples.

    Shapes: gain, offset [n] float32; statistics [n, 4] float64 (`frame_statistics`); split [n] int8 of split seed 0.
    """

    index: Index
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    statistics: NDArray[np.float64]
    split: NDArray[np.int8]

    def write(self, path: Path, classes: tuple[str, ...], lead_names: tuple[str, ...]) -> None:
        """Write the table, a column for each of these.

        patient, record, lead, start (seconds), label (where instances carry several, their names joined by commas, and
        a column `label:NAME` of 0 and 1 for each class), time, domains and groups (if any), split, gain, offset, and
        minimum, maximum, mean and deviation of the stored samples.
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
        columns |= {name: _numbers(self.statistics[:, place]) for place, name in enumerate(_STATISTICS)}
        with open(path, "wb") as file:  # Arrow itself opens no path that is not UTF-8
            table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
            pq.write_table(table, file, compression="zstd")


class FrameTable:
    """The table of a prepared folder; columns are read when they are asked for, as read-only arrays.

    Raises:
        DamagedStore: from any method: the file is no such table.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path, self._manifest = folder / INDEX, manifest

    @property
    def gain(self) -> NDArray[np.float32]:
        """[n] float32."""
        return self._column("gain")

    @property
    def offset(self) -> NDArray[np.float32]:
        """[n] float32."""
        return self._column("offset")

    @property
    def statistics(self) -> NDArray[np.float64]:
        """[n, 4] float64, of the stored samples."""
        return _read_only(np.stack([self._column(name) for name in _STATISTICS], axis=1))

    @property
    def patients(self) -> NDArray[np.int32]:
        """[n] int32, positions in the manifest's `patient_names`."""
        return self._codes("patient", self._manifest.patient_names, np.int32)

    @property
    def leads(self) -> NDArray[np.int16]:
        """[n] int16, positions in the manifest's `lead_names`."""
        return self._codes("lead", self._manifest.lead_names, np.int16)

    @property
    def split(self) -> NDArray[np.int8]:
        """[n] int8, of split seed 0."""
        return self._codes("split", SPLIT_NAMES, np.int8)

    @property
    def labels(self) -> NDArray[Any]:
        """[n] int64, positions in the manifest's `classes`, or [n, C] uint8."""
        if not self._manifest.multi_label:
            return self._codes("label", self._manifest.classes, np.int64)
        return _read_only(np.stack([self._column(f"{_LABEL}{name}") for name in self._manifest.classes], axis=1))

    @property
    def times(self) -> NDArray[np.datetime64] | None:
        """[n] datetime64[s], or None."""
        if not self._manifest.dated:
            return None
        import pyarrow as pa

        milliseconds = self._read("time").view(pa.int64())  # Parquet has no unit of seconds
        return _read_only(_numpy(milliseconds).astype("datetime64[ms]").astype("datetime64[s]"))

    def domain(self, name: str) -> NDArray[np.int32]:
        """[n] int32, positions in the manifest's names of this domain."""
        return self._codes(f"{_DOMAIN}{name}", self._manifest.domains[name], np.int32)

    def group(self, name: str) -> NDArray[np.int32]:
        """[n] int32, positions in the manifest's names of this column for subgroups."""
        return self._codes(f"{_GROUP}{name}", self._manifest.groups[name], np.int32)

    @property
    def recordings(self) -> NDArray[np.int32]:
        """[n] int32, the number of each frame's recording, in the order of the data."""
        return _read_only(_numpy(self._read("record").indices).astype(np.int32))

    @property
    def start(self) -> NDArray[np.float64]:
        """[n] float64, seconds from the begin of the recording."""
        return self._column("start")

    def moments(self) -> NDArray[np.int64]:
        """Return a number for each row [n] that changes with the record or the start of the frame."""
        changes = (np.diff(self.recordings) != 0) | (np.diff(self.start) != 0)
        return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)

    def index(self) -> Index:
        """Return the index of all frames; records and starts, which no split depends on, are left out."""
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
        found = self._read(name)
        codes = _numpy(found.indices)
        if not found.dictionary.equals(_texts(names)):
            position = {each: place for place, each in enumerate(names)}
            codes = np.array([position[each] for each in found.dictionary.to_pylist()], np.int64)[codes]
        return _read_only(codes.astype(kind))


def _numpy(array: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of numbers as it is; its own `to_numpy` imports pandas."""
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
    # A data set of C labels has few distinct combinations, so naming them is cheap however many frames there are.
    combinations, codes = np.unique(labels, axis=0, return_inverse=True)
    return _named(codes.reshape(-1), [",".join(np.array(classes)[row.astype(bool)]) for row in combinations])


def _numbers(values: NDArray[Any]) -> pa.Array:
    """An Arrow array of numbers or dates, not made by `pyarrow.array`, as that imports pandas."""
    import pyarrow as pa

    content = np.ascontiguousarray(values).view(np.uint8)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(content)])


def _texts(names: Sequence[str]) -> pa.Array:
    """An Arrow array of strings, made likewise."""
    import pyarrow as pa

    joined = "".join(names)
    content = joined.encode()
    ends = np.cumsum([0, *map(len, names if joined.isascii() else map(str.encode, names))], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(names), [None, pa.py_buffer(ends), pa.py_buffer(content)])
