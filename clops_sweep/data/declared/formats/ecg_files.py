"""`from_ecg`: files of electrocardiographs, decoded by ecgdatakit.

ecgdatakit reads one group of simultaneous leads per file, rounds rates to whole numbers and takes each padding value
as missing. A file with several groups is therefore split into files of one group each, which ecgdatakit decodes; start
times and exact rates are read here.
"""

from __future__ import annotations

import copy
import io
import json
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared.clocks import Moment
from clops_sweep.data.declared.formats.ecg_notes import no_start, notes_on_ishne, notes_on_leads, notes_on_scp
from clops_sweep.data.declared.formats.limb_leads import with_limb_leads
from clops_sweep.data.declared.formats.readers import opened
from clops_sweep.data.declared.one_by_one import Recording
from clops_sweep.data.declared.recording_checks import is_number
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.library_warnings import Harmless
from clops_sweep.errors import UsageError, shown

_ELSEWHERE = {"EDF/EDF+": "from_edf", "WFDB": "Recordings.from_wfdb"}
"""Readers of formats that keep more than ecgdatakit does: exact rates, interruptions and annotations."""

_HARMLESS = (
    Harmless(r"Sampling rate .* is not an integer; rounded", "the exact rate is read from the metadata"),
    Harmless(r"Leads .* contain raw ADC samples", "leads without a scale are refused by their name"),
    Harmless(r"Leads .* are not in a voltage unit", "each lead keeps its own unit"),
    Harmless(
        r"Additional median waveform ignored|\d+ representative beat series found"
        r"|\d+ sequence sets in the median series|Unrecognised sequences ignored in the median series"
        r"|SCP-ECG: .*median beats (skipped|left unscaled)|Mortara TYPICAL_CYCLE"
        r"|Sierra XML: (<repbeats>|representative beats)",
        "averaged beats are not read",
    ),
    Harmless(r"Unit .* of .* not recognised; value ignored", "measurements are not read"),
    Harmless(r"MFER: invalid birth date", "dates of birth are not read"),
    Harmless(r"MFER: invalid measurement time|Kardia recordedAt", "the recording then has no start"),
    Harmless(r"MFER: no sampling interval", "the standard defines 1000 Hz for a file that gives none"),
    Harmless(r"Kardia data\..* has missing samples", "they stay missing"),
    Harmless(
        r"Invalid value for VR|The value length|Value .* is not valid for elements with a VR",
        "pydicom keeps a value of another form; text that is no number raises an error",
    ),
)
"""Warnings of ecgdatakit and pydicom that change no sample, lead, rate or person."""

_DATES, _ZONED_DATES = "dates", "dates with a time zone"
"""Clocks of groups whose times are seconds since 1970."""
_OF_HEADER = (
    "alivecor_kardia", "ge_muse_xml", "hl7_aecg", "ishne_holter", "mfer", "mortara_el250", "scp_ecg", "sierra_xml",
)  # fmt: skip
"""Formats whose header gives the start; ecgdatakit takes that of others from the file's name or drops its zone."""
_DIGITS_OF_STAMP = len("20200101120000")
_LONGEST_BREAK = 3600.0
_FAULT_OF_ISHNE = -32768
"""Sample that the standard reserves for a fault of the lead."""
_BAD_STATUS = ("DISCONNECTED", "INVALID")
_UNUSABLE_STATUS = ("TEST DATA", "UNCALIBRATED")


@dataclass(frozen=True, eq=False)
class _Lead:
    """Samples of a lead at `rate` in Hz, the first of them `start` seconds after that of its group."""

    name: str
    unit: str
    samples: NDArray[np.float64]
    rate: float
    start: float = 0.0


