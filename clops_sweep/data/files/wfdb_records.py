"""WFDB records: headers, signals and annotations; errors of the wfdb package become one sentence."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.annotation_end import comments_at_first_sample, require_end
from clops_sweep.data.files.folder import is_of_the_file_system, shorten
from clops_sweep.data.files.library_warnings import ABOUT_CODE, warnings_refused
from clops_sweep.data.files.resampling import at_rate, resampling_notes
from clops_sweep.data.files.units import factor
from clops_sweep.data.files.wfdb_header import (
    BITS,
    DEFAULT_GAIN,
    DEFAULT_RATE,
    WIDE,
    HeaderLines,
    HeaderSummary,
    header_lines,
    summarize,
)
from clops_sweep.errors import UsageError

_BYTES_PER_SAMPLE = {
    "8": 1.0, "16": 2.0, "24": 3.0, "32": 4.0, "61": 2.0, "80": 1.0, "160": 2.0, "212": 1.5, "310": 4 / 3, "311": 4 / 3
}  # fmt: skip
"""Of the formats whose files have a size that follows from the number of samples."""


_PADDING = 4
"""Bytes with which a writer may fill the last word of a file."""


@dataclass(frozen=True, eq=False)
class Header:
    """Content of a .hea file: rate (Hz), samples per signal, leads, and per lead the unit, gain and baseline."""

    path: Path
    lines: HeaderLines
    leads: tuple[str, ...]
    units: tuple[str, ...]
    gain: NDArray[np.float64]
    baseline: NDArray[np.float64]
    files: tuple[Path, ...]
    """The signal file of every lead."""
    missing: NDArray[np.int64]
    """The stored value of a missing sample, per lead."""
    checksums: tuple[int | None, ...]
    """The sum of the stored values of each lead, to compare modulo 2^16; None if unknown."""

    @property
    def rate(self) -> float:
        """Sampling rate in Hz."""
        return self.lines.rate or DEFAULT_RATE

    @property
    def samples(self) -> int:
        """Samples per lead."""
        return self.lines.samples

    @property
    def _has_more(self) -> bool:
        """Whether a signal file holds a frame or more beyond the samples that the header counts."""
        for file, (form, needed, per_frame) in _bytes_needed(self).items():
            beyond = file.stat().st_size - needed
            if beyond >= math.ceil(per_frame * _BYTES_PER_SAMPLE[form]) + _PADDING:
                return True
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about signals without a gain or unit, a header without a rate, and samples that it does not count."""
        without = [name for name, signal in zip(self.leads, self.lines.signals, strict=True) if not signal.calibrated]
        said = f"{', '.join(without)} without a gain in the header: {DEFAULT_GAIN:g} steps per unit, as WFDB assumes"
        rate = [] if self.lines.rate else [f"no sampling rate in the header: {DEFAULT_RATE:g} Hz, as WFDB assumes"]
        if any(signal.calibrated and not signal.has_unit for signal in self.lines.signals):
            rate.append("no unit in the header: mV, as WFDB defines it")
        if self._has_more:
            rate.append("the signal file holds more samples than the header counts, which are not read")
        return (said, *rate) if without else tuple(rate)


