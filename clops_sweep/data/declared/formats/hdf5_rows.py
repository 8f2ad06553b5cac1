"""`Recordings.from_hdf5`: one array of many recordings, or one group per recording, with a table of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.formats.readers import opened
from clops_sweep.data.declared.label_table import UNLISTED, Fields, Labels, Table, columns_of, read_rows
from clops_sweep.data.declared.portions import STACK_BYTES, Columns, Portion, Signal, stored_as
from clops_sweep.data.files.folder import natural, shorten, visible
from clops_sweep.data.records import Common, Source
from clops_sweep.errors import UsageError, shown


class _Row(NamedTuple):
    """One recording: row `place` of a dataset, or a whole dataset if that is None."""

    name: str
    file: Path
    dataset: str
    place: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Hdf5Rows(Portion):
    """Consecutive rows of a dataset [n, channels, samples] or [n, samples, channels], or one dataset of its own."""

    rows: tuple[_Row, ...]
    rate: float
    gain: NDArray[np.float64]

    def signal(self) -> Signal:
        """Return the samples."""
        first = self.rows[0]

        def read(h5py: Any) -> Any:
            with h5py.File(first.file) as file:
                data = file[first.dataset]
                return data[()][None] if first.place is None else data[first.place : first.place + len(self.rows)]

        stored = opened(first.file, "HDF5 file", "h5py", "hdf5", read)
        if stored.shape[1] != len(self.gain):
            stored = stored.swapaxes(1, 2)
        return Signal(stored, self.rate, self.gain, np.zeros(len(self.gain)))

    def where(self, common: Common) -> str:
        """Start of an error message about the samples."""
        return f"{shorten(self.rows[0].file)}: recording {shown(self.record)}"

    def apart(self) -> list[Source]:
        """Return every recording separately."""
        each = [self.columns.rows(n, n + 1) for n in range(len(self.rows))]
        return [
            replace(self, names=one.names, columns=one, rows=(row,), files=())
            for one, row in zip(each, self.rows, strict=True)
        ]


def _rows_of(file: Path, signals: str, ids: str | None, channels: int) -> tuple[list[_Row], set[np.dtype[Any]], int]:
    """Return the recordings of a file, their types, and the bytes of one."""

    def read(h5py: Any) -> Any:
        with h5py.File(file) as opened_file:

            def get(name: str) -> Any:
                if not hasattr(opened_file.get(name), "shape"):
                    raise UsageError(
                        f"{shorten(file)}: has no dataset {shown(name)}; it has "
                        f"{shorten(', '.join(opened_file)) or 'none'}"
                    )
                return opened_file[name]

            if "*" in signals:
                rows = [_Row(key, file, signals.replace("*", key), None) for key in sorted(opened_file, key=natural)]
            else:
                names = range(len(get(signals))) if ids is None else get(ids)[()]
                rows = [_Row(checks.identifier("ids", name), file, signals, n) for n, name in enumerate(names)]
            kinds = set[np.dtype[Any]]()
            for row in rows if "*" in signals else rows[:1]:
                data, shape = get(row.dataset), get(row.dataset).shape[0 if row.place is None else 1 :]
                kinds.add(data.dtype)
                if len(shape) != 2 or channels not in shape or (row.place is not None and len(data) != len(rows)):
                    raise UsageError(
                        f"{shorten(file)}: {row.dataset} has the shape {list(data.shape)}; expected "
                        f"{'' if row.place is None else f'{len(rows):,} recordings of '}{channels} channels and samples"
                    )
            return rows, kinds, int(data.dtype.itemsize * np.prod(shape))

    return cast("tuple[list[_Row], set[np.dtype[Any]], int]", opened(file, "HDF5 file", "h5py", "hdf5", read))


def hdf5_rows(
    folder: str | PathLike[str],
    pattern: str,
    signals: str,
    ids: str | None,
    fields: Fields,
    table: Table,
    classes: Any,
    separator: str | None,
    channels: Any,
    units: str,
    rate: float,
    gain: Any,
    windowing: tuple[float | None, float | None, float | None],
    one_by_one: bool,
) -> tuple[Common, list[Hdf5Rows], Columns]:
    """Return values common to the recordings, and the recordings; see `Recordings.from_hdf5`."""
    place = Path(folder)
    _, listed = read_rows(place, table, fields, separator)
    files = sorted(visible(place.glob(pattern), place), key=lambda file: natural(str(file)))
    if not files:
        raise UsageError(f"{shorten(place)}: no file there matches {pattern}; look at the folder and at pattern")
    names, labels = checks.names("channels", channels), Labels(classes, separator, [row["label"] for row in listed])
    gains = checks.gains(gain, len(names))
    known = {row["name"]: row for row in listed}
    if len(known) < len(listed):
        raise UsageError("name: the table has two rows of one name; expected a row for each recording")
    layouts = [_rows_of(file, signals, ids, len(names)) for file in files]
    there = [row for rows, _, _ in layouts for row in rows]
    used = [
        (row, code) for row in there if row.name in known and (code := labels.of(known[row.name]["label"])) is not None
    ]
    labels.left_out.update(UNLISTED for row in there if row.name not in known)
    labels.left_out.update(["rows of the table without a recording"] * len(known.keys() - {row.name for row in there}))
    facts = columns_of([known[row.name] for row, _ in used], labels, [code for _, code in used])
    many = 1 if one_by_one else max(1, STACK_BYTES // layouts[0][2])
    starts = [
        n
        for n, (row, _) in enumerate(used)
        if n % many == 0
        or row.place is None
        or (row.file, row.place - 1) != (used[n - 1][0].file, used[n - 1][0].place)
    ]
    recordings = list[Hdf5Rows]()
    for begin, end in zip(starts, [*starts[1:], len(used)], strict=True):
        columns, rows = facts.rows(begin, end), tuple(each for each, _ in used[begin:end])
        is_first = not recordings or recordings[-1].rows[0].file != rows[0].file  # its SHA-256 is computed once
        files = [rows[0].file] if is_first else []
        recordings.append(Hdf5Rows(columns.names, tuple(files), columns=columns, rows=rows, rate=rate, gain=gains))
    return Common(
        labels.classes, names, units, labels.multi_label,
        stored_as(np.result_type(*(kind for _, kinds, _ in layouts for kind in kinds)), windowing[2]), *windowing,
        left_out=dict(labels.left_out),
    ), recordings, facts  # fmt: skip
