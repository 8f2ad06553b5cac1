"""`from_mne`: recordings of EEG by MNE-Python, from files, `Raw` or `Epochs`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared.formats.edf_pieces import fraction_of_start
from clops_sweep.data.declared.formats.events import Event, Events
from clops_sweep.data.declared.formats.readers import NO_DATE, opened
from clops_sweep.data.declared.label_table import positions
from clops_sweep.data.declared.markers import looks_like_marker, marker_names
from clops_sweep.data.declared.one_by_one import Recording
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.library_warnings import Harmless
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.files.units import factor, known
from clops_sweep.errors import UsageError, listed, shown

_HARMLESS: Final = (
    Harmless(r"Limited \d+ annotation\(s\)", "an interval that ends after the recording ends with it"),
    Harmless(r"The data contains 'boundary' events", "boundaries count as missing samples"),
    Harmless(r"Data file name in EEG\.data .* is incorrect", "the samples lie in the .fdt file beside the .set file"),
    Harmless(
        r"Highpass cutoff frequency|Channels contain different (highpass|lowpass) filters|Online software filter",
        "header fields about filters that the recorder applied",
    ),
    Harmless(
        r"Not setting position|Estimated head radius|No coordinate information found",
        "positions of electrodes are not read; units come from the header",
    ),
    Harmless(r"Epochs? .*was|.* events? .* dropped", "MNE counts epochs that it rejected itself"),
    Harmless(r"\s*Could not parse meas date", "the recording has no start; dated tables are then refused"),
    Harmless(r"This filename .* does not conform to MNE naming", "a name says nothing about samples"),
)
_OUTSIDE: Final = Harmless(r"Omitted \d+ annotation\(s\)", "no annotation is asked for")
_EDF: Final = (".edf", ".bdf")
_IN_UTC: Final = (".fif", ".gz", ".mff")
"""Endings of files whose dates are in UTC."""
_HEADERS: Final = {".eeg": ".vhdr", ".vmrk": ".vhdr", ".fdt": ".set"}
"""Endings of the headers of files that lie beside them."""
_SCALED: Final = ("V", "mV", "uV", "\N{MICRO SIGN}V", "nV")
"""Units that MNE converts to volts in BrainVision files."""
_UNITS: Final = {107: ("uV", 1e6), 112: ("T", 1.0), 201: ("T/m", 1.0)}
"""Unit and factor of MNE's codes of units, which are those of the FIF format: volt, tesla, tesla per metre."""
_STIMULUS: Final = "stim"
_GAPS: Final = re.compile(r"(bad|edge)|boundary$|new segment", re.IGNORECASE)
"""Descriptions of annotations of samples that must not be used, or of cuts."""
_POINT: Final = 1.001
"""Most samples of an annotation without a duration."""
_SIGNAL_HEADER: Final = 216
"""Bytes of a signal's header in EDF and GDF before its number of samples in a record."""
_MICROVOLT, _MILLIVOLT = 4275, 4274
"""Codes of ISO 11073 in GDF files from version 1.9."""
_DIGITS_OF_A_DATE: Final = 20
"""Digits of the date that may end a marker of a BrainVision file."""
_RIFF: Final = b"RIFF"
"""The first bytes of a CNT file of ANT Neuro."""
_RIGHT_UNITS: Final = ("uV", "\N{MICRO SIGN}V", "\N{GREEK SMALL LETTER MU}V", "mV", "V")
"""Spellings that MNE converts in EDF files."""


