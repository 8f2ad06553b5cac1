"""`Recordings.from_wfdb`: WFDB records in a folder, with labels from a table, their headers, or rhythm notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.label_table import (
    Fields,
    Labels,
    Table,
    by_any_name,
    by_name,
    columns_of,
    natural,
    of_header,
    read_rows,
    visible,
)
from clops_sweep.data.declared.portions import Columns, Portion, Signal
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.rhythm_segments import labelled_segments
from clops_sweep.data.files.units import factor
from clops_sweep.data.files.wfdb_header import HeaderSummary, summarize
from clops_sweep.data.files.wfdb_records import (
    physical,
    read_annotations,
    read_expanded,
    read_header,
    read_segments,
    read_stored,
    read_text,
)
from clops_sweep.data.records import Common, Stretch
from clops_sweep.errors import UsageError, shown


@dataclass(frozen=True, eq=False, kw_only=True)
class WfdbRecord(Portion):
    """One record, or some of its channels, in the units of the first record.

    `notes` is the extension of its annotation file, with the class index of each annotation that is used.
    """

    channels: tuple[str, ...]
    units: tuple[str, ...]
    integers: bool
    notes: tuple[str, Mapping[str, int]] | None = None

    def signal(self) -> Signal:
        """The publisher's integers with gain and baseline; in units for several segments or rates, or wide formats."""
        path = self.files[0]
        if summarize(read_text(path)).segments:
            names, units, in_units, rate = read_segments(path)
            leads = positions(path, names, self.channels)
            return self._physical(in_units[leads], [units[lead] for lead in leads], rate)
        header = read_header(path, lenient=True)
        leads = positions(path, header.leads, self.channels)
        units = tuple(header.units[lead] for lead in leads)
        if any(header.lines.signals[lead].per_frame != 1 for lead in leads):
            in_units, rate = read_expanded(header, leads)
            return self._physical(in_units, units, rate, rate / header.rate)
        wide = bool((header.missing < -(2**15)).any())
        stored = read_stored(header, wide)
        if wide or not self.integers:
            return self._physical(np.stack([physical(stored, header, lead) for lead in leads]), units, header.rate)
        wanted = stored[:, leads]
        missing = wanted == header.missing[leads]
        sign, factor = np.sign(header.gain[leads]).astype(np.int16), self._factors(units)
        gain, baseline = np.abs(header.gain[leads]) / factor, header.baseline[leads] * sign
        return Signal(
            (wanted * sign).T[None],
            header.rate,
            1 / gain,
            -baseline / gain,
            self._stretches(header.samples),
            missing.T[None] if missing.any() else None,
        )

    def _physical(
        self, in_units: NDArray[np.float64], units: Sequence[str], rate: float, per_frame: float = 1.0
    ) -> Signal:
        """Return channels [channels, samples] that are in units of the record."""
        if self.integers:
            raise UsageError(
                f"{self.place}: cannot be read as 16-bit integers like the first record; give resample_to to read all "
                "records in units"
            )
        signal = in_units * self._factors(units)[:, None]
        ones = np.ones(len(signal))
        return Signal(signal[None], rate, ones, 0 * ones, self._stretches(signal.shape[1], per_frame))

    def _stretches(self, length: int, per_frame: float = 1.0) -> list[Stretch] | None:
        """Return the segments of used labels: a label lasts until the next annotation.

        Annotations count frames, which have `per_frame` samples each.
        """
        if self.notes is None:
            return None
        ending, places = self.notes
        path = self.files[0].with_suffix(ending)
        samples, symbols, notes = read_annotations(path)
        found = labelled_segments((samples * per_frame).astype(np.int64), symbols, notes, length)
        if found and not any(each.rhythm in places for each in found):
            there = ", ".join(sorted({each.rhythm for each in found}))
            raise UsageError(f"{shorten(path)}: has the labels {shorten(there)}; expected some of {', '.join(places)}")
        return [Stretch(each.begin, each.end, places[each.rhythm]) for each in found if each.rhythm in places]

    def _factors(self, units: Sequence[str]) -> NDArray[np.float64]:
        """Return the factor of each channel from its unit to that of the first record."""
        found = [factor(given, wanted) for given, wanted in zip(units, self.units, strict=True)]
        for channel, given, wanted, each in zip(self.channels, units, self.units, found, strict=True):
            if each is None:
                raise UsageError(
                    f"{self.place}: channel {channel} is in {given} where the first record is in {wanted}; leave the "
                    "record out, or declare it as another data set"
                )
        return np.array(found, np.float64)

def positions(path: Path, leads: Sequence[str], channels: Sequence[str]) -> list[int]:
    """Return the indices of the channels in a record: in order if it has exactly these, else by name.

    Raises:
        UsageError: the record lacks a channel.
    """
    if _own(leads) == tuple(channels):
        return list(range(len(leads)))
    lowered = [lead.lower() for lead in leads]
    for name in channels:
        if name.lower() not in lowered:
            raise UsageError(
                f"{shorten(path)}: has no channel {name}, but {', '.join(leads)}; give the channels that "
                "all records have"
            )
    return [lowered.index(name.lower()) for name in channels]


