"""`Recordings.from_wfdb`: WFDB records in a folder, with labels from a table, their headers, or rhythm notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.fields import TableFields, of_header
from clops_sweep.data.declared.label_table import (
    UNLISTED,
    Labels,
    by_any_name,
    by_name,
    columns_of,
    first_readable,
    located,
    other_names,
    positions,
    read_rows,
    short_name,
)
from clops_sweep.data.declared.markers import left_out_note, marker_names
from clops_sweep.data.declared.portions import Columns, Portion, Signal
from clops_sweep.data.files.folder import natural, one_sentence, shorten, visible
from clops_sweep.data.files.rhythm_segments import Segment, labelled_segments
from clops_sweep.data.files.units import conversion_notes, factor
from clops_sweep.data.files.wfdb_header import HeaderSummary, summarize
from clops_sweep.data.files.wfdb_records import (
    leads_of,
    numbered,
    read_annotations,
    read_header,
    read_in_units,
    read_stored,
    read_text,
)
from clops_sweep.data.left_out import Reason
from clops_sweep.data.records import Common, Stretch
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError, closest, several, shown


@dataclass(frozen=True, eq=False, kw_only=True)
class WfdbRecord(Portion):
    """One record, or some of its channels, in the units of the first record.

    `channels` are names or positions, `named` their names in the first record. `notes` is the extension of its
    annotation file, with the class index of each annotation that is used; with `around_beats`, each of them is a
    stretch of its own.
    """

    channels: tuple[str | int, ...]
    named: tuple[str, ...]
    units: tuple[str, ...]
    integers: bool
    notes: tuple[str, Mapping[str, int]] | None = None
    around_beats: bool = False

    def signal(self) -> Signal:
        """Return the publisher's integers with gain and baseline, or samples in units."""
        return self._in_integers() if self.integers else self._in_units()

    def _in_integers(self) -> Signal:
        path = self.files[0]
        header = read_header(path, lenient=True)
        names = numbered(header.leads)
        leads = positions(f"{shorten(path)}: ", names, self.channels)
        renamed = other_names(f"{shorten(path)}: ", names, self.channels, self.named)
        units = [header.units[lead] for lead in leads]
        factors = self._factors(units)
        stored = read_stored(header)[:, leads]
        missing = stored == header.missing[leads]
        sign = np.sign(header.gain[leads]).astype(np.int16)
        gain = np.abs(header.gain[leads]) / factors
        baseline = header.baseline[leads] * sign
        stretches, notes = self._stretches(header.samples, header.rate)
        return Signal(
            stored=(stored * sign).T[None],
            rate=header.rate,
            gain=1 / gain,
            offset=-baseline / gain,
            stretches=stretches,
            missing=missing.T[None] if missing.any() else None,
            notes=(*header.notes, *renamed, *conversion_notes(units, self.units), *notes),
        )

    def _in_units(self) -> Signal:
        path = self.files[0]
        names, _ = leads_of(path)
        leads = positions(f"{shorten(path)}: ", names, self.channels)
        renamed = other_names(f"{shorten(path)}: ", names, self.channels, self.named)
        signals = read_in_units(path, leads)
        values = signals.values * self._factors(signals.units)[:, None]
        stretches, notes = self._stretches(values.shape[1], signals.rate, signals.per_frame)
        return Signal(
            stored=values[None],
            rate=signals.rate,
            gain=np.ones(len(values)),
            offset=np.zeros(len(values)),
            stretches=stretches,
            notes=(*signals.notes, *renamed, *conversion_notes(signals.units, self.units), *notes),
        )

    def _stretches(self, length: int, rate: float, per_frame: int = 1) -> tuple[list[Stretch] | None, list[str]]:
        """Return the segments of used labels: a label lasts until the next annotation. Without any, a note says so."""
        if self.notes is None:
            return None, []
        ending, codes = self.notes
        samples, symbols, notes = read_annotations(self.files[0].with_suffix(ending), rate, per_frame)
        if self.around_beats:
            beats = zip(samples.tolist(), symbols, strict=True)
            segments = [Segment(sample, sample + 1, symbol) for sample, symbol in beats]
        else:
            segments = labelled_segments(samples, symbols, notes, length, codes)
        stretches = []
        for segment in segments:
            if segment.rhythm in codes:
                stretches.append(Stretch(segment.begin, segment.end, codes[segment.rhythm]))
        late = int((samples >= length).sum())
        said = _misspelt((segment.rhythm for segment in segments), codes)
        if late:
            said.append(f"{late} of its {len(samples)} annotations lie after the end of the signal")
        if stretches:
            return stretches, said
        there = ", ".join(sorted({*symbols, *notes} - {"", "+"})) or "none"
        return [], [f"has no annotation that is in classes, but {shorten(there)}"]

    def _factors(self, units: Sequence[str]) -> NDArray[np.float64]:
        """Return the factor of each channel from its unit to that of the first record."""
        factors = []
        for channel, given, wanted in zip(self.channels, units, self.units, strict=True):
            of_channel = factor(given, wanted)
            if of_channel is None:
                raise UsageError(
                    f"{self.place}: channel {channel} is in {given} where the first record is in {wanted}; leave the "
                    "record out, or declare it as another data set"
                )
            factors.append(of_channel)
        return np.array(factors, np.float64)


