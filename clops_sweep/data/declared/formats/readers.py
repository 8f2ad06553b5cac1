"""Readers of one file for `Recordings.from_folder(..., read=...)`, each over a library of its own extra."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared.clocks import Start, shift
from clops_sweep.data.declared.formats.edf_annotations import annotations_of
from clops_sweep.data.declared.formats.edf_pieces import INTERRUPTED, incomplete_bytes, laid_out, pieces_of
from clops_sweep.data.declared.formats.events import Events, event_table
from clops_sweep.data.declared.formats.limb_leads import with_limb_leads
from clops_sweep.data.declared.label_table import positions
from clops_sweep.data.declared.markers import marker_names
from clops_sweep.data.declared.one_by_one import Recording
from clops_sweep.data.declared.recording_checks import refused
from clops_sweep.data.files.folder import is_of_the_file_system, shorten
from clops_sweep.data.files.library_warnings import Harmless, warnings_refused
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.files.wfdb_records import numbered
from clops_sweep.data.records import EveryRecordFails
from clops_sweep.errors import UsageError, listed, one_line, shown

_STEPS_BEYOND: Final = 1.5
"""Steps beyond the range of a signal up to which a sample counts as within."""

_EDF_WARNINGS = (
    Harmless(
        r"Incomplete data record at the end of the|\w+ header indicates -?\d+ data records",
        "_edf compares the number of records itself, and its sentence names both numbers",
    ),
)
_START_WARNINGS = (
    Harmless(
        r"Different values in startdate fields",
        "anonymized headers have 01.01.85 in the old field; the EDF+ field counts, as its specification says",
    ),
)
NO_DATE = date(1985, 1, 1)
"""The date that EDF+ prescribes for headers without one."""
_TABLES = (".tsv", ".csv", ".txt")
"""Endings of tables of annotations, in lower case."""


def opened(
    path: Path,
    what: str,
    library: str,
    extra: str,
    read: Callable[[Any], Any],
    harmless: Sequence[Harmless] = (),
) -> Any:
    """Return what `read` returns for a library; any of its errors and warnings becomes one sentence about the file.

    Args:
        path: the file.
        what: what the file should be, such as "EDF file".
        library: the module that `read` is called with.
        extra: the extra of this package that installs it.
        read: reads the file.
        harmless: warnings of the library that change nothing of what `read` returns.

    Raises:
        EveryRecordFails: the library, or one that it needs for this file, is not installed.
        UsageError: the library warns, or the file is not readable.
    """
    install = f"pip install 'clops-sweep[{extra}]'"
    try:
        module = importlib.import_module(library)
    except ImportError:
        raise EveryRecordFails(f"{shorten(path)}: needs {library}; {install}") from None
    try:
        with warnings_refused(path, what, harmless, library):
            return read(module)
    except UsageError:
        raise
    except ImportError as error:
        raise EveryRecordFails(f"{shorten(path)}: needs {error.name or one_line(error)}; {install}") from None
    except Exception as error:  # whatever a parser meets in a file of another format
        if is_of_the_file_system(error):
            raise
        reason = one_line(error)[:120] or type(error).__name__
        raise UsageError(f"{shorten(path)}: not a readable {what} ({reason}); copy or download it again") from None


@named_arguments
def from_edf(
    path: str | PathLike[str],
    channels: Sequence[str] | Sequence[int] | None = None,
    *,
    annotations: bool | str | PathLike[str] = False,
    derive_leads: bool = False,
    annotations_offset: float | None = None,
    event_column: str = "trial_type",
    until_next: bool = False,
) -> Recording:
    """Return the recording of an EDF, EDF+ or BDF file, without label and person: `dataclasses.replace` sets them.

    Onsets of another EDF+ file count from its own start. They are shifted by the difference of both start times (date,
    time and fraction of a second), which a note says; annotations outside the recording are left out and counted.

    Pieces of an interrupted file (EDF+D) are at their times, with missing samples between them: `gaps="split"` of the
    data set cuts each on its own.

    Args:
        path: the file.
        channels: names or positions (from 0) of the signals to read; by default all but those of triggers and markers,
            such as `Status`. Equal names are numbered.
        annotations: True for labelled intervals from its own annotations; a path for those of another EDF+ file, such
            as a hypnogram, or of a table such as BIDS `*_events.tsv` (columns onset, duration and trial_type). Onsets
            are seconds since the start of the signal, or dates.
        derive_leads: add III, aVR, aVL and aVF by their definition from I and II where they lack.
        annotations_offset: seconds from the start of the signal to that of `annotations`, if headers are wrong.
        event_column: the column of the table with the labels.
        until_next: whether an annotation without a duration lasts until the next one without a duration, or the end.

    Raises:
        UsageError: the file is invalid or truncated, or lacks a channel; the file with its
            annotations starts more than a day before or after it; or no annotation lies within it.
    """
    path = Path(path)
    file = _edf(path)
    names = numbered(file.labels)
    if not names:
        raise UsageError(f"{shorten(path)}: has no signals, only annotations; leave it out of pattern")
    picked = positions(f"{shorten(path)}: ", names, channels or names)
    chosen = [file.signals[position] for position in picked]
    ranges = opened(
        path, "EDF file", "edfio", "edf",
        lambda _: [(lead.physical_max - lead.physical_min) * (lead.digital_max - lead.digital_min) for lead in chosen],
    )  # fmt: skip
    if 0 in ranges:
        raise UsageError(
            f"{shorten(path)}: signal {names[picked[ranges.index(0)]]} has equal minimum and maximum, so no scale; "
            "give from_edf the channels to read"
        )
    start = _start(path, file)
    rates = [lead.sampling_frequency for lead in chosen]
    signal = opened(path, "EDF file", "edfio", "edf", lambda _: [lead.data for lead in chosen])
    seconds = float(opened(path, "EDF file", "edfio", "edf", lambda _: file.duration))
    beyond = []
    for position, lead, samples in zip(picked, chosen, signal, strict=True):
        if _is_beyond_range(lead, samples):
            beyond.append(names[position])
    notes: tuple[str, ...] = ()
    if beyond:
        notes = (f"samples of {listed(beyond)} lie beyond the range of its header, so that their scale may be wrong",)
    if not opened(path, "EDF file", "edfio", "edf", lambda _: file.is_continuous):
        duration = float(file.data_record_duration)
        pieces = pieces_of(path, file.num_data_records, duration, max(rates))
        signal = laid_out(path, signal, rates, duration, pieces)
        seconds = pieces[-1].start + (pieces[-1].last - pieces[-1].first) * duration
        if len(pieces) > 1:
            notes = (*notes, INTERRUPTED)
    if incomplete_bytes(path):
        notes = (*notes, "its last record is incomplete and left out")
    events = Events([])
    if annotations is not False:
        source = path if annotations is True else Path(annotations)
        events = _events(path, file, start, source, annotations_offset, event_column)
        events = events.placed(seconds, shorten(source), until_next)
    recording = Recording(
        signal=signal,
        sampling_rate=rates,
        channels=[names[position] for position in picked],
        units=[lead.physical_dimension.replace("\u00c2", "") for lead in chosen],  # the first of two bytes in UTF-8
        markers="keep" if channels else marker_names(names, [signal.physical_dimension for signal in chosen]),
        intervals=None if annotations is False else events.intervals,
        start=None if start is None else start.date,
        notes=(*notes, *events.notes),
    )
    return with_limb_leads(recording, f"{shorten(path)}: ") if derive_leads else recording


def _is_beyond_range(lead: Any, samples: NDArray[np.float64]) -> bool:
    """Return whether samples lie beyond the range of their signal; one step beyond is common for missing samples."""
    ends = lead.physical_min, lead.physical_max
    steps = max(1, abs(lead.digital_max - lead.digital_min))
    margin = _STEPS_BEYOND * abs(ends[1] - ends[0]) / steps
    if not len(samples):
        return False
    return bool(samples.min() < min(ends) - margin or samples.max() > max(ends) + margin)


def _edf(path: Path) -> Any:
    with open_regular(path) as binary:
        start, size = binary.read(256), path.stat().st_size
    is_bdf, promised = start[:1] == b"\xff", start[236:244].strip()
    if start[:8] not in (b"0       ", b"\xffBIOSEMI"):
        raise UsageError(f"{shorten(path)}: not a readable EDF file: it begins with {shown(start[:8])}")
    file = opened(
        path, "EDF file", "edfio", "edf",
        lambda edfio: (edfio.read_bdf if is_bdf else edfio.read_edf)(path, header_encoding="latin-1"), _EDF_WARNINGS,
    )  # fmt: skip
    there = file.num_data_records
    if promised in (b"-1", str(there).encode()):  # -1 while the file was written
        return file
    written = promised.decode("ascii", "replace")
    if promised.isdigit() and int(promised) < there:
        raise UsageError(
            f"{shorten(path)}: holds {there} records of data ({size:,} bytes) where its header counts {written}: "
            f"records were appended without a new header, or it is of another file; write {there} into bytes 237 to "
            "244 if all belong to it"
        )
    raise UsageError(
        f"{shorten(path)}: truncated, {there} records of data ({size:,} bytes) where its header promises {written}; "
        "copy or download it again"
    )


def _start(path: Path, file: Any) -> Start | None:
    """Return when an EDF file starts; None if its header has no valid time."""

    def read(edfio: Any) -> Start | None:
        try:
            time = file.starttime
        except ValueError:
            return None
        try:
            day = file.startdate
        except ValueError:  # the header is anonymized, or has no valid date
            day = None
        if day == NO_DATE:
            day = None
        return Start(day, time.hour * 3600 + time.minute * 60 + time.second + time.microsecond / 1e6)

    begin: Start | None = opened(path, "EDF file", "edfio", "edf", read, _START_WARNINGS)
    return begin


def _events(path: Path, file: Any, start: Start | None, source: Path, offset: float | None, column: str) -> Events:
    """Return the annotations of an EDF file or of another file, with seconds since the start of the signal.

    Args:
        path: the file with the signal.
        file: its content.
        start: when it starts.
        source: the file with the annotations: itself, another EDF+ file, or a table.
        offset: seconds from the start of the signal to that of the annotations; None to take it from the headers.
        column: the column of a table with the labels.

    Raises:
        UsageError: the file is invalid, or the start of the signal or of the annotations is not known.
    """
    if offset is not None and (isinstance(offset, bool) or not isinstance(offset, int | float)):
        raise refused("annotations_offset", "a number of seconds", offset)
    if source.suffix.lower() in _TABLES:
        return event_table(source, column, start, offset or 0.0)
    other = file if source == path else _edf(source)
    rows = []
    for annotation in annotations_of(source, other.num_data_records):
        end = annotation.onset + (annotation.duration or 0.0)
        rows.append((annotation.onset, end, annotation.text))
    if source == path:
        return Events(rows).shifted(offset or 0.0)
    if offset is not None:
        return Events(rows).shifted(offset)
    begin = _start(source, other)
    for where, start_of_file in ((path, start), (source, begin)):
        if start_of_file is None:
            raise UsageError(
                f"{shorten(where)}: its header has no valid start time, from which onsets count; give "
                "annotations_offset, the seconds from the start of the signal to that of its annotations, such as 0"
            )
    assert start is not None
    assert begin is not None
    return Events(rows).shifted(shift(start, begin, shorten(source)), said=True)