@dataclass(frozen=True, eq=False)
class _Group:
    """Leads that were recorded at once, as a file of its own.

    Attributes:
        series: number of the series, multiplex group or waveform in the file, from 1.
        exam: groups of one exam may hold the same samples of a lead twice.
        clock: what `start` counts from; times of different clocks cannot be compared.
        start: time of the first sample in seconds; None if the file does not give it.
        content: the file that holds this group alone; None for the file itself.
        rate: rate in Hz, where ecgdatakit does not give it exactly.
        skews: seconds by which each lead begins later.
        states: what the file says about each lead.
        unpadded: `content` without its padding value, if it names one.
        leads: the leads, once they are read.
    """

    series: int
    exam: int = 0
    clock: str = ""
    start: float | None = None
    content: bytes | None = None
    rate: float | None = None
    skews: tuple[float, ...] = ()
    states: tuple[str, ...] = ()
    unpadded: bytes | None = None
    leads: list[_Lead] = field(default_factory=list)


@named_arguments
def from_ecg(path: str | PathLike[str], *, series: int | None = None, derive_leads: bool = False) -> Recording:
    """Return the recording of a file of an electrocardiograph, with the person that it names.

    SCP-ECG, GE MUSE XML, Philips Sierra XML, HL7 aECG, ISHNE, DICOM and others, by ecgdatakit. Voltages are in mV.
    Sequence sets, multiplex groups and rhythm series lie side by side by their start times: a lead has missing samples
    before it begins and after it ends. `start` is the date of the first sample, with a time zone if the file gives one.

    Args:
        path: the file.
        series: number, from 1, of the only rhythm series, multiplex group or waveform to read.
        derive_leads: add III, aVR, aVL and aVF by their definition from I and II where they lack.

    Raises:
        UsageError: the file is invalid, has no scale or a wrong checksum, or holds series that have no common time.
    """
    path = Path(path)
    name = _format(path)
    all_groups = _groups(path, name)
    groups = [group for group in all_groups if series is None or group.series == series]
    if not groups:
        raise UsageError(f"{shorten(path)}: has no series {shown(series)}; count from 1")
    patient = None
    stated = None
    notes = list[str]()
    read = []
    for group in groups:
        record = _record(path, group.content)
        if len(all_groups) == 1 and record.source_format in _OF_HEADER:
            stated = record.recording.date
        leads = _leads(path, record, group)
        notes += _notes(record)
        notes += notes_on_leads([lead.name for lead in leads])
        patient = patient or record.patient.patient_id or None
        if leads:
            read.append(replace(group, leads=leads))
    if not read:
        raise UsageError(f"{shorten(path)}: holds only averaged beats, no rhythm; leave it out")
    channels = _side_by_side(path, read)
    start = _start(read, stated)
    notes += _notes_on_header(path, name, start)
    recording = Recording(
        signal=[channel.samples for channel in channels],
        sampling_rate=[channel.rate for channel in channels],
        channels=[channel.name for channel in channels],
        units=[channel.unit for channel in channels],
        patient=patient,
        start=start,
        notes=list(dict.fromkeys(notes)),
    )
    if {channel.unit for channel in channels} == {"mV"}:
        recording = replace(recording, units="mV")
    return with_limb_leads(recording, f"{shorten(path)}: ") if derive_leads else recording


def _by_library(path: Path, read: Callable[[Any], Any]) -> Any:
    return opened(path, "ECG file", "ecgdatakit", "ecg", read, _HARMLESS)


def _format(path: Path) -> str:
    """Return the name of the format."""
    detected = _by_library(path, lambda library: library.FileParser.detect_format(path))
    name = "" if detected is None else str(detected["name"])
    if name in _ELSEWHERE:
        raise UsageError(f"{shorten(path)}: is {name}; read it by {_ELSEWHERE[name]}")
    return name


def _groups(path: Path, name: str) -> list[_Group]:
    """Return the groups of leads of a file."""
    if name == "DICOM Waveform":
        return _by_library(path, lambda _: list(_dicom_groups(path))) or [_Group(1)]
    split = {"HL7 aECG": _aecg_groups, "GE MUSE XML": _muse_groups}.get(name)
    root = None if split is None else _xml(path)
    groups = [] if split is None or root is None else split(path, root)
    if len(groups) == 1:  # the file itself: errors of ecgdatakit name it
        return [replace(groups[0], content=None)]
    return groups or [_Group(1, rate=_stated_rate(path, name))]