def read_header(path: Path, lenient: bool = False) -> Header:
    """Read the header at `path` (with its suffix .hea), and check that its signal files exist and are complete.

    Args:
        path: path of the header.
        lenient: whether signals may be in other units than mV, and a checksum of 0 counts as missing, as some write it.

    Raises:
        UsageError: the header is missing or cannot be parsed, has an impossible number or no samples, or a signal file
            is missing, too short or that of another record.
    """
    lines = header_lines(path, read_text(path), any_unit=lenient)
    signals = lines.signals
    header = Header(
        path,
        lines,
        tuple(signal.name or f"lead {number + 1}" for number, signal in enumerate(signals)),
        tuple(signal.unit for signal in signals),
        np.array([signal.gain for signal in signals], float),
        np.array([signal.baseline for signal in signals], float),
        tuple(path.parent / signal.file for signal in signals),
        np.array([-(2 ** (BITS.get(signal.form, 16) - 1)) for signal in signals], np.int64),  # WFDB, signal(5)
        # wfdb returns other values for skewed signals and several samples per frame
        tuple(
            None if signal.skewed or signal.per_frame != 1 or (lenient and signal.checksum == 0) else signal.checksum
            for signal in signals
        ),
    )
    if not header.samples:
        header = replace(header, lines=replace(lines, samples=_samples_of_file(header)))
        if not header.samples:
            raise UsageError(f"{shorten(header.files[0])}: the signal file has no samples; download the record again")
    _check_signal_files(header)
    if not lenient and (other := next((file for file in header.files if file.stem != path.stem), None)):
        raise UsageError(
            f"{shorten(path)}: names {shorten(other.name)}, the signal file of another record; use the record as its "
            "publisher ships it"
        )
    return header


def _samples_of_file(header: Header) -> int:
    """Return the samples per signal that the first signal file holds."""
    first = header.lines.signals[0]
    per_frame = sum(signal.per_frame for signal in header.lines.signals if signal.file == first.file)
    size = _BYTES_PER_SAMPLE.get(first.form)
    if size is None or not header.files[0].is_file():
        raise UsageError(f"{shorten(header.path)}: has no number of samples; add it to the first line, after the rate")
    return int((header.files[0].stat().st_size - first.offset) / size / per_frame)


def read_stored(header: Header, wide: bool = False) -> NDArray[Any]:
    """Return the samples as stored, [samples, leads] int16, or int64 with `wide`, for formats in `WIDE`.

    The wfdb package reads records that are not in a single plain file of format 16 or 212.

    Raises:
        UsageError: a signal file cannot be decoded, or does not have the header's checksum.
    """
    first = header.lines.signals[0]
    packing = {
        (signal.file, signal.form, signal.offset, signal.per_frame, signal.skewed) for signal in header.lines.signals
    }
    plain = packing == {(first.file, first.form, first.offset, 1, False)} and first.form in ("16", "212")
    stored: NDArray[Any] = (
        _unpacked(header) if plain and not wide else _package(header, return_res=64 if wide else 16).d_signal
    )
    sums = stored.sum(0, dtype=np.int64).tolist()
    for lead, file, expected, actual in zip(header.leads, header.files, header.checksums, sums, strict=True):
        # some publishers write the full sum, others its lowest 16 bits, signed or unsigned
        if expected is not None and (expected - actual) % 2**16:
            raise UsageError(
                f"{shorten(file)}: lead {lead} does not have the checksum that {header.path.name} gives; "
                "download the record again"
            )
    return stored