@dataclass(frozen=True)
class _Folder:
    """The headers of a folder.

    Attributes:
        path: the folder.
        headers: headers of records with signals, by their names.
        summaries: summary of each readable header.
        empty: headers without signals.
        broken: headers that cannot be read, if no table says which records there are.
        links: number of links to folders.
    """

    path: Path
    headers: Mapping[str, Path]
    summaries: Mapping[Path, HeaderSummary]
    empty: Sequence[Path]
    broken: Sequence[Path]
    links: int


def wfdb_files(
    folder: str | PathLike[str],
    fields: TableFields,
    channels: Sequence[str] | Sequence[int] | None,
    windowing: Windowing,
) -> tuple[Common, list[WfdbRecord], Columns]:
    """Return values common to the records, and the records; see `Recordings.from_wfdb`."""
    there = _headers_in(Path(folder), has_table=fields.table is not None)
    from_notes = isinstance(fields.label, str) and fields.label.startswith(".") and fields.label[1:].isalnum()
    if from_notes and windowing.window is None:
        raise UsageError(
            "window_seconds: expected the duration of the frames to cut from each rhythm, as given by rhythm notes"
        )
    _require_table(fields, from_notes)
    listed = _rows(there, fields, from_notes)
    rows = listed
    if fields.table is not None:
        empty = by_name(there.empty, there.path)
        rows = [(row, header) for row, header in listed if not by_any_name(empty, row["name"])]
    if not rows:
        raise UsageError(f"{shorten(there.path)}: no record of the table has signals; look at the table")
    labels = Labels(fields.classes, fields.separator, [] if from_notes else [row["label"] for row, _ in rows])
    wanted = checks.channels(channels)
    names, units, dropped = first_readable((header for _, header in rows), lambda header: _first(header, wanted))
    summaries = there.summaries
    # a record with other signals, or of several segments, makes all of them float32
    narrow = all(header not in summaries or summaries[header].narrow for _, header in rows)
    integers = windowing.rate is None and narrow
    notes = (str(fields.label), labels.used) if from_notes else None
    used, codes = rows, None
    if not from_notes:
        used, codes = [], []
        for row, header in rows:
            code = labels.of(row["label"], row["name"], fields.domains_of(row))
            if code is not None:
                used.append((row, header))
                codes.append(code)
    facts = columns_of([row for row, _ in used], labels, codes, fields)
    recordings = []
    for number, (row, header) in enumerate(used):
        files = [header, *_files(header, summaries)]
        if notes is not None:
            files.append(header.with_suffix(notes[0]))
        record = WfdbRecord(
            (row["name"],),
            tuple(files),
            columns=facts.rows(number, number + 1),
            channels=wanted or names,
            named=names,
            units=units,
            integers=integers,
            notes=notes,
            around_beats=windowing.rule == "beat",
        )
        recordings.append(record)
    for file in there.broken:  # reading them fails, whatever their facts
        columns = replace(facts.rows(0, 1), names=(file.stem,))
        recordings.append(replace(recordings[0], names=(file.stem,), files=(file,), columns=columns))
    without_signals = len(there.empty) if fields.table is None else len(listed) - len(rows)
    unlisted = set(there.headers.values()).difference(header for _, header in rows)
    labels.left_out.add(Reason("records", "without signals"), without_signals)
    labels.left_out.add(Reason("links", "to folders, which are not followed"), there.links)
    labels.left_out.add(UNLISTED, len(unlisted), names=_names(unlisted))
    common = Common(
        labels.classes,
        names,
        ", ".join(dict.fromkeys(units)),
        labels.multi_label,
        np.int16 if integers else np.float32,
        windowing,
        left_out=labels.left_out,
        people_given=fields.patient is not None,
        people_column=fields.patient,
        markers="refuse" if wanted is None else "keep",
        notes=(left_out_note(dropped),) if dropped else (),
    )
    return common, recordings, facts


