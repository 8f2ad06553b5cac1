"""WFDB records through the wfdb package, with what it says about a bad file turned into one sentence."""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.annotation_end import require_end
from clops_sweep.data.files.folder import is_of_the_file_system, shorten
from clops_sweep.data.files.plain_wfdb import Packing, plain_record
from clops_sweep.data.files.wfdb_header_lines import check_header_lines
from clops_sweep.errors import UsageError

_MISSING = {"8": -128, "80": -128, "212": -2048, "310": -512, "311": -512, "24": -(2**23), "32": -(2**31)}
"""The stored value that says "nothing was recorded", by format; -32768 in the others (WFDB, signal(5))."""

_BYTES_PER_SAMPLE = {"8": 1.0, "16": 2.0, "24": 3.0, "32": 4.0, "61": 2.0, "80": 1.0, "160": 2.0, "212": 1.5}


@dataclass(frozen=True, eq=False)
class Header:
    """What a .hea file says: rate (Hz), samples per signal, leads, and per lead the unit, gain and baseline."""

    path: Path
    rate: float
    samples: int
    leads: tuple[str, ...]
    units: tuple[str, ...]
    gain: NDArray[np.float64]
    baseline: NDArray[np.float64]
    comments: tuple[str, ...]
    files: tuple[Path, ...]
    """The signal file of every lead."""
    missing: NDArray[np.int64]
    """The stored value of every lead that stands for a sample that was not recorded."""
    checksums: tuple[int | None, ...]
    """The sum of the stored values of every lead, to compare modulo 2^16; None where it is not known."""
    packing: Packing | None = None
    """How the samples lie in the one signal file, where they do so plainly; None leaves it to the wfdb package."""


def read_header(path: Path, lenient: bool = False) -> Header:
    """The header at `path` (with its suffix .hea), and a check that its signal files are there and whole.

    Args:
        path: of the header.
        lenient: whether signals may be in other units than mV, and a checksum of 0 says nothing, as some write it.

    Raises:
        UsageError: no header, one that cannot be parsed or has an impossible number, no sample, or a signal file that
            is missing, too short or another record's.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the header is missing; download the record again")
    text = path.read_text(encoding="utf-8", errors="replace")
    check_header_lines(path, text, any_unit=lenient)
    record: Any = plain_record(text)
    if record is None:
        record = _dated_or_not(path, (), path, "header", lambda wfdb, stem: wfdb.rdheader(stem))
    if not record.n_sig or not record.sig_len or not record.fs:
        raise UsageError(f"{shorten(path)}: the header promises no samples; download the record again")
    files = tuple(path.parent / name for name in record.file_name)
    header = Header(
        path,
        float(record.fs),
        int(record.sig_len),
        tuple(name or f"lead {number + 1}" for number, name in enumerate(record.sig_name)),
        tuple(record.units),
        np.array(record.adc_gain, float),
        np.array(record.baseline, float),
        tuple(record.comments or ()),
        files,
        np.array([_MISSING.get(str(form), -(2**15)) for form in record.fmt], np.int64),
        tuple(None if lenient and each == 0 else each for each in _checksums(record)),
        Packing.of(record),
    )
    _check_signal_files(header, record)
    return header


def read_stored(header: Header, wide: bool = False) -> NDArray[Any]:
    """The samples as the publisher stored them, [samples, leads] int16, or int32 of formats that are `wide`.

    Raises:
        UsageError: a signal file cannot be decoded, or does not have the checksum that the header gives.
    """
    stored: NDArray[Any]
    if header.packing is not None and not wide:
        stored = header.packing.samples(header.files[0], header.samples, len(header.leads))
    else:
        record = _dated_or_not(
            header.path,
            header.files,
            header.files[0],
            "signal file",
            lambda wfdb, stem: wfdb.rdrecord(stem, physical=False, return_res=32 if wide else 16),
        )
        stored = record.d_signal
    for lead, file, expected, found in zip(
        header.leads, header.files, header.checksums, stored.sum(0, dtype=np.int64), strict=True
    ):
        # Some publishers write the sum as it is, others its lowest 16 bits with or without a sign.
        if expected is not None and (expected - int(found)) % 2**16:
            raise UsageError(
                f"{shorten(file)}: lead {lead} does not have the checksum that {header.path.name} gives; "
                "download the record again"
            )
    return stored


def physical(stored: NDArray[Any], header: Header, lead: int) -> NDArray[np.float64]:
    """One lead in its unit: (stored - baseline) / gain, NaN where nothing was recorded.

    Shapes: stored [samples, leads], result [samples].
    """
    values = stored[:, lead].astype(np.float64)
    values[stored[:, lead] == header.missing[lead]] = np.nan
    return np.asarray((values - header.baseline[lead]) / header.gain[lead])


def read_annotations(path: Path) -> tuple[NDArray[np.int64], list[str], list[str]]:
    """Samples, symbols and notes (trailing NULs removed) of an annotation file such as 100.atr.

    Raises:
        UsageError: the file is missing, truncated or cannot be decoded.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the annotation file is missing; download the record again")
    require_end(path)
    annotation = _quietly(path, "annotation file", lambda wfdb: wfdb.rdann(str(path.with_suffix("")), path.suffix[1:]))
    notes = [note.rstrip("\0").strip() for note in annotation.aux_note]
    return np.asarray(annotation.sample, np.int64), list(annotation.symbol), notes