def _record(path: Path, content: bytes | None) -> Any:
    """Return what ecgdatakit reads from a file, or from other content of it."""
    if content is None:
        return _by_library(path, lambda library: library.FileParser.parse(path, units="mV"))
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / f"part{path.suffix}"
        part.write_bytes(content)

        def read(library: Any) -> Any:
            try:
                return library.FileParser.parse(part, units="mV")
            except library.exceptions.ECGDataKitError as error:
                raise ValueError(str(error).replace(str(part), path.name).replace(part.name, path.name)) from None

        return _by_library(path, read)


def _leads(path: Path, record: Any, group: _Group) -> list[_Lead]:
    """Return the leads of a group as ecgdatakit reads them, with exact rates and start times."""
    values = [lead.samples for lead in record.leads]
    if group.unpadded is not None:
        unpadded = _record(path, group.unpadded)
        values = [_padded(lead.samples, raw.samples) for lead, raw in zip(record.leads, unpadded.leads, strict=True)]
    leads = []
    for number, lead in enumerate(record.leads):
        where = f"{shorten(path)}: lead {lead.label}"
        if lead.is_raw:
            raise UsageError(f"{where} has no scale to mV; leave the file out")
        if lead.annotations.get("LeadTimeOffset"):
            raise UsageError(f"{where} has a time offset without a unit (LeadTimeOffset); leave the file out")
        state = group.states[number] if number < len(group.states) else ""
        if state in _UNUSABLE_STATUS:
            raise UsageError(f"{where} is marked as {state}; leave the file out")
        samples = np.asarray(values[number], np.float64)
        if record.source_format == "ishne_holter":
            samples = _without_faults(record, lead, number, samples)
        if state in _BAD_STATUS or lead.annotations.get("LeadOff", "").upper() == "TRUE":
            samples = np.full(len(samples), np.nan)
        rate = _rate(record, number) if group.rate is None else group.rate
        start = (int(lead.annotations.get("start_sample", 1)) - 1) / rate
        if number < len(group.skews):
            start += group.skews[number]
        leads.append(_Lead(lead.label, lead.units, samples, rate, start))
    return leads


