"""`Recordings.from_hdf5`: an array of many recordings, a group or a file per recording, with a table of labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.fields import SignalFields, TableFields
from clops_sweep.data.declared.formats.hdf5_attributes import fill_values, notes_on_groups, require_scale
from clops_sweep.data.declared.formats.readers import opened
from clops_sweep.data.declared.label_table import UNLISTED, Labels, columns_of, read_rows
from clops_sweep.data.declared.portions import STACK_BYTES, Columns, Portion, Signal, stored_as
from clops_sweep.data.declared.stated_variables import SHORT, TIMES
from clops_sweep.data.declared.time_column import notes_on_times
from clops_sweep.data.files.folder import natural, shorten, visible
from clops_sweep.data.left_out import Reason
from clops_sweep.data.records import Common, Source
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError, listed, shown

_MOST_STATED = 64
"""Most entries of a group, and values of a dataset, among which a rate or names of channels are looked for."""
_MOST_PATHS = 50
"""Datasets of a file among which those are named that it has."""


class _Row(NamedTuple):
    """One recording: row `place` of a dataset, or a whole dataset if that is None.

    `is_reversed`: the axes of the dataset are in the order of MATLAB, the recordings last.
    """

    name: str
    file: Path
    dataset: str
    place: int | None
    is_reversed: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Hdf5Rows(Portion):
    """Consecutive rows of a dataset [n, channels, samples] or [n, samples, channels], or one dataset of its own."""

    rows: tuple[_Row, ...]
    rate: float
    gain: NDArray[np.float64]
    units: str = ""
    channels: tuple[str, ...] = ()

    def signal(self) -> Signal:
        """Return the samples."""
        first = self.rows[0]

        def read(h5py: Any) -> Any:
            with h5py.File(first.file) as file:
                data = file[first.dataset]
                attributes = dict(data.attrs)
                groups = _attributes_of_groups(file, first.dataset)
                times = _times_beside(file, first.dataset)
                if first.place is None:
                    return np.atleast_2d(data[()])[None], attributes, groups, times
                part = slice(first.place, first.place + len(self.rows))
                stored = data[..., part].transpose() if first.is_reversed else data[part]
                return stored[:, None] if stored.ndim == 2 else stored, attributes, groups, times

        stored, attributes, groups, times = opened(first.file, "HDF5 file", "h5py", "hdf5", read)
        where = f"{shorten(first.file)}: {first.dataset}"
        require_scale(where, attributes, self.gain, self.units, self.rate, self.channels)
        if stored.shape[1] != len(self.gain):
            stored = stored.swapaxes(1, 2)
        is_plain = bool((self.gain == 1).all())
        notes = notes_on_groups(attributes, groups, self.units if is_plain else "", self.rate, self.channels)
        if times is not None and len(times[1]) == stored.shape[2]:
            name, values = times
            notes += notes_on_times(name, values, self.rate, what="dataset")
        return Signal(
            stored,
            self.rate,
            self.gain,
            np.zeros(len(self.gain)),
            missing=fill_values(attributes, stored),
            notes=notes,
        )

    def where(self, common: Common) -> str:
        """Start of an error message about the samples."""
        return f"{shorten(self.rows[0].file)}: recording {shown(self.record)}"

    def apart(self) -> list[Source]:
        """Return every recording separately."""
        by_row = [self.columns.rows(n, n + 1) for n in range(len(self.rows))]
        return [
            replace(self, names=one.names, columns=one, rows=(row,), files=())
            for one, row in zip(by_row, self.rows, strict=True)
        ]


def _attributes_of_groups(file: Any, dataset: str) -> list[dict[str, Any]]:
    """Return what the groups that hold a dataset state, from its own to the file: attributes, and short datasets."""
    *parents, _ = dataset.strip("/").split("/")
    groups = [file]
    for name in parents:
        groups.insert(0, groups[0][name])
    stated = list[dict[str, Any]]()
    for group in groups:
        values = dict(group.attrs)
        for name in group if len(group) <= _MOST_STATED else ():
            beside = group.get(name)  # None where a link leads nowhere
            shape = getattr(beside, "shape", None)  # None of a group, and of a dataset without a value
            if shape is not None and len(shape) < 2 and np.prod(shape) <= _MOST_STATED:
                values.setdefault(name, beside[()])
        stated.append(values)
    return stated


def _times_beside(file: Any, dataset: str) -> tuple[str, NDArray[np.float64]] | None:
    """Return the name and the values of a dataset of numbers that is named as times, in the group of the samples."""
    group = file[dataset].parent
    for name in TIMES:
        beside = group.get(name)
        shape = getattr(beside, "shape", None)
        if shape is None or len(shape) != 1 or beside.dtype.kind not in "iuf" or name == dataset:
            continue
        times = beside[()].astype(np.float64)
        if name not in SHORT or (np.diff(times) > 0).all():
            return name, times
    return None


class _Layout(NamedTuple):
    """The recordings of a file, their types, and the bytes of one.

    `is_alone` tells that the file holds one recording [channels, samples], which has the name of the file. `others` are
    the names of its groups without the dataset of a recording.
    """

    rows: list[_Row]
    kinds: set[np.dtype[Any]]
    size: int
    is_alone: bool
    others: tuple[str, ...] = ()


def _layout_of(file: Path, signals: str, ids: str | None, channels: int, numbered: int | None) -> _Layout:
    """Return the recordings of a file.

    Args:
        file: the file.
        signals: the dataset, or a pattern of datasets.
        ids: the dataset of names; None to number the recordings.
        channels: number of channels.
        numbered: rows of the table, if their names are all numbers from 0; None otherwise.

    Raises:
        UsageError: the file is invalid, or has no such datasets.
    """

    def read(h5py: Any) -> _Layout:
        with h5py.File(file) as opened_file:
            if "*" in signals:
                names = sorted(opened_file, key=natural)
                rows = [_Row(name, file, signals.replace("*", name), None) for name in names]
                return _of_groups(file, opened_file, rows, channels)
            data = _dataset(file, opened_file, signals)
            is_table = data.ndim == 2 and channels == 1 and 1 not in data.shape
            has_one = data.ndim == 3 and data.shape[0] == 1 and ids is None
            if data.ndim < 3 and not is_table:
                return _of_one(file, opened_file, data, signals, ids, channels)
            layout = _of_rows(file, opened_file, data, signals, ids, channels, numbered)
            if has_one and len(layout.rows) == 1:
                return layout._replace(rows=[layout.rows[0]._replace(name=file.stem)], is_alone=True)
            return layout

    return cast("_Layout", opened(file, "HDF5 file", "h5py", "hdf5", read))


def _dataset(file: Path, opened_file: Any, name: str) -> Any:
    """Return a dataset of a file."""
    dataset = opened_file.get(name)
    if not hasattr(dataset, "shape"):
        raise UsageError(
            f"{shorten(file)}: has no dataset {shown(name)}; it has {listed(_datasets(opened_file)) or 'none'}"
        )
    return dataset


def _datasets(opened_file: Any) -> list[str]:
    """Return the paths of all datasets of a file; of many groups, only those of the first ones."""
    paths = list[str]()

    def visit(path: str, held: Any) -> bool | None:
        if hasattr(held, "shape"):
            paths.append(path)
        return True if len(paths) == _MOST_PATHS else None  # which ends the visit

    opened_file.visititems(visit)
    return sorted(paths, key=natural)


def _of_groups(file: Path, opened_file: Any, rows: list[_Row], channels: int) -> _Layout:
    """Return the recordings of a file with a group for each; groups without the dataset are others."""
    kinds = set[np.dtype[Any]]()
    size = 0
    there = [row for row in rows if hasattr(opened_file.get(row.dataset), "shape")]
    for row in there or rows:
        data = _dataset(file, opened_file, row.dataset)
        is_one = channels in data.shape if data.ndim == 2 else data.ndim == channels == 1
        if not is_one:
            raise UsageError(
                f"{shorten(file)}: {row.dataset} has the shape {list(data.shape)}; expected {channels} channels and "
                "samples"
            )
        kinds.add(_real(file, row.dataset, data.dtype))
        size = int(data.dtype.itemsize * np.prod(data.shape))
    others = tuple(row.name for row in rows if row not in there)
    return _Layout(there, kinds, size, is_alone=False, others=others)


def _of_rows(
    file: Path, opened_file: Any, data: Any, signals: str, ids: str | None, channels: int, numbered: int | None
) -> _Layout:
    """Return the recordings of a dataset [n, channels, samples] or [n, samples, channels], or of its reverse.

    With one channel it may be [n, samples].

    Raises:
        UsageError: another shape, or one that reads the same in both orders.
    """
    names = None if ids is None else _names(file, opened_file, ids)
    is_reversed = _is_reversed(data, channels, numbered if names is None else len(names))
    shape = tuple(data.shape)[:: -1 if is_reversed else 1]
    how_many = "n" if names is None else f"{len(names):,}"
    if names is None:
        names = [str(number) for number in range(shape[0])]
    has_channels = data.ndim == 2 or (data.ndim == 3 and channels in shape[1:])
    if not has_channels or shape[0] != len(names):
        raise UsageError(
            f"{shorten(file)}: {signals} has the shape {list(data.shape)}; expected [{how_many}, {channels}, samples] "
            f"or [{how_many}, samples, {channels}], for {how_many} recordings"
        )
    if not is_reversed and shape[0] == shape[-1] > 1:
        raise UsageError(
            f"{shorten(file)}: {signals} has the shape {list(data.shape)}, which does not tell whether recordings are "
            "its first axis, or its last one as h5write of MATLAB has it; read the file with h5py, and give "
            "Recordings(signals=...) with recordings first"
        )
    kind = _real(file, signals, data.dtype)
    rows = [_Row(name, file, signals, position, is_reversed) for position, name in enumerate(names)]
    return _Layout(rows, {kind}, int(kind.itemsize * np.prod(shape[1:])), is_alone=False)


def _of_one(file: Path, opened_file: Any, data: Any, signals: str, ids: str | None, channels: int) -> _Layout:
    """Return the only recording of a file: a dataset [channels, samples], [samples, channels] or [samples]."""
    is_one = channels in data.shape if data.ndim == 2 else data.ndim == 1 == channels
    if not is_one:
        raise UsageError(
            f"{shorten(file)}: {signals} has the shape {list(data.shape)}; expected recordings of {channels} channels "
            "and samples, or one recording of them"
        )
    name = file.stem
    if ids is not None:
        given = _names(file, opened_file, ids)
        if len(given) != 1:
            raise UsageError(
                f"{shorten(file)}: {ids} has {len(given):,} names; expected one, as {signals} is one recording"
            )
        name = given[0]
    row = _Row(checks.identifier("ids", name), file, signals, None)
    kind = _real(file, signals, data.dtype)
    return _Layout([row], {kind}, int(kind.itemsize * data.size), is_alone=ids is None)


def _is_reversed(data: Any, channels: int, count: int | None) -> bool:
    """Return whether the axes of a dataset are in the order of MATLAB: recordings last.

    `save` of MATLAB marks what it writes. `h5write` does not: then the number of recordings tells, if it is known.
    """
    if data.ndim not in (2, 3):
        return False
    if "MATLAB_class" in data.attrs:
        return True
    *others, last = data.shape
    has_channels = data.ndim == 2 or channels in others
    return count is not None and last == count != others[0] and has_channels


def _real(file: Path, name: str, kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of samples; a UsageError if they are no real numbers of at most 64 bits."""
    if kind.kind == "c" or (kind.names is not None and len(kind.names) == 2):
        raise UsageError(f"{shorten(file)}: {name} holds complex numbers; expected real ones: save its real part")
    if kind.kind not in "iuf" or kind.itemsize > 8:
        raise UsageError(f"{shorten(file)}: {name} is of {kind}; expected numbers of 64 bits or less")
    return kind