def _names(headers: Iterable[Path]) -> list[str]:
    """Return the names of records, in natural order."""
    return sorted((header.stem for header in headers), key=natural)


def _headers_in(folder: Path, has_table: bool) -> _Folder:
    """Return the headers of a folder and its subfolders.

    Raises:
        UsageError: no header has signals.
    """
    with one_sentence(folder):
        below = visible(folder.rglob("*"), folder)
        files = [file for file in below if file.suffix.lower() == ".hea"]
        files.sort(key=lambda file: natural(str(file)))
        summaries = {file: summarize(read_text(file)) for file in files if file.is_file()}
        links = sum(path.is_symlink() and path.is_dir() for path in below)
    segments = set[Path]()
    for file, summary in summaries.items():
        segments.update(file.parent / f"{name}.hea" for name, _ in summary.segments)
    empty = [file for file, summary in summaries.items() if summary.signals == 0]
    broken = [] if has_table else [file for file in files if file not in summaries and file not in segments]
    unused = segments.union(empty, broken)
    headers = by_name([file for file in files if file not in unused], folder)
    if not headers:
        hint = " (links to folders are not followed)" if links else ""
        edf = sum(path.suffix.lower() == ".edf" for path in below)
        if edf:
            reads = "reads it" if edf == 1 else "reads them"
            raise UsageError(
                f"{shorten(folder)}: the folder has no WFDB record (*.hea) with signals{hint}; it has "
                f'{several(edf, ".edf file")}: Recordings.from_folder(..., "*.edf", read=from_edf) {reads}'
            )
        raise UsageError(
            f"{shorten(folder)}: the folder has no WFDB record (*.hea) with signals{hint}; look at the path"
        )
    return _Folder(folder, headers, summaries, empty, broken, links)


def _require_table(fields: TableFields, from_notes: bool) -> None:
    """Raise a UsageError if there is no table and a field is a column of one."""
    if fields.table is not None:
        return
    for argument, column in fields.columns.items():
        needs_none = argument == "name" or (argument == "label" and from_notes)
        if not needs_none and not of_header(column):
            raise UsageError(
                f"{argument}: {shown(column)} is a column, which needs a table; expected table=..., a comment of the "
                'header such as "#Dx", or, for label, the extension of annotation files such as ".atr"'
            )