def _without_faults(record: Any, lead: Any, number: int, samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the samples of a lead of an ISHNE file, those that the standard reserves for a fault as missing.

    ecgdatakit counts these and returns them as voltages of the lowest integer, such as -81.92 mV.
    """
    if not record.raw_metadata["lead_fault_samples"][number]:
        return samples
    steps_per_mv = 1e6 / lead.adc_resolution
    is_fault = np.rint(samples * steps_per_mv) == _FAULT_OF_ISHNE
    return np.where(is_fault, np.nan, samples)


def _notes(record: Any) -> list[str]:
    """Return a note if a Holter file in ISHNE holds fewer samples than its header counts.

    Recorders count samples per lead or of all leads, or write the most that they can hold, so this proves no damage.
    """
    if record.source_format != "ishne_holter":
        return []
    counted, held = record.raw_metadata["ecg_size"], record.raw_metadata["samples_per_lead"]
    if counted in (held, held * len(record.leads)) or counted < held:
        return []
    return [f"holds {held:,} samples per lead, and its header counts {counted:,}: it may be cut short"]


def _notes_on_header(path: Path, name: str, start: datetime | None) -> list[str]:
    """Return notes on a file whose date is invalid, whose subject has no identifier, or that holds more than it counts.

    Args:
        path: the file.
        name: the name of its format.
        start: the start of the recording as read.
    """
    if name.startswith("SCP"):
        return notes_on_scp(path, start)
    if name.startswith("ISHNE"):
        return notes_on_ishne(path, start)
    if name == "DICOM Waveform":
        return _by_library(path, lambda _: no_start(_stamp_of_dicom(path), start))  # type: ignore[no-any-return]
    root = _xml(path) if name == "HL7 aECG" else None
    if root is None:
        return []
    notes = no_start(_stamp_of_aecg(root), start)
    subject = root.find(
        "{*}componentOf/{*}timepointEvent/{*}componentOf/{*}subjectAssignment/{*}subject/{*}trialSubject"
    )
    identifier = None if subject is None else subject.find("{*}id")
    if _attribute(identifier, "root") and not _attribute(identifier, "extension"):
        notes.append("the id of its subject has a root and no extension, so it names no person")
    return notes


def _stamp_of_aecg(root: ET.Element) -> str:
    """Return the date of an HL7 aECG file as written; empty without one."""
    for element in root.iterfind(".//{*}sequence"):
        if _attribute(element.find("{*}code"), "code").upper() == "TIME_ABSOLUTE":
            return _attribute(element.find("{*}value/{*}head"), "value")
    low = root.find("{*}effectiveTime/{*}low")
    return _attribute(low, "value")


def _stamp_of_dicom(path: Path) -> str:
    """Return the date of a DICOM file as written; empty without one, or if offsets do not count from it."""
    import pydicom

    whole = pydicom.dcmread(path, stop_before_pixels=True)
    if whole.get("SynchronizationTrigger") in ("SOURCE", "EXTERNAL"):
        return ""
    return str(whole.get("AcquisitionDateTime") or "").strip()


def _rate(record: Any, number: int) -> float:
    """Return the exact rate of a lead in Hz; `Lead.sampling_rate` is rounded."""
    metadata = record.raw_metadata
    if record.source_format == "hl7_aecg":
        return _plain(metadata["rhythm_time"]["sampling_rate_exact"])
    if record.source_format == "scp_ecg":
        return 1e6 / float(metadata["rhythm_sample_interval_us"])
    if record.source_format == "mfer":
        return _plain(metadata["sampling_rates"][number])
    return float(record.leads[number].sampling_rate)


def _plain(rate: float) -> float:
    """Return a rate without the error of binary fractions: 255.99999999999997 is 256."""
    rounded = round(rate, 6)
    return rounded if abs(rounded - rate) <= 1e-12 * rate else rate


def _padded(marked: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the samples of a channel whose padding is missing.

    A padding value within the range of the signal, such as 0, is also what a sample may be. There only runs at the
    ends are missing, of three samples at least and more than twice as long as any such run within the signal.

    Args:
        marked: samples, NaN where they equal the padding value.
        values: samples as stored.
    """
    padding = np.isnan(marked)
    rest = values[~padding]
    if not padding.any() or not rest.size:
        return marked
    value = values[padding][0]
    if not rest.min() <= value <= rest.max():
        return marked
    first, last = np.flatnonzero(~padding)[[0, -1]]
    within = padding[first : last + 1]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], within.astype(np.int8), [0]])))
    usual = max([0, *(edges[1::2] - edges[::2]).tolist()])
    samples = values.copy()
    shortest = max(3, 2 * usual + 1)
    if first >= shortest:
        samples[:first] = np.nan
    if len(values) - last - 1 >= shortest:
        samples[last + 1 :] = np.nan
    return samples


def _side_by_side(path: Path, groups: Sequence[_Group]) -> list[_Lead]:
    """Return leads of groups on one axis of time, missing where they were not recorded.

    Raises:
        UsageError: start times lack or cannot be compared, groups lie far apart, or a lead is there twice at a time.
    """
    if len(groups) > 1:
        _require_times(path, groups)
    first = min(lead.start + (group.start or 0.0) for group in groups for lead in group.leads)
    end = 0.0
    placed: dict[str, list[tuple[int, _Lead, _Group]]] = {}
    for group in groups:
        for lead in group.leads:
            begin = round((lead.start + (group.start or 0.0) - first) * lead.rate)
            end = max(end, (begin + len(lead.samples)) / lead.rate)
            placed.setdefault(lead.name, []).append((begin, lead, group))
    channels = []
    for name, parts in placed.items():
        _, one, _ = parts[0]
        samples = np.full(round(end * one.rate), np.nan)
        taken: list[tuple[int, slice]] = []
        for begin, lead, group in parts:
            if (lead.rate, lead.unit) != (one.rate, one.unit):
                raise UsageError(f"{shorten(path)}: lead {name} has several rates or units; {_ONE_EACH}")
            span = slice(begin, begin + len(lead.samples))
            held = samples[span]
            is_held = ~np.isnan(held)
            is_given = ~np.isnan(lead.samples)
            differs = (held != lead.samples)[is_held & is_given].any()
            exams = [exam for exam, other in taken if other.start < span.stop and span.start < other.stop]
            if differs or any(exam != group.exam for exam in exams):
                raise UsageError(f"{shorten(path)}: holds lead {name} twice at the same time; {_ONE_EACH}")
            held[is_given] = lead.samples[is_given]
            taken.append((group.exam, span))
        channels.append(replace(one, samples=samples, start=0.0))
    return channels


