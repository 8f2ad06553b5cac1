"""`Recordings.from_folder`: one CSV, NPY or Parquet file per recording, and a table of labels."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.fields import SignalFields, TableFields, of_header
from clops_sweep.data.declared.formats.hdf5_attributes import stated_rates
from clops_sweep.data.declared.formats.read_files import read_files
from clops_sweep.data.declared.intervals import Intervals
from clops_sweep.data.declared.label_table import (
    UNLISTED,
    Labels,
    Listed,
    by_name,
    columns_of,
    first_readable,
    grouped,
    located,
    other_names,
    place_of,
    read_rows,
    short_name,
)
from clops_sweep.data.declared.markers import WORDS, Markers, looks_like_marker
from clops_sweep.data.declared.portions import Columns, Portion, Signal, stored_as
from clops_sweep.data.declared.text_table import (
    ENDINGS,
    GUESSED,
    Layout,
    TextOptions,
    fitting,
    is_text,
    numbered,
    require_no_thousands,
    text_columns,
    text_layout,
    text_times,
    unit_of,
)
from clops_sweep.data.declared.time_column import notes_on_times, time_column
from clops_sweep.data.files.folder import one_sentence, shorten, visible
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.files.units import factor, known
from clops_sweep.data.records import Common, Source
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError, listed, one_line, shown

_ENDINGS = (*ENDINGS, ".npy", ".parquet")
_NO_SIGNALS = {
    "time", "times", "timestamp", "timestamps", "ts", "t", "date", "datetime", "unix", "elapsed", "seconds", "index",
    "idx", "sample", "samples", "frame", "counter", "label", "labels", "class", "target", "annotation", "annotations",
    "subject", "patient", "person", "id", "unnamed",
} | WORDS  # fmt: skip
"""Words in the names of columns that are no signals, in lower case."""
_MOST = 0.9
"""Share of equal steps from which a column is a time or a counter."""
_Channels = tuple[str | int, ...] | None
_MOST_ENDINGS = 3
_FEW = 10
"""Number of distinct whole numbers in a column of labels; lines in which a start time or a rate is looked for."""
_UNNAMED = ("", "Unnamed: 0")
"""Names of the index of a pandas table in a text, also read and written again."""
_SAME_RATE = 1e-6
"""Share by which the rate of a header, which may be 1 / interval, differs from an equal one."""
_UNIX = 5e8
"""Least number that may be seconds since 1970: November 1985."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SignalFile(Portion):
    """A file of one recording.

    `wanted` are the channels, by name or position, None for all of an array, () for all of a text without names.
    `units` are those that the columns must have, if they say any. `named` are the names of the channels in the first
    file.
    """

    wanted: tuple[str | int, ...] | None
    rate: float
    gain: NDArray[np.float64]
    text: TextOptions = GUESSED
    units: str | None = None
    named: tuple[str, ...] = ()

    def signal(self) -> Signal:
        """The samples of all channels."""
        file = self.files[0]
        notes = list[str]()
        stored = read_signal(file, self.wanted, self.text, self.units, notes)
        if file.suffix.lower() != ".npy":
            columns = _layout(file, self.text)
            _require_rate(file, columns, self.rate)
            if self.wanted:
                notes += other_names(f"{shorten(file)}: ", columns.titles, self.wanted, self.named)
        layout = text_layout(file, self.text) if is_text(file) else None
        named = [] if layout is None else layout.titles
        if self.wanted == () and named != numbered(len(named)):
            raise UsageError(
                f"{shorten(file)}: names its columns {shorten(', '.join(named))}; expected none, as in other files"
            )
        if layout is not None and self.text.skip_lines != 0:
            _require_samples(file, stored, self.rate, self.text.skipped, later=True)
        notes += self._notes_on_times(file)
        return Signal(stored[None], self.rate, self.gain, np.zeros(len(stored)), notes=notes)

    def _notes_on_times(self, file: Path) -> list[str]:
        """Return sentences on a column of times that is not read as a signal, if there is one."""
        if not self.wanted or file.suffix.lower() == ".npy":
            return []
        layout = _layout(file, self.text)
        titles = layout.titles
        chosen = [place_of(f"{shorten(file)}:", channel, titles, len(titles)) for channel in self.wanted]
        position = time_column(titles, chosen)
        if position is None:
            position = _index_column(file, titles, chosen)
        if position is None:
            return []
        times = text_times(file, layout, position) if is_text(file) else _parquet_columns(file, [position])[0]
        if times is None or times.dtype.kind not in "iufM":
            return []
        name = titles[position] or _UNNAMED[1]
        return notes_on_times(name, times if times.dtype.kind == "M" else times.astype(float), self.rate)