def _first(
    path: Path, channels: Sequence[str | int] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return channels and units of a record, and the channels of markers that are left out.

    Units that can be converted into each other become that of the first channel that has one of them.
    """
    leads, units = leads_of(path)
    signals = [lead for lead in leads if not lead.endswith("DF Annotations")]  # in EDF and BDF
    units_of_signals = [unit for lead, unit in zip(leads, units, strict=True) if lead in signals]
    dropped = () if channels else marker_names(signals, units_of_signals)
    wanted = channels or [lead for lead in signals if lead not in dropped]
    chosen = positions(f"{shorten(path)}: ", leads, wanted)
    names = []
    for position, name in zip(chosen, wanted, strict=True):
        names.append(leads[position] if isinstance(name, int) else name)
    own_units = [units[position] for position in chosen]
    common = []
    for unit in own_units:
        convertible = [other for other in own_units if factor(unit, other)]
        common.append(convertible[0])
    return tuple(names), tuple(common), dropped


def _files(header: Path, summaries: Mapping[Path, HeaderSummary]) -> list[Path]:
    """Return the existing files that a header refers to, with those of its segments."""
    summary = summaries.get(header, HeaderSummary((), None, (), True))
    files = [header.parent / name for name in summary.files]
    for name, _ in summary.segments:
        segment = header.parent / f"{name}.hea"
        files += [segment, *_files(segment, summaries)]
    return [file for file in files if file.is_file()]


def _rows(there: _Folder, fields: TableFields, from_notes: bool) -> list[tuple[dict[str, str], Path]]:
    """Return fields and header of every record of the table or, without one, of the folder."""
    commented = {argument: str(column)[1:] for argument, column in fields.columns.items() if of_header(column)}
    if fields.table is None:
        files = dict.fromkeys(there.headers.values())
        listed = [({"name": short_name(file, there.path, there.headers)}, file) for file in files]
    else:
        _, rows = read_rows(there.path, replace(fields, label=fields.name) if from_notes else fields)
        listed = located(rows, there.headers, there.path, ".hea")  # a missing header is reported by its reader
    comments = {file: _comments(file) for _, file in listed if commented and file.is_file()}
    for argument, key in commented.items():
        for row, file in listed:
            given = comments.get(file, {}).get(key, [])
            joint = fields.separator if argument == "label" else None
            row[argument] = checks.identifier(argument, _one_comment(file, argument, key, given, joint))
        lacks = next((file for _, file in listed if file in comments and key not in comments[file]), None)
        some_labelled = argument == "label" and any(row["label"] for row, _ in listed)
        some_have = any(key in of_file for of_file in comments.values())
        optional = (argument.startswith("groups[") and some_have) or some_labelled
        if lacks is not None and not optional:
            comment = f"'#{key}: ...'" if key else "without a name"
            similar = closest(key, filter(None, comments[lacks]))
            hint = "" if similar is None else f"; did you mean {shown(f'#{similar}')}?"
            raise UsageError(f"{shorten(lacks)}: has no comment {comment}, which {argument} names{hint}")
    return listed


def _misspelt(labels: Iterable[str], used: Iterable[str]) -> list[str]:
    """Return a note on each label that is not used and differs only in case or spaces from a used one.

    Symbols of one character are left out: f and F, or a and A, are different beats.
    """
    names = set(used)
    alike = {"".join(name.casefold().split()): name for name in names}
    notes = list[str]()
    for label, many in Counter(labels).items():
        similar = alike.get("".join(label.casefold().split()))
        if label not in names and similar is not None and len(label) > 1:
            segments = several(many, "segment")
            notes.append(f"{segments} labelled {shorten(label, 40)} left out (did you mean {shorten(similar, 40)}?)")
    return notes


def _comments(header: Path) -> dict[str, list[str]]:
    """Return the comments of a header by name: "Dx" to ["AF"] for "#Dx: AF"; "" to those without a name."""
    with one_sentence(header):
        lines = read_text(header).splitlines()
    comments: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("#"):
            key, colon, value = line[1:].partition(":")
            if colon:
                comments.setdefault(key.strip(), []).append(value.strip())
            else:
                comments.setdefault("", []).append(key.strip())
    return comments


def _one_comment(header: Path, argument: str, key: str, given: Sequence[str], separator: str | None) -> str | None:
    """Return the value of the comments of one name: of those without a name, the first one; None without any.

    Args:
        header: the header, for messages.
        argument: the argument that names the comment.
        key: the name of the comment, "" for those without one.
        given: the values of the comments of this name.
        separator: separator of several values, which are then joined; None if one is expected.

    Raises:
        UsageError: two comments have one name and different values.
    """
    different = list(dict.fromkeys(given))
    if not key or len(different) < 2:
        return next(iter(given), None)
    if separator is not None:
        return separator.join(different)
    several_labels = ', or give separator="," to use several labels' if argument == "label" else ""
    raise UsageError(
        f"{shorten(header)}: has {len(given)} comments '#{key}: ...', which {argument} names, with "
        f"{shown(different[0])} and {shown(different[1])}; keep one of them{several_labels}"
    )
