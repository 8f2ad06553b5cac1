"""Small valid files of electrocardiographs, written without the library that the product reads them with."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

Leads = Sequence[tuple[str, NDArray[Any]]]


def write_aecg(
    path: Path, series: Sequence[Sequence[tuple[str, Leads]]], increment: str = "0.002", unit: str = "s"
) -> None:
    """Write an HL7 aECG file in steps of 2.5 uV; a series has sequence sets of a head and leads."""
    written = ""
    for sets in series:
        written += '<component><series><code code="RHYTHM"/>'
        for head, leads in sets:
            code = "TIME_ABSOLUTE" if len(head) >= 14 else "TIME_RELATIVE"
            written += (
                f'<component><sequenceSet><component><sequence><code code="{code}"/><value xsi:type="GLIST_TS">'
                f'<head value="{head}"/><increment value="{increment}" unit="{unit}"/></value></sequence></component>'
            )
            for lead, samples in leads:
                written += (
                    f'<component><sequence><code code="MDC_ECG_LEAD_{lead}"/><value xsi:type="SLIST_PQ">'
                    '<origin value="0" unit="uV"/><scale value="2.5" unit="uV"/>'
                    f"<digits>{' '.join(map(str, samples))}</digits></value></sequence></component>"
                )
            written += "</sequenceSet></component>"
        written += "</series></component>"
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><AnnotatedECG xmlns="urn:hl7-org:v3" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><id root="1.2.3"/><componentOf><timepointEvent>'
        "<componentOf><subjectAssignment><subject><trialSubject><id extension='p7'/></trialSubject></subject>"
        f"</subjectAssignment></componentOf></timepointEvent></componentOf>{written}</AnnotatedECG>"
    )


def write_muse(
    path: Path,
    waveforms: Sequence[tuple[str, Leads]],
    rate: tuple[str, str] = ("500", "0"),
    more: str = "",
    damaged: bool = False,
    begin: datetime | None = None,
) -> None:
    """Write a GE MUSE XML file in steps of 4.88 uV; a waveform has a type and leads."""
    test = ""
    if begin is not None:
        test = f"<AcquisitionTime>{begin:%H:%M:%S}</AcquisitionTime><AcquisitionDate>{begin:%m-%d-%Y}</AcquisitionDate>"
    written = ""
    for kind, leads in waveforms:
        written += f"<Waveform><WaveformType>{kind}</WaveformType><SampleBase>{rate[0]}</SampleBase>"
        written += f"<SampleExponent>{rate[1]}</SampleExponent>"
        for lead, samples in leads:
            data = samples.astype("<i2").tobytes()
            crc = zlib.crc32(data) ^ damaged
            written += (
                f"<LeadData><LeadByteCountTotal>{len(data)}</LeadByteCountTotal><LeadAmplitudeUnitsPerBit>4.88"
                "</LeadAmplitudeUnitsPerBit><LeadAmplitudeUnits>MICROVOLTS</LeadAmplitudeUnits>"
                f"<LeadID>{lead}</LeadID><LeadSampleSize>2</LeadSampleSize><LeadDataCRC32>{crc}</LeadDataCRC32>{more}"
                f"<WaveFormData>{base64.b64encode(data).decode()}</WaveFormData></LeadData>"
            )
        written += "</Waveform>"
    path.write_text(
        f'<?xml version="1.0"?><RestingECG><TestDemographics>{test}</TestDemographics>{written}</RestingECG>'
    )


def write_scp(
    path: Path,
    leads: Sequence[tuple[int, int, NDArray[Any]]],
    microseconds: int = 2000,
    begin: datetime | None = None,
    ends: Sequence[int] | None = None,
) -> None:
    """Write an SCP-ECG file in steps of 2.5 uV; a lead has its code, its first sample (from 1) and samples.

    `ends` are the last samples of the leads as the header gives them; by default all are counted.
    """

    def section(number: int, body: bytes) -> bytes:
        head = struct.pack("<HIBB6s", number, 16 + len(body), 20, 20, b"SCPECG" if not number else b"") + body
        return struct.pack("<H", binascii.crc_hqx(head, 0xFFFF)) + head

    data = [samples.astype("<i2").tobytes() for _, _, samples in leads]
    lasts = [first + len(each) - 1 for _, first, each in leads] if ends is None else ends
    listed = b"".join(
        struct.pack("<IIB", first, last, code) for (code, first, _), last in zip(leads, lasts, strict=True)
    )
    defined = section(3, bytes([len(leads), 0]) + listed)
    sizes = [len(each) for each in data]
    rhythm = section(6, struct.pack(f"<HHBB{len(leads)}H", 2500, microseconds, 0, 0, *sizes) + b"".join(data))
    sections = {3: defined, 6: rhythm}
    if begin is not None:
        sections = {1: section(1, _scp_date(begin)), **sections}
    places, end = {0: (136, 7)}, 143
    for number, content in sections.items():
        places[number] = (len(content), end)
        end += len(content)
    pointers = section(0, b"".join(struct.pack("<HII", n, *places.get(n, (0, 0))) for n in range(12)))
    whole = struct.pack("<I", end - 1) + pointers + b"".join(sections.values())
    path.write_bytes(struct.pack("<H", binascii.crc_hqx(whole, 0xFFFF)) + whole)


def with_scp_checksums(whole: bytes) -> bytes:
    """Return an SCP-ECG file with the checksums of its content, of section 1 and the file."""
    changed = bytearray(whole)
    length, first = struct.unpack_from("<II", whole, 6 + 16 + 10 + 2)
    section = slice(first - 1 + 2, first - 1 + length)
    struct.pack_into("<H", changed, first - 1, binascii.crc_hqx(bytes(changed[section]), 0xFFFF))
    struct.pack_into("<H", changed, 0, binascii.crc_hqx(bytes(changed[2:]), 0xFFFF))
    return bytes(changed)


def _scp_date(begin: datetime) -> bytes:
    """Return the tags of section 1 of an SCP-ECG file: date, time, time zone if there is one, and the end."""
    day = struct.pack("<BHHBB", 25, 4, begin.year, begin.month, begin.day)
    tags = day + struct.pack("<BHBBB", 26, 3, begin.hour, begin.minute, begin.second)
    offset = begin.utcoffset()
    if offset is not None:
        tags += struct.pack("<BHhh", 34, 4, int(offset.total_seconds() // 60), 0)
    tags += struct.pack("<BH", 255, 0)
    return tags + bytes(len(tags) % 2)


def _code(value: str, scheme: str, meaning: str) -> Dataset:
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, scheme, meaning
    return item


def dicom_group(leads: Leads, rate: str = "500", offset: str | None = "0") -> Dataset:
    """Return a multiplex group of 16-bit samples in steps of 2.5 uV."""
    group = Dataset()
    if offset is not None:
        group.MultiplexGroupTimeOffset = offset
    group.WaveformOriginality = "ORIGINAL"
    group.NumberOfWaveformChannels, group.NumberOfWaveformSamples = len(leads), len(leads[0][1])
    group.SamplingFrequency, group.WaveformBitsAllocated, group.WaveformSampleInterpretation = rate, 16, "SS"
    group.ChannelDefinitionSequence = []
    for lead, _ in leads:
        channel = Dataset()
        channel.ChannelSourceSequence = [_code(f"MDC_ECG_LEAD_{lead}", "MDC", f"Lead {lead}")]
        channel.ChannelSensitivity, channel.ChannelSensitivityCorrectionFactor, channel.ChannelBaseline = 2.5, 1, 0
        channel.ChannelSensitivityUnitsSequence = [_code("uV", "UCUM", "microvolt")]
        channel.WaveformBitsStored = 16
        group.ChannelDefinitionSequence.append(channel)
    group.add_new(0x54001010, "OW", np.stack([samples for _, samples in leads], 1).astype("<i2").tobytes())
    return group


def write_dicom(path: Path, groups: Sequence[Dataset], acquired: str = "", zone: str = "") -> Dataset:
    """Write a DICOM file of multiplex groups; return what pydicom reads from it."""
    file = Dataset()
    file.SOPClassUID, file.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.9.1.1", generate_uid()
    file.PatientID, file.PatientName, file.Modality = "p7", "Nobody", "ECG"
    if acquired:
        file.AcquisitionDateTime = acquired
    if zone:
        file.TimezoneOffsetFromUTC = zone
    file.WaveformSequence = list(groups)
    file.file_meta = FileMetaDataset()
    file.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID
    file.save_as(path, enforce_file_format=True)
    return pydicom.dcmread(path)