def wfdb_files(
    folder: str | PathLike[str],
    fields: Fields,
    table: Table | None,
    classes: Any,
    separator: str | None,
    channels: Sequence[str] | None,
    windowing: tuple[float | None, float | None, float | None],
) -> tuple[Common, list[WfdbRecord], Columns]:
    """Return values common to the records, and the records; see `Recordings.from_wfdb`."""
    place = Path(folder)
    with one_sentence(place):
        found = sorted(visible(place, place.rglob("*.hea")), key=natural)
        summaries = {file: summarize(read_text(file)) for file in found}
    segments = {file.parent / f"{name}.hea" for file, summary in summaries.items() for name in summary.segments}
    without = [file for file, summary in summaries.items() if summary.signals == 0]
    headers = by_name([file for file in found if file not in segments and file not in without], place)
    if not headers:
        raise UsageError(f"{shorten(place)}: the folder has no WFDB record (*.hea) with signals; look at the path")
    from_notes = isinstance(fields.label, str) and fields.label.startswith(".") and fields.label[1:].isalnum()
    if from_notes and windowing[0] is None:
        raise UsageError(
            "window_seconds: expected the duration of the frames to cut from each rhythm, as given by rhythm notes"
        )
    columns = fields.columns.items()
    tabled = [name for name, it in columns if not (of_header(it) or name == "name" or (name == "label" and from_notes))]
    if table is None and tabled:
        raise UsageError(
            f"{tabled[0]}: {shown(dict(columns)[tabled[0]])} is a column, which needs a table; expected table=..., a "
            'comment of the header such as "#Dx", or, for label, the extension of annotation files such as ".atr"'
        )
    rows = _rows(place, headers, fields, table, from_notes)
    written = [] if from_notes else [row["label"] for row, _ in rows]
    labels = Labels(classes, separator, written)
    first = _first([header for _, header in rows], channels)
    integers = first.integers and windowing[2] is None
    notes = None
    if from_notes:
        mapping = classes if isinstance(classes, Mapping) else {name: name for name in labels.classes}
        notes = (str(fields.label), {note: labels.classes.index(name) for note, name in mapping.items()})
    found = [(row, header, None if from_notes else labels.of(row["label"])) for row, header in rows]
    used = [each for each in found if from_notes or each[2] is not None]
    known = columns_of(
        [row for row, _, _ in used], labels.classes, None if from_notes else [label for _, _, label in used]
    )
    recordings = []
    for n, (row, header, _) in enumerate(used):
        files = (header, *_files(header, summaries), *([] if notes is None else [header.with_suffix(notes[0])]))
        recordings.append(
            WfdbRecord(
                (row["name"],), files, columns=known.rows(n, n + 1), channels=first.names, units=first.units,
                integers=integers, notes=notes,
            )  # fmt: skip
        )
    left_out = dict(labels.left_out) | ({"records without signals": len(without)} if without and table is None else {})
    common = Common(
        labels.classes, first.names, ", ".join(dict.fromkeys(first.units)), labels.multi_label,
        np.int16 if integers else np.float32, *windowing, left_out=left_out,
    )  # fmt: skip
    return common, recordings, known


class _First(NamedTuple):
    """Channels and units of the first record, and whether its samples are plain integers of at most 16 bits."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    integers: bool


def _first(files: Sequence[Path], channels: Sequence[str] | None) -> _First:
    """Return facts about the first record that can be read; the others are reported by their readers."""
    wanted = None if channels is None else checks.names("channels", channels)
    problem = None
    for path in files:
        try:
            if summarize(read_text(path)).segments:
                leads, units, _, _ = read_segments(path)
                plain = np.zeros(len(leads), bool)
            else:
                header = read_header(path, lenient=True)
                leads, units = header.leads, header.units
                one = np.array([signal.per_frame == 1 for signal in header.lines.signals])
                plain = one & (header.missing >= -(2**15))
            names = wanted or _own(leads)
            chosen = positions(path, leads, names)
            return _First(names, tuple(units[lead] for lead in chosen), bool(plain[chosen].all()))
        except UsageError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _files(header: Path, summaries: Mapping[Path, HeaderSummary]) -> list[Path]:
    """Return the existing files that a header refers to, with those of its segments."""
    summary = summaries.get(header, HeaderSummary((), None, ()))
    found = [header.parent / name for name in summary.files]
    for name in summary.segments:
        segment = header.parent / f"{name}.hea"
        found += [segment, *_files(segment, summaries)]
    return [file for file in found if file.is_file()]


def _rows(
    folder: Path, headers: Mapping[str, Path], fields: Fields, table: Table | None, from_notes: bool
) -> list[tuple[dict[str, str], Path]]:
    """Yield fields and header of every record of the table or, without one, of the folder."""
    commented = {argument: str(column)[1:] for argument, column in fields.columns.items() if of_header(column)}
    if table is None:
        files = dict.fromkeys(headers.values())
        listed = [({"name": _short_name(file, folder, headers)}, file) for file in files]
    else:
        _, rows = read_rows(folder, table, replace(fields, label=fields.name) if from_notes else fields)
        # A missing header is reported by its reader.
        listed = [(row, by_any_name(headers, row["name"]) or folder / f"{row['name']}.hea") for row in rows]
    for row, file in listed:
        if commented and file.is_file():
            said = _comments(file)
            for argument, key in commented.items():
                if key not in said and not argument.startswith("groups["):
                    comment = f"'#{key}: ...'" if key else "without a name"
                    raise UsageError(f"{shorten(file)}: has no comment {comment}, which {argument} names")
                row[argument] = said.get(key, "")
    return listed


def _short_name(file: Path, folder: Path, headers: Mapping[str, Path]) -> str:
    return file.stem if file.stem in headers else file.relative_to(folder).with_suffix("").as_posix()


def _comments(header: Path) -> dict[str, str]:
    """Return the comments of a header by name: "Dx" to "AF" for "#Dx: AF"; "" to the first comment without a name."""
    with one_sentence(header):
        lines = read_text(header).splitlines()
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            key, named, value = line[1:].partition(":")
            found.setdefault(*((key.strip(), value.strip()) if named else ("", key.strip())))
    return found


def _own(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of channels, with duplicates numbered."""
    counts: dict[str, int] = {}
    found = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name} {counts[name]}")
    return tuple(found)