def _start(groups: Sequence[_Group], stated: datetime | None) -> datetime | None:
    """Return the date of the first sample; None if the file does not give it.

    Args:
        groups: the groups of leads.
        stated: the date from which times count that are no dates.
    """
    first = min(lead.start + (group.start or 0.0) for group in groups for lead in group.leads)
    clock = groups[0].clock
    if clock in (_DATES, _ZONED_DATES) and groups[0].start is not None:
        stated = datetime(1970, 1, 1, tzinfo=UTC if clock == _ZONED_DATES else None)
    return None if stated is None else stated + timedelta(seconds=first)


_ONE_EACH = "read one series by from_ecg(..., series=1), or return a recording for each"


def _require_times(path: Path, groups: Sequence[_Group]) -> None:
    if any(group.start is None for group in groups) or len({group.clock for group in groups}) > 1:
        raise UsageError(
            f"{shorten(path)}: does not say by one clock when its {len(groups)} groups of leads begin; {_ONE_EACH}"
        )
    spans = []
    for group in groups:
        start = group.start or 0.0
        spans.append((start, start + max(lead.start + len(lead.samples) / lead.rate for lead in group.leads)))
    latest = -np.inf
    for start, end in sorted(spans):
        if start - latest > _LONGEST_BREAK and latest != -np.inf:
            raise UsageError(f"{shorten(path)}: its groups of leads lie {start - latest:,.0f} s apart; {_ONE_EACH}")
        latest = max(latest, end)


def _dicom_groups(path: Path) -> Iterator[_Group]:
    """Yield the multiplex groups of a DICOM file."""
    import pydicom

    whole = pydicom.dcmread(path)
    begin = _acquired(whole)
    sequence = list(whole.get("WaveformSequence") or [])
    for number, group in enumerate(sequence, 1):
        if not (group.get("NumberOfWaveformChannels") and group.get("NumberOfWaveformSamples")):
            continue
        rate = float(group.get("SamplingFrequency") or 0)
        definitions = list(group.get("ChannelDefinitionSequence") or [])
        offset = group.get("MultiplexGroupTimeOffset")
        is_alone = len(sequence) == 1
        start = (0.0 if is_alone else None) if offset in (None, "") else float(offset) / 1000
        clock = ""
        if begin is not None and start is not None:
            clock, start = _clock(begin), begin.seconds + start
        unpadded = None
        if "WaveformPaddingValue" in group:
            bare = copy.deepcopy(group)
            del bare.WaveformPaddingValue
            unpadded = _of_group(whole, bare)
        yield _Group(
            number,
            clock=clock,
            start=start,
            content=_of_group(whole, group),
            rate=rate or None,
            skews=tuple(_skew(channel, rate) for channel in definitions),
            states=tuple(_state(channel) for channel in definitions),
            unpadded=unpadded,
        )


def _acquired(whole: Any) -> Moment | None:
    """Return when the acquisition of a DICOM file began, from which the offsets of its groups count; None if unknown.

    Offsets count from a trigger instead where the file says so (DICOM PS3.3, C.10.9.1.1).
    """
    if whole.get("SynchronizationTrigger") in ("SOURCE", "EXTERNAL"):
        return None
    text = str(whole.get("AcquisitionDateTime") or "").strip()
    begin = _moment(text)
    zone = str(whole.get("TimezoneOffsetFromUTC") or "").strip()
    return begin if begin is None or begin.zoned else _moment(text + zone)