def _names(file: Path, opened_file: Any, ids: str) -> list[str]:
    """Return the names of recordings: numbers or text, also character arrays and cells that MATLAB wrote."""
    data = _dataset(file, opened_file, ids)
    written_by = data.attrs.get("MATLAB_class", b"")
    values = data[()]
    if written_by == b"char":
        return [checks.identifier("ids", _text(codes)) for codes in np.atleast_2d(values).transpose()]
    if written_by == b"cell":
        cells = [opened_file[reference] for reference in np.ravel(values)]
        if any(cell.attrs.get("MATLAB_class") not in (b"char", b"double") for cell in cells):
            raise UsageError(f"{shorten(file)}: {ids} has cells of another kind than char; expected names or numbers")
        return [
            checks.identifier("ids", _text(cell[()]) if cell.attrs["MATLAB_class"] == b"char" else np.ravel(cell)[0])
            for cell in cells
        ]
    if written_by == b"string":
        raise UsageError(f"{shorten(file)}: {ids} is a string array of MATLAB; save it as cellstr({ids})")
    if np.ndim(values) != 1 and max(np.shape(values), default=1) != np.size(values):
        raise UsageError(
            f"{shorten(file)}: {ids} has the shape {list(np.shape(values))}; expected a name for each recording"
        )
    return [checks.identifier("ids", name) for name in np.ravel(values)]


