"""`Recordings.from_wfdb`: WFDB records in a folder, with labels from a table, their headers, or rhythm notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.label_table import (
    Fields,
    Labels,
    Table,
    by_name,
    columns_of,
    of_header,
    read_rows,
)
from clops_sweep.data.declared.portions import Columns, Portion, Signal
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.rhythm_segments import rhythm_segments
from clops_sweep.data.files.wfdb_records import Header, physical, read_annotations, read_header, read_stored
from clops_sweep.data.records import Common, Stretch
from clops_sweep.errors import UsageError, shown


@dataclass(frozen=True, eq=False, kw_only=True)
class WfdbRecord(Portion):
    """One record, or some of its channels.

    `notes` is the extension of its annotation file, with the class index of each rhythm annotation.
    """

    channels: tuple[str, ...]
    integers: bool
    notes: tuple[str, Mapping[str, int]] | None = None

    def signal(self) -> Signal:
        """The publisher's integers with gain and baseline; in units if a sample is missing or they exceed 16 bits."""
        header = read_header(self.files[0], lenient=True)
        stretches = self._stretches(header)
        leads = positions(header, self.channels)
        stored = read_stored(header, wide=bool((header.missing < -(2**15)).any()))
        gain, baseline = header.gain[leads], header.baseline[leads]
        if self.integers and not (stored[:, leads] == header.missing[leads]).any():
            return Signal(stored[:, leads].T[None], header.rate, 1 / gain, -baseline / gain, stretches)
        in_units = np.stack([physical(stored, header, lead) for lead in leads])
        ones = np.ones(len(leads))
        return Signal(in_units[None], header.rate, ones, 0 * ones, stretches)

    def _stretches(self, header: Header) -> list[Stretch] | None:
        """Return the segments of used rhythms: a rhythm lasts until the next note."""
        if self.notes is None:
            return None
        ending, places = self.notes
        samples, symbols, notes = read_annotations(header.path.with_suffix(ending))
        found = rhythm_segments(samples, symbols, notes, header.samples)
        return [Stretch(each.begin, each.end, places[each.rhythm]) for each in found if each.rhythm in places]


def positions(header: Header, channels: Sequence[str]) -> list[int]:
    """Return the indices of the channels in a record: in order if it has exactly these, else by name.

    Raises:
        UsageError: the record lacks a channel.
    """
    if _own(header.leads) == tuple(channels):
        return list(range(len(header.leads)))
    lowered = [lead.lower() for lead in header.leads]
    for name in channels:
        if name.lower() not in lowered:
            raise UsageError(
                f"{shorten(header.path)}: has no channel {name}, but {', '.join(header.leads)}; give the channels that "
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
        headers = by_name(sorted(place.rglob("*.hea")), place)
    if not headers:
        raise UsageError(f"{shorten(place)}: the folder has no WFDB record (*.hea); look at the path")
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
    first = read_header(rows[0][1], lenient=True)
    names = _own(first.leads) if channels is None else checks.names("channels", channels)
    leads = positions(first, names)
    units = dict.fromkeys(first.units[lead] for lead in leads)
    integers = windowing[2] is None and bool((first.missing[leads] >= -(2**15)).all())
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
        signals = (file for file in (header.with_suffix(end) for end in (".dat", ".mat")) if file.is_file())
        files = (header, *signals, *([] if notes is None else [header.with_suffix(notes[0])]))
        recordings.append(
            WfdbRecord(
                (row["name"],), files, columns=known.rows(n, n + 1), channels=names, integers=integers, notes=notes
            )
        )
    common = Common(
        labels.classes, names, ", ".join(units), labels.multi_label, np.int16 if integers else np.float32, *windowing,
        left_out=dict(labels.left_out),
    )  # fmt: skip
    return common, recordings, known


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
        listed = [(row, headers.get(row["name"], folder / f"{row['name']}.hea")) for row in rows]
    for row, file in listed:
        if commented and file.is_file():
            said = _comments(file)
            for argument, key in commented.items():
                if key not in said and not argument.startswith("groups["):
                    raise UsageError(f"{shorten(file)}: has no comment '#{key}: ...', which {argument} names")
                row[argument] = said.get(key, "")
    return listed


def _short_name(file: Path, folder: Path, headers: Mapping[str, Path]) -> str:
    return file.stem if file.stem in headers else file.relative_to(folder).with_suffix("").as_posix()


def _comments(header: Path) -> dict[str, str]:
    """Return the comments of a header by name: "Dx" to "AF" for "#Dx: AF"."""
    with one_sentence(header):
        lines = header.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line[1:].partition(":") for line in lines if line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _own(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of channels, with duplicates numbered."""
    counts: dict[str, int] = {}
    found = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name} {counts[name]}")
    return tuple(found)