@named_arguments
def from_mne(
    source: Any,
    channels: Sequence[str] | Sequence[int] | None = None,
    *,
    annotations: bool = False,
    until_next: bool = False,
) -> Recording | list[Recording]:
    """Return the recording of a file that MNE-Python reads, or of its `Raw` or `Epochs`; needs the extra `[mne]`.

    BrainVision (.vhdr), EEGLAB (.set with .fdt), GDF, FIF, Neuroscan CNT and others. Volts become uV. Stimulus channels
    are left out unless `channels` names them. Channels that are marked as bad, segments annotated as BAD or EDGE, and
    the first sample after a cut (boundary, New Segment) count as missing: see `missing` and `gaps`. Epochs become a
    list of recordings, labelled by the names of their events, of the person that the file names, or of one person.

    Args:
        source: path of a file, `mne.io.Raw` or `mne.Epochs`.
        channels: names or positions (from 0) of the channels to read; by default all but stimulus channels.
        annotations: whether the other annotations become labelled intervals.
        until_next: whether an annotation without a duration, or of one sample, lasts until the next one or the end.

    Raises:
        UsageError: MNE is not installed, cannot read the file or warns about it, or would read it wrongly: units that
            it takes for volts, and channels of several rates, which it resamples with ringing. `from_edf` reads EDF.
    """
    is_path = isinstance(source, str | PathLike)
    path = _with_header(Path(source)) if is_path else _file_of(source)
    where = "from_mne: " if path is None else f"{shorten(path)}: "
    if is_path and path is not None and not path.exists():
        raise UsageError(f"{where}is not there; expected a file that MNE reads")
    if path is not None:
        _require_right_reading(path)
    data = _read(path, annotations) if is_path and path is not None else source
    for name in ("get_data", "get_channel_types", "ch_names", "info"):
        if not hasattr(data, name):
            raise UsageError(f"from_mne: expected a path, mne.io.Raw or mne.Epochs, not {shown(source)}")
    names = list(data.ch_names)
    picks = positions(where, names, channels or names)
    kinds = data.get_channel_types()
    stimuli = [names[pick] for pick in picks if kinds[pick] == _STIMULUS]
    chosen = [names[pick] for pick in picks]
    units, scales = _units(path, where, data.info, kinds, picks)
    common: dict[str, Any] = {
        "sampling_rate": float(data.info["sfreq"]),
        "channels": chosen,
        "units": units,
        "markers": "keep" if channels else [*stimuli, *(name for name in marker_names(chosen) if name not in stimuli)],
    }
    bad = [row for row, name in enumerate(chosen) if name in data.info["bads"]]
    notes = [f"channel {chosen[row]} is marked as bad: its samples count as missing" for row in bad]
    notes += _notes_on_projections(data.info)
    person = _person(data.info)
    if hasattr(data, "drop_log"):  # of Epochs alone; Raw of an MFF file has an event_id, too
        return list(_epochs(data, picks, scales, bad, notes, person or (path.stem if path else "1"), common))
    signal = _float64(data.get_data(picks=picks)) * scales[:, None]
    signal[bad] = np.nan
    intervals, said = _annotated(data, signal, chosen, path, until_next)
    return Recording(
        signal=signal,
        patient=person,
        start=_start(data, path),
        intervals=intervals if annotations else None,
        notes=[*notes, *said],
        **common,
    )


def _read(path: Path, annotations: bool) -> Any:
    """Return the raw data of a file, or its epochs. Some formats, such as MFF, are folders."""
    if not path.is_dir():
        with open_regular(path):
            pass

    def read(mne: Any) -> Any:
        quiet: dict[str, Any] = {"verbose": "warning"}
        if path.suffix.lower() == ".cnt":
            return _read_cnt(mne, path, quiet)
        if re.search(r"epo\.fif(\.gz)?$", path.name):
            return mne.read_epochs(path, **quiet)
        try:
            return mne.io.read_raw(path, preload=True, **quiet)
        except TypeError as error:
            if path.suffix.lower() == ".set" and "trials" in str(error):
                return mne.io.read_epochs_eeglab(path, **quiet)
            raise

    return opened(path, "EEG file", "mne", "mne", read, _HARMLESS if annotations else (*_HARMLESS, _OUTSIDE))


def _read_cnt(mne: Any, path: Path, quiet: Mapping[str, Any]) -> Any:
    """Return the raw data of a CNT file, of Neuroscan or ANT Neuro, which share the ending.

    Raises:
        UsageError: a Neuroscan file does not tell how many bits a sample has. Samples of the wrong size are noise,
            which MNE returns without a warning.
    """
    with path.open("rb") as file:
        is_ant = file.read(4) == _RIFF
    if is_ant:
        return mne.io.read_raw_ant(path, preload=True, **quiet)
    try:
        return mne.io.read_raw_cnt(path, preload=True, **quiet)
    except RuntimeError as error:
        if "data_format" not in str(error):
            raise
        raise UsageError(
            f"{shorten(path)}: does not tell whether its samples have 16 or 32 bits; expected "
            'from_mne(mne.io.read_raw_cnt(path, data_format="int16", preload=True)), or "int32": amplitudes of the '
            "wrong one are noise"
        ) from None


def _file_of(source: Any) -> Path | None:
    """Return the file from which data were read."""
    files = getattr(source, "filenames", None) or (getattr(source, "filename", None),)
    if not files[0]:
        return None
    return _with_header(Path(files[0]))


def _with_header(path: Path) -> Path:
    """Return the header beside a file that has one, else the file."""
    ending = _HEADERS.get(path.suffix.lower())
    header = path if ending is None else path.with_suffix(ending)
    return header if header.is_file() else path