def _text(codes: Any) -> str:
    """Return the text of a character array of MATLAB."""
    return "".join(map(chr, np.ravel(codes)))


def _require_names(layouts: Sequence[_Layout], listed: Collection[str]) -> None:
    """Refuse a second file whose recordings have the names of those of another, as numbers from 0 are.

    Recordings that the table does not list may share a name: each file of CODE-15% ends with one named 0.

    Raises:
        UsageError: two recordings have one name.
    """
    files = dict[str, Path]()
    for layout in layouts:
        for row in layout.rows:
            if row.name not in listed:
                continue
            other = files.setdefault(row.name, row.file)
            if other != row.file:
                raise UsageError(
                    f"{shorten(row.file)}: its recording {shown(row.name)} has the name of one in {other.name}; give "
                    "ids, the dataset with the names of recordings, or one of the files as pattern"
                )


def _known_rows(
    listed: Sequence[dict[str, str]], layouts: Sequence[_Layout], folder: Path
) -> dict[str, dict[str, str]]:
    """Return the rows of the table by the name of their recording; a file may have its extension there.

    Raises:
        UsageError: two rows, or two files, have one name.
    """
    files = {layout.rows[0].name: layout.rows[0].file for layout in layouts if layout.is_alone}
    alone = sum(layout.is_alone for layout in layouts)
    if len(files) < alone:
        names = [layout.rows[0].name for layout in layouts if layout.is_alone]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{shorten(folder)}: two files are named {twice}; rename one, or give them in two data sets")
    by_file = dict[str, str]()
    for name, file in files.items():
        path = file.relative_to(folder)
        by_file |= dict.fromkeys((file.name, path.as_posix(), path.with_suffix("").as_posix()), name)
    known: dict[str, dict[str, str]] = {}
    for row in listed:
        name = by_file.get(row["name"], row["name"])
        if name in known:
            raise UsageError("name: the table has two rows of one name; expected a row for each recording")
        row["name"] = name
        known[name] = row
    return known