def _unpacked(header: Header) -> NDArray[np.int16]:
    """Return the samples [samples, leads] of a file of interleaved leads in format 16 or 212."""
    shape, first = (header.samples, len(header.leads)), header.lines.signals[0]
    count = shape[0] * shape[1]
    if first.form == "16":
        samples = np.fromfile(header.files[0], "<i2", count, offset=first.offset)
        return samples.astype(np.int16, copy=False).reshape(shape)
    # two 12-bit samples in three bytes: low eight bits of the first, high four of both, low eight of the second
    packed = np.fromfile(header.files[0], np.uint8, -(-count * 3 // 2), offset=first.offset)
    low, high, second = np.append(packed, np.zeros(-len(packed) % 3, np.uint8)).reshape(-1, 3).T.astype(np.int16)
    pairs = np.stack([low | (high << 8), second | (high << 4 & 0xF00)], axis=1).reshape(-1)[:count]
    return ((pairs << 4) >> 4).reshape(shape)  # the sign is the twelfth bit


def _package(header: Header, **options: Any) -> Any:
    """Return the record as the wfdb package reads it, with a copy of its header without dates, which it may refuse."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / f"{header.path.stem}.hea"
        copied.write_text(header.lines.undated.replace("{samples}", str(header.samples)), encoding="utf-8")
        for file in dict.fromkeys(header.files):
            (Path(folder) / file.name).symlink_to(file.resolve())
        stem = str(copied.with_suffix(""))
        return _by_wfdb(header.files[0], "signal file", lambda wfdb: wfdb.rdrecord(stem, physical=False, **options))


class InUnits(NamedTuple):
    """Channels of a record in their units: values [channels, samples], NaN where missing, at a rate in Hz.

    A frame, which annotations count, has `per_frame` samples. `notes` says what was done to which channels.
    """

    values: NDArray[np.float64]
    units: tuple[str, ...]
    rate: float
    per_frame: int = 1
    notes: tuple[str, ...] = ()


def leads_of(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and units of the channels of a record; duplicate names are numbered.

    Raises:
        UsageError: the header, or that of the first segment, is invalid.
    """
    if segments := summarize(read_text(path)).segments:
        path = path.parent / f"{segments[0][0]}.hea"
    signals = header_lines(path, read_text(path), any_unit=True).signals
    return numbered([signal.name or f"lead {n + 1}" for n, signal in enumerate(signals)]), tuple(
        signal.unit for signal in signals
    )


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of channels, with duplicates numbered."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        distinct.append(name if counts[name] == 1 else f"{name} {counts[name]}")
    return tuple(distinct)


def read_in_units(path: Path, leads: Sequence[int], least: int = 1) -> InUnits:
    """Return leads of any record in their units.

    Leads with fewer samples per frame than others, or than `least`, are resampled to the highest rate by `at_rate`.

    Raises:
        UsageError: the record or a segment is invalid.
    """
    if (summary := summarize(read_text(path))).segments:
        return _joined(path, summary, leads)
    header = read_header(path, lenient=True)
    units = tuple(header.units[lead] for lead in leads)
    signals = [header.lines.signals[lead] for lead in leads]
    highest = max(least, *(signal.per_frame for signal in signals))
    if highest == 1:
        stored = read_stored(header, wide=any(signal.form in WIDE for signal in header.lines.signals))
        values = np.stack([physical(stored, header, lead) for lead in leads])
        return InUnits(values, units, header.rate, 1, header.notes)
    expanded = _package(header, smooth_frames=False).e_d_signal
    rate = header.rate * highest
    rates = [(header.leads[lead], header.rate * signal.per_frame) for lead, signal in zip(leads, signals, strict=True)]
    slower = [f"{note}, the highest rate of the record" for note in resampling_notes(rates, rate)]
    channels = []
    for lead, signal in zip(leads, signals, strict=True):
        values = physical(np.asarray(expanded[lead])[:, None], header, lead, 0)
        if signal.per_frame < highest:
            values = at_rate(values, signal.per_frame, highest)
        channels.append(values)
    shortest = min(map(len, channels))
    stacked = np.stack([values[:shortest] for values in channels])
    return InUnits(stacked, units, rate, highest, (*header.notes, *slower))


def _joined(path: Path, summary: HeaderSummary, leads: Sequence[int]) -> InUnits:
    """Return a record of several segments, with NaN where a segment is a gap or lacks a channel."""
    names, units = leads_of(path)
    wanted = [names[lead] for lead in leads]
    first: InUnits | None = None
    notes = dict[str, None]()
    pieces: list[InUnits | int] = []
    per_frame = _most_per_frame(path, summary, wanted)
    for name, count in summary.segments:
        file = path.parent / f"{name}.hea"
        if not count.isdigit():
            raise UsageError(f"{shorten(path)}: segment {name[:40]!r} has no number of samples; correct the header")
        if name == "~" or "~" in summarize(read_text(file)).files:  # a gap, or a layout of no samples
            pieces.append(int(count))
            continue
        of_segment, _ = leads_of(file)
        rows = [row for row, name_of_lead in enumerate(wanted) if name_of_lead in of_segment]
        if not rows:
            pieces.append(int(count))
            continue
        piece = read_in_units(file, [of_segment.index(wanted[row]) for row in rows], per_frame)
        first = first or piece
        factors = [factor(unit, units[leads[row]]) for unit, row in zip(piece.units, rows, strict=True)]
        if None in factors or piece.values.shape[1] != int(count) * piece.per_frame or piece.rate != first.rate:
            raise UsageError(
                f"{shorten(file)}: has another length, rate or unit than {path.name} promises; download it again"
            )
        values = np.full((len(leads), piece.values.shape[1]), np.nan)
        values[rows] = piece.values * np.array(factors, np.float64)[:, None]
        notes |= dict.fromkeys(piece.notes)
        pieces.append(piece._replace(values=values))
    listed = str(len(summary.segments))
    total = str(sum(int(count) for _, count in summary.segments))
    if summary.promised not in ((listed, total), (listed, "0"), (listed, "")):
        raise UsageError(
            f"{shorten(path)}: promises {' segments of '.join(summary.promised)} samples where it lists {listed} of "
            f"{total}; download it again"
        )
    if first is None:
        raise UsageError(f"{shorten(path)}: no segment has samples of {', '.join(wanted)}; leave it out")
    blocks = []
    for piece_or_gap in pieces:
        if isinstance(piece_or_gap, int):
            blocks.append(np.full((len(leads), piece_or_gap * first.per_frame), np.nan))
        else:
            blocks.append(piece_or_gap.values)
    units_of_leads = tuple(units[lead] for lead in leads)
    return InUnits(np.hstack(blocks), units_of_leads, first.rate, first.per_frame, tuple(notes))


def _most_per_frame(path: Path, summary: HeaderSummary, wanted: Sequence[str]) -> int:
    """Return the most samples per frame of the wanted channels in any segment: some segments lack the fast ones."""
    most = 1
    for name, _ in summary.segments:
        file = path.parent / f"{name}.hea"
        if name == "~" or "~" in summarize(read_text(file)).files:
            continue
        names, _ = leads_of(file)
        signals = header_lines(file, read_text(file), any_unit=True).signals
        for name_of_lead, signal in zip(names, signals, strict=True):
            if name_of_lead in wanted:
                most = max(most, signal.per_frame)
    return most


def read_text(path: Path) -> str:
    """Return the text of a header, in UTF-8 or else Latin-1."""
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the header is missing; download the record again")
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def physical(stored: NDArray[Any], header: Header, lead: int, column: int | None = None) -> NDArray[np.float64]:
    """Return one lead in its unit: (stored - baseline) / gain, NaN for missing samples.

    Shapes: stored [samples, leads], result [samples]; the lead is in `column`, by default in its own.
    """
    whole = stored[:, lead if column is None else column]
    values = whole.astype(np.float64)
    values[whole == header.missing[lead]] = np.nan
    return np.asarray((values - header.baseline[lead]) / header.gain[lead])


def read_annotations(path: Path, rate: float, per_frame: int = 1) -> tuple[NDArray[np.int64], list[str], list[str]]:
    """Return samples, symbols and notes (without trailing NULs) of an annotation file such as 100.atr.

    They are in order of time. Samples are at `rate`, that of a signal with `per_frame` samples per frame: the file
    counts frames, unless it says another time resolution.

    Raises:
        UsageError: the file is missing, truncated or cannot be decoded.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the annotation file is missing; download the record again")
    require_end(path)
    with tempfile.TemporaryDirectory() as folder:  # without the header, whose rate rdann takes for a resolution
        stem, ending = str(Path(folder) / path.stem), path.suffix[1:]
        Path(f"{stem}.{ending}").symlink_to(path.resolve())
        annotation = _by_wfdb(path, "annotation file", lambda wfdb: wfdb.rdann(stem, ending))
    samples_per_unit = rate / annotation.fs if annotation.fs else per_frame
    samples = np.rint(np.asarray(annotation.sample) * samples_per_unit)
    order = np.argsort(samples, kind="stable")
    comments = comments_at_first_sample(path)
    symbols = ['"'] * len(comments) + [annotation.symbol[index] for index in order]
    notes = comments + [annotation.aux_note[index].rstrip("\0").strip() for index in order]
    return np.concatenate([np.zeros(len(comments)), samples[order]]).astype(np.int64), symbols, notes


def require_rate(header: Header, rate: float) -> None:
    """Raise a UsageError if a record does not have the published sampling rate of its data set."""
    if header.rate != rate:
        raise UsageError(
            f"{shorten(header.path)}: sampled at {header.rate:g} Hz instead of {rate:g} Hz; "
            "use the record as its publisher ships it"
        )


def require_leads(header: Header, names: Sequence[str]) -> list[int]:
    """Return the positions of the named leads in a record; a UsageError names the first missing one."""
    lowered = [lead.lower() for lead in header.leads]
    for name in names:
        if name.lower() not in lowered:
            raise UsageError(
                f"{shorten(header.path)}: lead {name} is missing; use the record as its publisher ships it"
            )
    return [lowered.index(name.lower()) for name in names]


def diagnoses(header: Header) -> list[str]:
    """Return the diagnoses in a comment such as "#Dx: AF,RBBB".

    Raises:
        UsageError: the comment is missing or empty.
    """
    for comment in header.lines.comments:
        key, _, value = comment.partition(":")
        if key.strip() == "Dx" and (names := [name.strip() for name in value.split(",") if name.strip()]):
            return names
    raise UsageError(
        f"{shorten(header.path)}: no '#Dx:' line with a diagnosis; use the record as its publisher ships it"
    )


def _bytes_needed(header: Header) -> dict[Path, tuple[str, int, int]]:
    """Return the format, the bytes that the header counts, and the samples of a frame, of the files of known sizes."""
    needed: dict[Path, tuple[str, int, int]] = {}
    for file in dict.fromkeys(header.files):
        signals = [signal for signal, other in zip(header.lines.signals, header.files, strict=True) if other == file]
        form = signals[0].form
        if form in _BYTES_PER_SAMPLE:
            per_frame = sum(signal.per_frame for signal in signals)
            of_samples = math.ceil(header.samples * per_frame * _BYTES_PER_SAMPLE[form])
            needed[file] = form, signals[0].offset + of_samples, per_frame
    return needed


def _check_signal_files(header: Header) -> None:
    for file in dict.fromkeys(header.files):
        if not file.is_file():
            raise UsageError(f"{shorten(file)}: the signal file is missing; download the record again")
    for file, (_, needed, _) in _bytes_needed(header).items():
        size = file.stat().st_size
        if size < needed:
            raise UsageError(
                f"{shorten(file)}: truncated, {size:,} bytes where its header promises {needed:,}; "
                "download the record again"
            )


def load_wfdb() -> Any:
    """Return the wfdb package, imported without its deprecation warnings under newer releases of pandas."""
    with warnings.catch_warnings():
        for category in ABOUT_CODE:
            warnings.simplefilter("ignore", category)
        import wfdb
    return wfdb


def _by_wfdb(path: Path, what: str, read: Callable[[Any], Any]) -> Any:
    """Convert any error or warning of wfdb about an invalid file to one sentence."""
    wfdb = load_wfdb()
    try:
        with warnings_refused(path, what):
            return read(wfdb)
    except UsageError:
        raise
    except Exception as error:  # wfdb raises whatever its parser meets, from IndexError to struct.error
        if is_of_the_file_system(error):
            raise  # the reader of the record reports why its file cannot be opened
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise UsageError(f"{shorten(path)}: not a readable {what} ({reason}); download the record again") from None