def _of_group(whole: Any, group: Any) -> bytes:
    """Return a DICOM file with one multiplex group, of the same person."""
    import pydicom

    part = pydicom.Dataset()
    part.file_meta = whole.file_meta
    part.preamble = b"\0" * 128
    for keyword in ("SpecificCharacterSet", "SOPClassUID", "SOPInstanceUID", "PatientID", "PatientName"):
        if keyword in whole:
            part[keyword] = whole[keyword]
    part.WaveformSequence = pydicom.Sequence([group])
    content = io.BytesIO()
    part.save_as(content)
    return content.getvalue()


def _skew(channel: Any, rate: float) -> float:
    """Return the seconds by which a channel begins after its group."""
    seconds = channel.get("ChannelTimeSkew")
    if seconds not in (None, ""):
        return float(seconds)
    samples = channel.get("ChannelSampleSkew")
    return 0.0 if samples in (None, "") or not rate else float(samples) / rate


def _state(channel: Any) -> str:
    """Return the worst that a DICOM file says about a channel."""
    given = channel.get("ChannelStatus") or ""
    states = [given] if isinstance(given, str) else list(given)
    for state in (*_UNUSABLE_STATUS, *_BAD_STATUS):
        if state in states:
            return state
    return ""


def _xml(path: Path) -> ET.Element | None:
    """Return the root of an XML file; None for one that ecgdatakit alone can read, as it repairs wrong encodings."""

    def read(library: Any) -> ET.Element | None:
        try:
            return library.fromstring(path.read_bytes())  # type: ignore[no-any-return]
        except ET.ParseError:
            return None

    root: ET.Element | None = opened(path, "ECG file", "defusedxml.ElementTree", "ecg", read)
    return root


def _local(element: ET.Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _attribute(element: ET.Element | None, name: str) -> str:
    return "" if element is None else element.get(name, "").strip()


def _alone(root: ET.Element, what: str, kept: ET.Element | None) -> ET.Element:
    """Return a copy of a root whose children of a name are replaced by one element."""
    bare = ET.Element(root.tag, root.attrib)
    bare.extend(child for child in root if _local(child) != what)
    if kept is not None:
        bare.append(kept)
    return bare


def _aecg_groups(path: Path, root: ET.Element) -> list[_Group]:
    """Return the sequence sets of the rhythm series of an HL7 aECG file."""
    groups = []
    number = 0
    for component in root.iterfind("{*}component"):
        for series in component.iterfind("{*}series"):
            code = series.find("{*}code")
            if _attribute(code, "code").upper() == "REPRESENTATIVE_BEAT":
                continue
            number += 1
            begins = series.find("{*}effectiveTime/{*}low")
            for inner in series.iterfind("{*}component"):
                if inner.find("{*}sequenceSet") is None:
                    continue
                _require_numbers(path, inner)
                part = _alone(series, "component", inner)
                holder = ET.Element(component.tag)
                holder.append(part)
                clock, start = _aecg_start(inner, f"series {number}", _attribute(begins, "value"))
                content = ET.tostring(_alone(root, "component", holder), "utf-8", xml_declaration=True)
                groups.append(_Group(number, number, clock, start, content))
    return groups


def _require_numbers(path: Path, component: ET.Element) -> None:
    """Raise a UsageError if a scale or an origin of a sequence set is no number: ecgdatakit takes 1 and 0 instead."""
    for sequence in component.iterfind("{*}sequenceSet/{*}component/{*}sequence"):
        for what in ("scale", "origin"):
            element = sequence.find(f"{{*}}value/{{*}}{what}")
            number = _attribute(element, "value")
            is_absent = element is None or (what == "origin" and not number)
            if is_absent or is_number(number):
                continue
            code = _attribute(sequence.find("{*}code"), "code")
            raise UsageError(f"{shorten(path)}: {code} has the {what} {shown(number)}; expected a number such as 2.5")


def _aecg_start(component: ET.Element, series: str, begins: str) -> tuple[str, float | None]:
    """Return the clock of a sequence set, and its start by it in seconds."""
    for sequence in component.iterfind("{*}sequenceSet/{*}component/{*}sequence"):
        code = _attribute(sequence.find("{*}code"), "code").upper()
        head = sequence.find("{*}value/{*}head")
        if code == "TIME_ABSOLUTE":
            at = _moment(_attribute(head, "value"))
            return (_DATES, None) if at is None else (_clock(at), at.seconds)
        if code == "TIME_RELATIVE":
            unit = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "": 1.0}.get(_attribute(head, "unit"))
            offset = None if unit is None else float(_attribute(head, "value") or 0) * unit
            at = _moment(begins)
            if offset is None or at is None:
                return series, offset
            return _clock(at), at.seconds + offset
    return series, None