def hdf5_rows(
    folder: str | PathLike[str],
    pattern: str,
    dataset: str,
    ids: str | None,
    fields: TableFields,
    signals: SignalFields,
    windowing: Windowing,
) -> tuple[Common, list[Hdf5Rows], Columns]:
    """Return values common to the recordings, and the recordings; see `Recordings.from_hdf5`."""
    root = Path(folder)
    if root.is_file():
        raise UsageError(
            f"{shorten(root)}: is a file where a folder is expected; give from_hdf5(folder, {shown(root.name)}, ...) "
            'for this file, or from_hdf5(folder, "*.hdf5", ...) for all files of its folder'
        )
    _, listed = read_rows(root, fields)
    files = sorted(visible(root.glob(pattern), root), key=lambda file: natural(str(file)))
    if not files:
        raise UsageError(f"{shorten(root)}: no file there matches {pattern}; look at the folder and at pattern")
    names = checks.names("channels", signals.channels)
    labels = Labels(fields.classes, fields.separator, [row["label"] for row in listed])
    gains = checks.gains(signals.gain, len(names))
    given = {row["name"] for row in listed}
    numbered = len(given) if given == {str(number) for number in range(len(given))} else None
    layouts = [_layout_of(file, dataset, ids, len(names), numbered) for file in files]
    known = _known_rows(listed, layouts, root)
    there = [row for layout in layouts for row in layout.rows]
    _require_names(layouts, known)
    used = list[_Row]()
    codes = list[Any]()
    for row in there:
        if row.name not in known:
            continue
        described = known[row.name]
        code = labels.of(described["label"], row.name, fields.domains_of(described))
        if code is not None:
            used.append(row)
            codes.append(code)
    unlisted = [row.name for row in there if row.name not in known]
    absent = sorted(known.keys() - {row.name for row in there})
    labels.left_out.add(UNLISTED, len(unlisted), names=unlisted)
    labels.left_out.add(
        Reason("groups", f"without {dataset.rpartition('*/')[2]}"), sum(len(layout.others) for layout in layouts)
    )
    labels.left_out.add(Reason("rows", "of the table without a recording"), len(absent), names=absent)
    facts = columns_of([known[row.name] for row in used], labels, codes, fields)
    many = 1 if windowing.one_by_one else max(1, STACK_BYTES // max(1, layouts[0].size))
    starts = [0]
    for number in range(1, len(used)):
        if number % many == 0 or not _follows(used[number - 1], used[number]):
            starts.append(number)
    recordings = list[Hdf5Rows]()
    assert signals.rate is not None
    for begin, end in zip(starts, [*starts[1:], len(used)], strict=True):
        columns = facts.rows(begin, end)
        rows = tuple(used[begin:end])
        is_first = not recordings or recordings[-1].rows[0].file != rows[0].file  # its SHA-256 is computed once
        own_file = (rows[0].file,) if is_first else ()
        recordings.append(
            Hdf5Rows(
                columns.names, own_file, columns=columns, rows=rows, rate=signals.rate, gain=gains,
                units=signals.units or "", channels=names,
            )
        )  # fmt: skip
    kinds = set[np.dtype[Any]]().union(*(layout.kinds for layout in layouts))
    common = Common(
        labels.classes,
        names,
        signals.units or "",
        labels.multi_label,
        stored_as(np.result_type(*kinds), windowing.rate),
        windowing,
        left_out=labels.left_out,
        people_given=fields.patient is not None,
        people_column=fields.patient,
    )
    return common, recordings, facts


def _follows(former: _Row, row: _Row) -> bool:
    """Return whether a row lies in the same file and dataset as the former one, right behind it."""
    if row.place is None or former.place is None:
        return False
    return row.file == former.file and row.place == former.place + 1