def signal_files(
    folder: str | PathLike[str],
    pattern: str,
    fields: TableFields,
    signals: SignalFields,
    windowing: Windowing,
    text: TextOptions,
    read: Callable[[Path], Any] | None = None,
    *,
    from_header: bool = False,
) -> tuple[Common, Sequence[Source], Columns]:
    """Return values common to the files, and the files; see `Recordings.from_folder`."""
    root = Path(folder)
    if not isinstance(pattern, str) or (read is None and not pattern.lower().endswith(_ENDINGS)):
        raise checks.refused("pattern", f"one that ends in {', '.join(_ENDINGS)}, or read=function", pattern)
    if read is not None and not callable(read):
        raise checks.refused("read", "a function of a path that returns Recording(...)", read)
    if read is not None and fields.table is None:
        files, by_names = _files(root, pattern, None)
        listed = [Listed(short_name(file, root, by_names), file) for file in files]
        labels = Labels(fields.classes, fields.separator, [])
        common, recordings = read_files(listed, frozenset(), read, labels, signals, windowing, from_header)
        return common, recordings, Columns([], [], None)
    listed, labels = _listed(root, pattern, fields)
    if read is not None:
        common, recordings = read_files(listed, fields.given, read, labels, signals, windowing, from_header)
        common = replace(common, people_column=fields.patient)
        facts = [recording.facts for recording in listed if recording.facts is not None]
        are_known = bool(facts) and fields.given.issuperset(("label", "patient"))  # else once the files are read
        return common, recordings, Columns.joined(facts) if are_known else Columns([], [], None)
    common, sources, columns = _signal_files(listed, labels, pattern, signals, windowing, text)
    common = replace(common, people_given=fields.patient is not None, people_column=fields.patient)
    return common, sources, columns


def _signal_files(
    listed: Sequence[Listed],
    labels: Labels,
    pattern: str,
    signals: SignalFields,
    windowing: Windowing,
    text: TextOptions,
) -> tuple[Common, Sequence[Source], Columns]:
    """Return values common to files of a table that this package reads, and the files."""
    rate = signals.rate
    units = signals.units
    assert rate is not None
    assert units is not None
    for recording in listed:
        intervals = recording.intervals
        if intervals is not None and intervals.dated and intervals.begin is None:
            raise UsageError("start: is a date; give time, the column with the start of each recording, or seconds")
    checked_units = units if signals.gain is None else None  # a gain leads to `units` whatever the columns say
    columns, wanted, sample = first_readable(
        (recording.file for recording in listed if recording.file.is_file()),
        lambda file: _columns(file, checks.channels(signals.channels), rate, text, checked_units),
    )
    gains = checks.gains(signals.gain, len(columns))
    kinds = {sample.dtype}
    if sample.dtype.itemsize < 3:
        for recording in listed:
            with suppress(UsageError):  # of a file that cannot be read, which is reported when it is
                chosen = None if recording.file.suffix.lower() == ".npy" else wanted
                kinds.add(read_signal(recording.file, chosen, text).dtype)
    files = []
    for recording in listed:
        if recording.facts is None:
            continue
        file = SignalFile(
            (recording.name,),
            (recording.file,),
            columns=recording.facts,
            intervals=recording.intervals,
            wanted=wanted,
            rate=rate,
            gain=gains,
            text=text,
            units=checked_units,
            named=columns,
        )
        files.append(file)
    common = Common(
        labels.classes,
        columns,
        units,
        labels.multi_label,
        stored_as(np.result_type(*kinds), windowing.rate),
        windowing,
        left_out=labels.left_out,
        markers=_kept(signals.channels, pattern),
    )
    return common, files, Columns.joined([file.columns for file in files])