def _notes_on_projections(info: Any) -> list[str]:
    """Return a sentence on projections that a file has and that its samples are without, if there are any."""
    missing = [str(projection["desc"]) for projection in info["projs"] if not projection["active"]]
    if not missing:
        return []
    return [f"projections are not applied: {listed(missing)}; apply_proj() of MNE applies them"]


def _person(info: Any) -> str | None:
    """Return the subject that a file names."""
    subject = info["subject_info"]
    name = (subject.get("his_id") or subject.get("id")) if subject else None
    return str(name) if name else None


def _start(raw: Any, path: Path | None) -> datetime | None:
    """Return the date of the first sample of raw data, which a crop moves; None without a date.

    MNE marks every date as UTC. It is UTC in files that say so and in data of no file, else the time of the recorder.
    """
    date = raw.info["meas_date"]
    if not isinstance(date, datetime):
        return None
    start = date.astimezone(UTC) + timedelta(seconds=float(raw.first_time))
    if path is not None and path.suffix.lower() in _EDF:
        if date.date() == NO_DATE:
            return None
        start += timedelta(seconds=fraction_of_start(path))  # which MNE leaves out
    return start if path is None or path.suffix.lower() in _IN_UTC else start.replace(tzinfo=None)


def _float64(values: Any) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def _units(
    path: Path | None, where: str, info: Any, kinds: Sequence[str], picks: Sequence[int]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the unit of each channel, and the factor to it."""
    written = _brainvision_units(path) if path is not None and path.suffix.lower() == ".vhdr" else {}
    units, scales = list[str](), list[float]()
    for pick in picks:
        channel = info["chs"][pick]
        name = str(channel["ch_name"])
        unit, scale = _UNITS.get(int(channel["unit"]), ("", 1.0))
        if int(channel["unit_mul"]) != 0:
            raise UsageError(f"{where}channel {name} has a unit with a multiplier; expected volts: convert it in MNE")
        if not unit and kinds[pick] != _STIMULUS and name in written:
            unit = written[name]
            if unit in _SCALED:  # of type misc without a position
                unit, scale = "uV", 1e6
            elif known(unit) and factor(unit, "V") is not None:
                raise UsageError(
                    f"{where}MNE takes channel {name}, in {unit}, for no voltage; write its unit in the header as "
                    "\N{MICRO SIGN}V, mV or V"
                )
        units.append(unit)
        scales.append(scale)
    return units, np.array(scales)


def _brainvision_units(path: Path) -> dict[str, str]:
    """Return the units that a BrainVision header gives, by channel."""
    units = dict[str, str]()
    with open_regular(path) as binary:
        content = binary.read()
    for line in content.decode("utf-8", errors="replace").splitlines():
        cells = line.partition("=")[2].split(",") if re.match(r"Ch\d+=", line) else []
        if len(cells) > 3:
            units[cells[0].replace(r"\1", ",")] = cells[3].strip()
    return units


def _require_right_markers(path: Path) -> None:
    """Raise a UsageError if a description in a BrainVision marker file has a comma that is not coded.

    MNE exports such descriptions as they are, and reads what follows the comma as the position of the marker.
    """
    with open_regular(path) as binary:
        header = binary.read().decode("utf-8", errors="replace")
    named = re.search(r"^MarkerFile=(.+)$", header, re.MULTILINE)
    markers = path.with_suffix(".vmrk") if named is None else path.parent / named[1].strip()
    if not markers.is_file():
        return
    with open_regular(markers) as binary:
        lines = binary.read().decode("utf-8", errors="replace").splitlines()
    for line in lines:
        cells = line.partition("=")[2].split(",") if re.match(r"Mk\d+=", line) else []
        date = cells[5].strip() if len(cells) > 5 and cells[0] != "New Segment" else ""
        if len(cells) > 6 or (date and len(date) != _DIGITS_OF_A_DATE):
            raise UsageError(
                f"{shorten(markers)}: {line.partition('=')[0]} has a comma in its description, so that MNE would read "
                "a wrong time; write the comma as \\1"
            )


def _annotated(
    raw: Any, signal: NDArray[np.float64], names: Sequence[str], path: Path | None, closes: bool
) -> tuple[list[Event], list[str]]:
    """Return the annotations as intervals in seconds of the data; bad segments become missing in `signal`."""
    rate, samples = float(raw.info["sfreq"]), signal.shape[1]
    events, gaps = list[Event](), 0
    of_some: dict[str, None] = {}
    for annotation in raw.annotations:
        start = float(annotation["onset"]) - float(raw.first_time)
        end = start + float(annotation["duration"])
        text = str(annotation["description"])
        if not _GAPS.match(text):
            is_point = end - start <= _POINT / rate  # one sample, as BrainVision writes events without a duration
            events.append((start, start if is_point else end, text))
            if annotation.get("ch_names"):
                of_some[text] = None
            continue
        begin = max(0, _nearest(start * rate))
        stop = min(samples, max(_nearest(end * rate), begin + 1))
        if begin == 0 and end - start <= 1 / rate:
            continue  # the begin of the recording
        of_channels = set(annotation.get("ch_names", ()) or ())
        rows = [row for row, name in enumerate(names) if not of_channels or name in of_channels]
        signal[rows, begin:stop] = np.nan
        gaps += 1
    notes = [f"{gaps} bad segments and cuts count as missing samples"] if gaps else []
    if of_some:
        notes.append(f"annotations of single channels count for all channels: {listed(of_some)}")
    if not events:
        return [], notes
    placed = Events(events).placed(samples / rate, "MNE" if path is None else shorten(path), closes)
    return placed.intervals, [*notes, *placed.notes]


def _nearest(sample: float) -> int:
    """Return the nearest sample, the later one of two: MNE begins pauses of MFF files half a sample early."""
    return int(np.floor(sample + 0.5 + 1e-6))


def _epochs(
    epochs: Any,
    places: Sequence[int],
    scales: NDArray[np.float64],
    bad: Sequence[int],
    notes: Sequence[str],
    person: str,
    common: dict[str, Any],
) -> Iterator[Recording]:
    """Yield each epoch as a recording."""
    labels = {code: name for name, code in epochs.event_id.items()}
    values = _float64(epochs.get_data(picks=places)) * scales[:, None]
    values[:, bad] = np.nan
    annotated: list[list[tuple[float, float, str]]] = [[]] * len(values)
    if getattr(epochs, "annotations", None) is not None:
        annotated = epochs.get_annotations_per_epoch()
    codes = epochs.events[:, 2].tolist()
    for signal, code, of_epoch in zip(values, codes, annotated, strict=True):
        said = list(notes)
        gaps = sorted({text for _, _, text in of_epoch if _GAPS.match(text)})
        if gaps:
            said.append(f"an epoch lies on {listed(gaps)}: drop it by reject_by_annotation=True of mne.Epochs")
        yield Recording(signal=signal, label=labels.get(code, str(code)), patient=person, notes=said, **common)


def _require_right_reading(path: Path) -> None:
    """Raise a UsageError if MNE is known to read an EDF, BDF, GDF or BrainVision file wrongly."""
    ending = path.suffix.lower()
    if ending == ".vhdr":
        _require_right_markers(path)
    if ending not in (*_EDF, ".gdf"):
        return
    with open_regular(path) as binary:
        start = binary.read(256)
        is_gdf = start[:3] == b"GDF"
        modern = is_gdf and start[3:8].strip() >= b"1.9"
        try:
            many = (
                int.from_bytes(start[252:254] if modern else start[252:256], "little") if is_gdf else int(start[252:])
            )
        except ValueError:
            return  # MNE refuses it
        header = binary.read(256 * many) if many < 2**15 else b""
    remedy = "read it by from_edf" if ending in _EDF else "export it as EDF, and read it by from_edf"
    names = [header[16 * n : 16 * n + 16].decode("latin-1").strip("\0 ") for n in range(many)]
    signals = [n for n, name in enumerate(names) if not name.endswith("DF Annotations")]
    if start[192:197] in (b"EDF+D", b"BDF+D"):
        raise UsageError(f"{shorten(path)}: is interrupted, and MNE reads it as if it were not; {remedy}")
    size = 4 if is_gdf else 8
    at = _SIGNAL_HEADER * many
    counts = {header[at + size * n : at + size * n + size] for n in signals}
    if len(counts) > 1:
        raise UsageError(f"{shorten(path)}: has channels of several rates, which MNE resamples with ringing; {remedy}")
    for n in signals:
        if looks_like_marker(names[n]):
            continue
        if modern:
            code = int.from_bytes(header[102 * many + 2 * n : 102 * many + 2 * n + 2], "little")
            right = code in (_MICROVOLT, _MILLIVOLT)
            unit = f"the unit of code {code}"
        else:
            unit = header[96 * many + 8 * n : 96 * many + 8 * n + 8].decode("latin-1").strip("\0 ")
            right = unit == "uV" if is_gdf else unit in _RIGHT_UNITS
        if not right:
            raise UsageError(
                f"{shorten(path)}: signal {names[n]} is in {unit or 'no unit'}, which MNE takes for V; {remedy}"
            )