def _clock(at: Moment) -> str:
    return _ZONED_DATES if at.zoned else _DATES


def _moment(stamp: str) -> Moment | None:
    """Return the date of a stamp of HL7 or DICOM such as 20200101120000.500+0100; None if it has no seconds.

    The zone may be Z, as in ISO 8601.
    """
    if stamp.endswith("Z"):
        stamp = f"{stamp[:-1]}+0000"
    zone = max(stamp.rfind("+"), stamp.rfind("-"))
    digits, offset = (stamp, "") if zone < 0 else (stamp[:zone], stamp[zone:])
    whole, _, fraction = digits.partition(".")
    if len(whole) != _DIGITS_OF_STAMP:  # strptime reads 202001011234 as 12:03:04
        return None
    try:
        date = datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        if offset:
            sign = -1 if offset[0] == "-" else 1
            date -= sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[3:5] or 0))
        return Moment(date.timestamp() + (float(f"0.{fraction}") if fraction else 0.0), bool(offset))
    except ValueError:
        return None


def _muse_groups(path: Path, root: ET.Element) -> list[_Group]:
    """Return the waveforms of a GE MUSE file that are not averaged beats; they have no times."""
    groups: list[_Group] = []
    for waveform in root.iterfind("Waveform"):
        kind = (waveform.findtext("WaveformType") or "Rhythm").strip()
        if kind.lower() == "median":
            continue
        number = len(groups) + 1
        if kind.lower() != "rhythm":
            raise UsageError(f"{shorten(path)}: waveform {number} is of type {shown(kind)}; expected Rhythm or Median")
        rate = _decimal(waveform.findtext("SampleBase"))
        exponent = _decimal(waveform.findtext("SampleExponent")) or Fraction(0)
        exact = None if not rate else float(rate * Fraction(10) ** int(exponent))
        content = ET.tostring(_alone(root, "Waveform", waveform), "utf-8", xml_declaration=True)
        groups.append(_Group(number, content=content, rate=exact))
    return groups


def _decimal(text: str | None) -> Fraction | None:
    try:
        return Fraction((text or "").strip())
    except (ValueError, ZeroDivisionError):
        return None


def _stated_rate(path: Path, name: str) -> float | None:
    """Return the rate that a file of Philips, Mortara or AliveCor gives, if ecgdatakit rounds it.

    Raises:
        UsageError: a rate is no whole number and the file is of Philips, whose durations need one, or has several.
    """
    stated: list[Any] = []
    if name == "AliveCor Kardia JSON":
        block = json.loads(path.read_bytes()).get("data", {}).get("raw", {})
        stated = [block.get("frequency")]
    elif name.startswith(("Philips", "Mortara")):
        root = _xml(path)
        elements = [] if root is None else list(root.iter())
        waveforms = [element for element in elements if _local(element) == "parsedwaveforms"]
        if len(waveforms) > 1:
            raise UsageError(f"{shorten(path)}: has {len(waveforms)} waveforms of which one can be read; leave it out")
        stated = [element.get("samplespersecond") for element in waveforms]
        stated += [element.get("SAMPLE_FREQ") for element in elements if _local(element) == "CHANNEL"]
        stated += [element.text for element in elements if _local(element) == "samplingrate"]
    decimals = [_decimal(str(text)) for text in stated]
    rates = {rate for rate in decimals if rate}
    if all(rate.denominator == 1 for rate in rates):
        return None
    if len(rates) > 1 or name.startswith("Philips"):
        raise UsageError(f"{shorten(path)}: has a rate that is no whole number; export it as HL7 aECG or DICOM")
    return float(rates.pop())