def _files(folder: Path, pattern: str, table: Path | None) -> tuple[list[Path], dict[str, Path]]:
    """Return the files of a folder that match a pattern, sorted and by name, without the table.

    Raises:
        UsageError: no file matches, or the pattern is invalid.
    """
    itself = None if table is None else os.path.realpath(table)
    with one_sentence(folder):
        try:
            files = sorted(file for file in visible(folder.glob(pattern), folder) if os.path.realpath(file) != itself)
            by_names = by_name(files, folder)
        except (ValueError, NotImplementedError) as error:  # a pattern that glob cannot parse, or that leads outside
            raise checks.refused("pattern", f"a pattern of files in the folder ({one_line(error)})", pattern) from None
    if not by_names:
        raise UsageError(
            f"{shorten(folder)}: no file there matches {pattern}{_there(folder)}; look at the folder and at pattern"
        )
    return files, by_names


def _there(folder: Path) -> str:
    """Return the most frequent endings of files in and below a folder, with their numbers; empty without files."""
    with one_sentence(folder):
        files = [file for file in visible(folder.rglob("*"), folder) if file.suffix and file.is_file()]
    counts = Counter(sorted(file.suffix for file in files))
    if not counts:
        return ""
    endings = [f"{count:,} {ending}" for ending, count in counts.most_common(_MOST_ENDINGS)]
    return f"; in it or below it are {listed(endings)}"


def _listed(folder: Path, pattern: str, fields: TableFields) -> tuple[list[Listed], Labels]:
    """Return the recordings that a table lists, with its facts and intervals, and labels, which count the others."""
    for argument, column in fields.columns.items():
        if of_header(column):
            raise UsageError(
                f"{argument}: {shown(column)} is a comment of a WFDB header; expected a column of the table"
            )
    path, rows = read_rows(folder, fields)
    files, by_names = _files(folder, pattern, path)
    labels = Labels(fields.classes, fields.separator, [row["label"] for row in rows if "label" in row])
    what = "table" if path is None else shorten(path)
    intervals: Mapping[str, Intervals] = {}
    if fields.start is not None:
        rows, intervals = grouped(rows, labels, what, fields)
    located_rows = located(rows, by_names, folder)
    unlisted = sorted({*files}.difference(file for _, file in located_rows))
    labels.left_out.add(UNLISTED, len(unlisted), names=[file.name for file in unlisted])
    codes: list[Any] | None = None
    if fields.start is None and "label" in fields.given:
        all_codes = [labels.of(row["label"], row["name"], fields.domains_of(row)) for row, _ in located_rows]
        located_rows = [pair for pair, code in zip(located_rows, all_codes, strict=True) if code is not None]
        codes = [code for code in all_codes if code is not None]
    facts = columns_of([row for row, _ in located_rows], labels, codes, fields)
    listed = [
        Listed(row["name"], file, facts.rows(number, number + 1), intervals.get(row["name"]))
        for number, (row, file) in enumerate(located_rows)
    ]
    return listed, labels


def _columns(
    file: Path, channels: _Channels, rate: float, text: TextOptions, units: str | None
) -> tuple[tuple[str, ...], tuple[str | int, ...] | None, NDArray[Any]]:
    """Return the names of the channels, what to read of each file, and the samples of this one."""
    wanted = channels
    layout = None
    if file.suffix.lower() != ".npy":
        layout = _layout(file, text)
        titles = layout.titles
        _require_rate(file, layout, rate)
        wanted = channels or _signal_columns(file, layout, text)
        names = tuple(
            titles[channel] if isinstance(channel, int) and channel < len(titles) else str(channel)
            for channel in wanted
        )
        sample = read_signal(file, wanted, text, units)
    else:
        sample = read_signal(file, channels)
        named = range(len(sample)) if channels is None else channels
        names = tuple(f"channel {channel + 1}" if isinstance(channel, int) else channel for channel in named)
        if len(names) != len(sample):
            raise UsageError(
                f"channels: there are {len(names)} where {shorten(file)} has {len(sample)}"
                + checks.transposed(sample, len(names))
            )
    if channels is None:
        _require_axes(file, sample)
        _require_signals(file, names, sample)
    if layout is not None and layout.form is not None and text.skip_lines != 0:
        _require_samples(file, sample, rate, text.skipped, layout.unclear)
    unnamed = channels is None and layout is not None and is_text(file) and titles == numbered(len(titles))
    return names, () if unnamed else wanted, sample


def _kept(channels: Sequence[str] | Sequence[int] | None, pattern: str) -> Markers:
    """Return whether the channels were selected: names for those of an array select none."""
    names_alone = pattern.lower().endswith(".npy") and any(isinstance(channel, str) for channel in channels or ())
    return "refuse" if channels is None or names_alone else "keep"