def require_rate(header: Header, rate: float) -> None:
    """Raises UsageError where a record's sampling rate is not the one its data set is published with."""
    if header.rate != rate:
        raise UsageError(
            f"{shorten(header.path)}: sampled at {header.rate:g} Hz instead of {rate:g} Hz; "
            "use the record as its publisher ships it"
        )


def require_leads(header: Header, names: Sequence[str]) -> list[int]:
    """Positions of the named leads in a record; UsageError names the first that it does not have."""
    lowered = [lead.lower() for lead in header.leads]
    for name in names:
        if name.lower() not in lowered:
            raise UsageError(
                f"{shorten(header.path)}: lead {name} is missing; use the record as its publisher ships it"
            )
    return [lowered.index(name.lower()) for name in names]


def diagnoses(header: Header) -> list[str]:
    """The diagnoses in a comment such as "#Dx: AF,RBBB".

    Raises:
        UsageError: there is no such comment, or nothing in it.
    """
    for comment in header.comments:
        key, _, value = comment.partition(":")
        if key.strip() == "Dx" and (names := [name.strip() for name in value.split(",") if name.strip()]):
            return names
    raise UsageError(
        f"{shorten(header.path)}: no '#Dx:' line with a diagnosis; use the record as its publisher ships it"
    )


def _checksums(record: Any) -> tuple[int | None, ...]:
    """The checksum of every signal; None where the samples that wfdb returns are not those that were summed."""
    given = record.checksum or [None] * record.n_sig
    as_stored = [
        not skew and (frame or 1) == 1 for skew, frame in zip(record.skew, record.samps_per_frame, strict=True)
    ]
    return tuple(None if sum_ is None or not kept else int(sum_) for sum_, kept in zip(given, as_stored, strict=True))


def _check_signal_files(header: Header, record: Any) -> None:
    for file in dict.fromkeys(header.files):
        if not file.is_file():
            raise UsageError(f"{shorten(file)}: the signal file is missing; download the record again")
        if file.stem != header.path.stem:
            raise UsageError(
                f"{shorten(header.path)}: names {shorten(file.name)}, the signal file of another record; "
                "use the record as its publisher ships it"
            )
        signals = [number for number, other in enumerate(header.files) if other == file]
        form = str(record.fmt[signals[0]])
        if form not in _BYTES_PER_SAMPLE:
            continue
        skipped = record.byte_offset[signals[0]] or 0
        per_frame = sum(record.samps_per_frame[number] or 1 for number in signals)
        needed = skipped + math.ceil(header.samples * per_frame * _BYTES_PER_SAMPLE[form])
        size = file.stat().st_size
        if size < needed:
            raise UsageError(
                f"{shorten(file)}: truncated, {size:,} bytes where its header promises {needed:,}; "
                "download the record again"
            )


def _dated_or_not(path: Path, files: Sequence[Path], named: Path, what: str, read: Callable[[Any, str], Any]) -> Any:
    """Reads a record by its header; where wfdb cannot, once more by a copy of the header without time and date.

    Headers of the PhysioNet/CinC Challenge hold dates such as 05-May-2020, which some releases of wfdb refuse.
    """
    try:
        return _quietly(named, what, lambda wfdb: read(wfdb, str(path.with_suffix(""))))
    except UsageError:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        undated = [_without_date(line) for line in lines]
        if undated == lines:
            raise
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / path.name
        copied.write_text("\n".join(undated) + "\n", encoding="utf-8")
        for file in dict.fromkeys(files):
            (Path(folder) / file.name).symlink_to(file.resolve())
        return _quietly(named, what, lambda wfdb: read(wfdb, str(copied.with_suffix(""))))


_RECORD_LINE = re.compile(r"^(\S+\s+\d+\s+\S+\s+\d+)\s+\S.*$")


def _without_date(line: str) -> str:
    """A header's record line without time and date; any other line unchanged."""
    match = _RECORD_LINE.match(line)
    looks_dated = match is not None and re.search(r"\d:\d|[-/]\w+[-/]\d", line) is not None
    return match.group(1) if match is not None and looks_dated and not line.startswith("#") else line


def load_wfdb() -> Any:
    """The wfdb package, without the deprecation warnings that its releases raise under newer releases of pandas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import wfdb
    return wfdb


def _quietly(path: Path, what: str, read: Callable[[Any], Any]) -> Any:
    """Calls into wfdb; whatever it raises about a file that is not what it should be becomes one sentence."""
    wfdb = load_wfdb()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(wfdb)
    except Exception as error:  # wfdb raises whatever its parsing runs into, from IndexError to struct.error
        if is_of_the_file_system(error):
            raise  # the file may be as it should be: whoever reads records says why it cannot be opened
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise UsageError(f"{shorten(path)}: not a readable {what} ({reason}); download the record again") from None