def _require_rate(file: Path, layout: Layout, rate: float) -> None:
    """Raise a UsageError if the header of a text gives another sampling rate."""
    if layout.rate is not None and not np.isclose(layout.rate, rate, rtol=_SAME_RATE, atol=0):
        said = f"its header says {layout.rate:g} samples a second"
        raise UsageError(f"{shorten(file)}: {said}; expected sampling_rate={layout.rate:g}, not {rate:g}")


def _signal_columns(file: Path, layout: Layout, text: TextOptions) -> tuple[str, ...]:
    """Return all columns but the index that pandas writes; a column that has no name otherwise is refused."""
    index = _pandas_index(file)
    titles = layout.titles
    unprintable = [title for title in titles[1:] if not title or not title.isprintable()]
    if unprintable and layout.form is not None and (remedy := fitting(layout.form)):
        raise UsageError(f"{shorten(file)}: columns: {shown(unprintable[0])} is no name; {remedy}")
    if titles and titles[0] in _UNNAMED:
        numbers = read_signal(file, [0], text)[0]
        if np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]):
            index = [*index, titles[0]]
    signals = [title for title in titles if title not in index]
    return tuple(checks.names(f"{shorten(file)}: columns", signals))


def _require_axes(file: Path, sample: NDArray[Any]) -> None:
    """Raise a UsageError if there are more channels than samples."""
    if len(sample) > sample.shape[1]:
        raise UsageError(
            f"{shorten(file)}: has {len(sample):,} channels of {sample.shape[1]:,} samples, as if its axes were "
            "swapped; expected [channels, samples]: save its transpose, or name the channels"
        )


def _require_signals(file: Path, names: Sequence[str], sample: NDArray[Any]) -> None:
    """Raise a UsageError if a column looks like a time, a counter or a label."""
    for name, values in zip(names, sample, strict=True):
        finite = values[np.isfinite(values)].astype(np.float64)
        steps = np.diff(finite)
        words = {word for word in re.split(r"[^a-z]+", name.lower()) if word}
        what = None
        if words & _NO_SIGNALS or looks_like_marker(name, unit_of(name)):
            what = "no signal"
        if len(steps) > _FEW:
            median = np.median(steps)
            usual = np.isclose(steps, median, rtol=1e-3, atol=0).mean() if median else 0
            if usual >= _MOST or (steps > 0).all() or (steps < 0).all():
                what = "a time or an index"
            elif len(finite) >= _FEW**2 and len(np.unique(finite)) <= _FEW and not (finite % 1).any():
                what = "a label"
        if what is not None:
            raise UsageError(
                f"{shorten(file)}: column {shown(name)} looks like {what}; give channels=[...] with the signals of "
                f"{shorten(', '.join(names))}"
            )


def _require_samples(
    file: Path, sample: NDArray[Any], rate: float, skipped: int, unclear: bool = False, later: bool = False
) -> None:
    """Raise a UsageError if one of the first lines looks like a start time, the sampling rate or names of columns.

    In a later file, of many, a sample that happens to be the rate lies between others.
    """
    last = sample[:, -1]
    for line in range(min(_FEW, sample.shape[1] - 1), 0, -1):
        values = sample[:, line - 1]
        rest = sample[:, line:]
        between = later and (rest <= rate).any() and (rest >= rate).any()
        is_rate = (values == rate).all() and (last != rate).any() and not between
        is_date = (values >= _UNIX).all() and (last < _UNIX).all()
        if is_rate or is_date or (unclear and line == 1):
            remedy = "remove it, as in other files" if later else f"give skip_lines={skipped + line} to begin after it"
            raise UsageError(
                f"{shorten(file)}: sample {line} is {values[0]:.16g}, which looks like a start time, a sampling rate "
                f"or a name; {remedy}, or give skip_lines=0 if it is a sample"
            )


def read_signal(
    path: Path,
    columns: Sequence[str | int] | None,
    text: TextOptions = GUESSED,
    units: str | None = None,
    notes: list[str] | None = None,
) -> NDArray[Any]:
    """Return the samples of a file, [channels, samples]; columns are given by name or position, by default all.

    Sentences on what was left out are added to `notes`.

    Raises:
        UsageError: the file cannot be read, lacks a column, or says that a column is in another unit.
    """
    with one_sentence(path), open_regular(path):
        if path.suffix.lower() == ".npy":
            array = _npy(path)
            rows = [row for row in columns or () if isinstance(row, int)]
            if max(rows, default=-1) >= len(array):
                raise UsageError(f"{shorten(path)}: has {len(array)} channels, counted from 0; expected {rows} in it")
            if rows:
                _require_axes(path, array)
            return np.asarray(checks.signal(shorten(path), array[rows] if rows else array))
        layout = _layout(path, text)
        titles = layout.titles
        many = len(titles)
        positions = [place_of(f"{shorten(path)}:", title, titles, many) for title in columns or range(many)]
        for position in positions if units is not None and known(units) else ():
            given = layout.units[position]
            if known(given) and factor(given, str(units)) != 1:
                column = shown(titles[position])
                raise UsageError(
                    f"{shorten(path)}: column {column} is in {given}, not in {units}; give its unit as units, or the "
                    "factor to units as gain"
                )
        if path.suffix.lower() == ".parquet":
            signals = _parquet_columns(path, positions)
        else:
            said = require_no_thousands(path, layout, positions) if text.decimal is None else []
            signals, of_lines = text_columns(path, layout, positions)
            if notes is not None:
                notes += [*said, *of_lines]
        for position, signal in zip(positions, signals, strict=True):
            if signal.dtype.kind not in "iufb":
                kind, remedy = "no numbers", "give channels=[...] without it"
                if _reads_as_numbers(signal):
                    kind, remedy = "numbers as text", "save them as numbers, such as table.astype(float) of pandas"
                raise UsageError(f"{shorten(path)}: column {shown(titles[position])} holds {kind}; {remedy}")
        return np.asarray(checks.signal(shorten(path), np.stack(signals)))


def _reads_as_numbers(column: NDArray[Any]) -> bool:
    """Return whether all entries of a column are texts of numbers."""
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return all(isinstance(entry, str) for entry in column)


def _npy(path: Path) -> NDArray[Any]:
    try:
        return np.atleast_2d(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError):
        raise UsageError(
            f"{shorten(path)}: not a whole array file of numbers; expected what numpy.save writes of x.astype(float)"
        ) from None


def _parquet(path: Path, read: Callable[[Any], Any]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return read(pq.ParquetFile(path))
    except (pa.ArrowException, OSError):
        raise UsageError(f"{shorten(path)}: not a readable Parquet file; expected what pandas writes") from None


def _parquet_columns(path: Path, positions: Sequence[int]) -> list[NDArray[Any]]:
    titles = _layout(path, GUESSED).titles
    table = _parquet(path, lambda file: file.read([titles[position] for position in positions]))
    return [table[titles[position]].to_numpy() for position in positions]


def _pandas_index(path: Path) -> list[str]:
    """Return the columns of a Parquet file that are the index of a pandas table."""
    if path.suffix.lower() != ".parquet":
        return []
    metadata = _parquet(path, lambda file: file.schema_arrow.pandas_metadata) or {}
    return [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]


def _index_column(path: Path, titles: Sequence[str], others: Collection[int]) -> int | None:
    """Return the position of the index that pandas writes, apart from some others; None without exactly one.

    It jumps where rows were dropped, and goes back where they were sorted otherwise.
    """
    index = _pandas_index(path)
    if is_text(path) and titles and titles[0] in _UNNAMED:
        index = [titles[0]]
    if len(index) != 1:
        return None
    position = list(titles).index(index[0])
    return None if position in others else position


def _layout(path: Path, options: TextOptions) -> Layout:
    """Return the columns of a text or Parquet file."""
    if path.suffix.lower() != ".parquet":
        return text_layout(path, options)
    schema = _parquet(path, lambda file: file.schema_arrow)
    units, said = list[str](), dict[str, Any]()
    for field in schema:
        metadata = _decoded(field.metadata)
        units.append(unit_of(field.name) or metadata.get("units", metadata.get("unit", "")))
    said |= _decoded(schema.metadata)
    said |= (schema.pandas_metadata or {}).get("attributes") or {}
    of_all = said.get("units", said.get("unit", ""))
    for number, name in enumerate(schema.names):
        of_column = of_all.get(name, "") if isinstance(of_all, Mapping) else of_all
        if not units[number] and isinstance(of_column, str):
            units[number] = of_column
    rates = [rate for _, rate in stated_rates(said)]
    return Layout(list(schema.names), units, skipped=options.skipped, rate=rates[-1] if rates else None)


def _decoded(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return what a Parquet file says of itself or of a column."""
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in (metadata or {}).items()}
