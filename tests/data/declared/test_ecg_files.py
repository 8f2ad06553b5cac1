"""`from_ecg`: groups of leads, start times, exact rates, padding and derived leads, against samples as written."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import edfio
import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file

from clops_sweep import Recording, from_ecg, from_edf, with_limb_leads
from clops_sweep.errors import UsageError
from tests.data.ecg_writers import (
    Leads,
    dicom_group,
    with_scp_checksums,
    write_aecg,
    write_dicom,
    write_muse,
    write_scp,
)

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
X = np.random.default_rng(0).integers(-300, 300, (12, 2000))


def _leads(numbers: range | list[int], first: int = 0, last: int | None = None) -> Leads:
    return [(LEADS[number].upper(), X[number, first:last]) for number in numbers]


def _check(found: Recording, numbers: range | list[int], spans: list[tuple[int, int]], step: float = 0.0025) -> None:
    """Compare leads of one length, each recorded in one span of samples."""
    assert list(found.channels or ()) == [LEADS[number] for number in numbers]
    assert {len(samples) for samples in found.signal} == {max(last for _, last in spans)}
    for number, samples, (first, last) in zip(numbers, found.signal, spans, strict=True):
        expected = np.full(len(samples), np.nan)
        expected[first:last] = X[number, first:last] * step
        np.testing.assert_allclose(samples, expected, atol=1e-12)
    assert found.units == "mV"


def test_sequence_sets_lie_side_by_side_by_their_times(tmp_path: Path) -> None:
    quarters = [(f"2020010112000{start}", _leads(range(3 * k, 3 * k + 3), 500 * k, 500 * k + 500))
                for k, start in enumerate(("0", "1.000", "2.0", "3"))]  # fmt: skip
    write_aecg(tmp_path / "x.xml", [quarters])
    found = from_ecg(tmp_path / "x.xml")
    _check(found, range(12), [(500 * (n // 3), 500 * (n // 3) + 500) for n in range(12)])
    assert (found.patient, set(found.sampling_rate)) == ("p7", {500})
    write_aecg(tmp_path / "x.xml", [[("1.5", _leads([0], 250)), ("1", _leads([1]))]])
    _check(from_ecg(tmp_path / "x.xml"), [0, 1], [(250, 2000), (0, 2000)])
    write_aecg(tmp_path / "x.xml", [[*quarters[:3], ("20200101130003+0100", quarters[3][1])]])
    with pytest.raises(UsageError, match="does not say by one clock when its 4 groups of leads begin"):
        from_ecg(tmp_path / "x.xml")  # local time and UTC


@pytest.mark.parametrize(
    ("head", "start"),
    [
        ("20200101123456.5", datetime(2020, 1, 1, 12, 34, 56, 500_000)),
        ("20200101123456Z", datetime(2020, 1, 1, 12, 34, 56, tzinfo=UTC)),
        ("20200101123456-0330", datetime(2020, 1, 1, 16, 4, 56, tzinfo=UTC)),
        ("202001011234", datetime(2020, 1, 1, 12, 34)),  # was 12:03:04
        ("2020111512", None),  # was the 1st of November, 05:01:02
    ],
)
def test_stamps_of_a_start(head: str, start: datetime | None, tmp_path: Path) -> None:
    write_aecg(tmp_path / "x.xml", [[(head.ljust(14), _leads([0]))]])
    assert from_ecg(tmp_path / "x.xml").start == start


def test_sequence_sets_with_times_of_minutes_have_no_common_clock(tmp_path: Path) -> None:
    """12:10 and 12:11 were read as 12:01:00 and 12:01:01: one second apart."""
    sets = [(f"2020010112{minute}".ljust(14), _leads([number])) for number, minute in enumerate((10, 11))]
    write_aecg(tmp_path / "x.xml", [sets])
    with pytest.raises(UsageError, match="does not say by one clock when its 2 groups of leads begin"):
        from_ecg(tmp_path / "x.xml")


def test_rhythm_series_follow_each_other_with_missing_samples_between(tmp_path: Path) -> None:
    both = [("20200101235959", _leads([0, 1], 0, 500))], [("20200102000001", _leads([0, 1], 1000))]
    write_aecg(tmp_path / "x.xml", both)
    found = from_ecg(tmp_path / "x.xml")
    expected = X[:2] * 0.0025
    expected[:, 500:1000] = np.nan
    np.testing.assert_allclose(np.stack(found.signal), expected)
    np.testing.assert_allclose(from_ecg(tmp_path / "x.xml", series=2).signal, X[:2, 1000:] * 0.0025)
    for head, sentence in (
        ("20200101235959.5", "holds lead I twice at the same time; read one series by from_ecg"),
        ("20200102080001", "its groups of leads lie 28,801 s apart; read one series"),
        ("0", "does not say by one clock when its 2 groups of leads begin; read one"),
    ):
        write_aecg(tmp_path / "x.xml", [both[0], [(head, _leads([0, 1], 1000))]])
        with pytest.raises(UsageError, match=rf"x\.xml: {sentence}"):
            from_ecg(tmp_path / "x.xml")
        assert len(from_ecg(tmp_path / "x.xml", series=2).signal[0]) == 1000
    with pytest.raises(UsageError, match=r"x\.xml: has no series 3; count from 1"):
        from_ecg(tmp_path / "x.xml", series=3)


def test_a_rhythm_strip_repeats_samples_of_a_lead(tmp_path: Path) -> None:
    head = "20200101120000"
    write_aecg(tmp_path / "x.xml", [[(head, _leads([0, 1], 0, 500)), (head, _leads([1]))]])
    _check(from_ecg(tmp_path / "x.xml"), [0, 1], [(0, 500), (0, 2000)])
    write_aecg(tmp_path / "x.xml", [[(head, _leads([0, 1], 0, 500)), (head, _leads([1], 1))]])
    with pytest.raises(UsageError, match="holds lead II twice at the same time"):
        from_ecg(tmp_path / "x.xml")


def test_multiplex_groups_lie_side_by_side_by_their_offsets(tmp_path: Path) -> None:
    groups = [
        dicom_group(_leads(range(3 * k, 3 * k + 3), 500 * k, 500 * k + 500), offset=f"{1000 * k}") for k in range(4)
    ]
    file = write_dicom(tmp_path / "x.dcm", groups)
    found = from_ecg(tmp_path / "x.dcm")
    _check(found, range(12), [(500 * (n // 3), 500 * (n // 3) + 500) for n in range(12)])
    for number in range(12):
        part = file.waveform_array(number // 3)[:, number % 3] / 1000
        np.testing.assert_allclose(found.signal[number][500 * (number // 3) :][:500], part)
    del groups[2].MultiplexGroupTimeOffset
    write_dicom(tmp_path / "x.dcm", groups)
    with pytest.raises(UsageError, match=r"x\.dcm: does not say by one clock when its 4 groups of leads begin"):
        from_ecg(tmp_path / "x.dcm")
    assert from_ecg(tmp_path / "x.dcm", series=3).channels == ["V1", "V2", "V3"]


@pytest.mark.parametrize("skew", [{"ChannelTimeSkew": "0.5"}, {"ChannelSampleSkew": "250"}])
def test_a_channel_that_begins_later(skew: dict[str, str], tmp_path: Path) -> None:
    group = dicom_group([("I", X[0, :1750]), ("II", X[1, 250:])])
    for keyword, value in skew.items():
        setattr(group.ChannelDefinitionSequence[1], keyword, value)
    write_dicom(tmp_path / "x.dcm", [group])
    _check(from_ecg(tmp_path / "x.dcm"), [0, 1], [(0, 1750), (250, 2000)])


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("OK", None),
        ("DISCONNECTED", None),
        (["OK", "INVALID"], None),
        ("UNCALIBRATED", "II is marked as UNCALIBRATED"),
    ],
)
def test_the_state_of_a_channel(state: str, sentence: str | None, tmp_path: Path) -> None:
    group = dicom_group(_leads([0, 1]))
    group.ChannelDefinitionSequence[1].ChannelStatus = state
    write_dicom(tmp_path / "x.dcm", [group])
    if sentence is not None:
        with pytest.raises(UsageError, match=sentence):
            from_ecg(tmp_path / "x.dcm")
        return
    first, second = from_ecg(tmp_path / "x.dcm").signal
    np.testing.assert_allclose(first, X[0] * 0.0025)
    assert np.isnan(second).all() == (state != "OK")


@pytest.mark.parametrize(
    ("value", "places", "missing"),
    [
        (0, [5, 6, 900, 1999], []),  # within the range of the signal
        (0, [*range(12), 900, 901], list(range(12))),
        (0, [900, 901, *range(1993, 2000)], list(range(1993, 2000))),
        (-32768, [0, 5, 900, 901], [0, 5, 900, 901]),  # outside of it
        (32767, [1999], [1999]),
        (0, list(range(2000)), list(range(2000))),
    ],
)
def test_padding_of_dicom_files(value: int, places: list[int], missing: list[int], tmp_path: Path) -> None:
    samples = np.where(X[:2] == value, 1, X[:2])
    samples[0, places] = value
    group = dicom_group([("I", samples[0]), ("II", samples[1])])
    group.add_new(0x5400100A, "OW", value.to_bytes(2, "little", signed=True))
    write_dicom(tmp_path / "x.dcm", [group])
    expected = samples * 0.0025
    expected[0, missing] = np.nan
    np.testing.assert_allclose(np.stack(from_ecg(tmp_path / "x.dcm").signal), expected, atol=1e-12)


def test_averaged_beats_are_no_rhythm(tmp_path: Path) -> None:
    group = dicom_group(_leads([0, 1]))
    group.MultiplexGroupLabel = "MEDIAN BEAT"
    write_dicom(tmp_path / "x.dcm", [group])
    with pytest.raises(UsageError, match=r"x\.dcm: holds only averaged beats, no rhythm"):
        from_ecg(tmp_path / "x.dcm")
    write_muse(tmp_path / "x.xml", [("Median", _leads([0, 1], 0, 600)), ("Rhythm", _leads([0, 1]))] * 1)
    _check(from_ecg(tmp_path / "x.xml"), [0, 1], [(0, 2000), (0, 2000)], 0.00488)


def test_waveforms_of_muse_files(tmp_path: Path) -> None:
    write_muse(tmp_path / "x.xml", [("Rhythm", _leads([0, 1], 0, 900)), ("Rhythm", _leads([0, 1]))])
    with pytest.raises(UsageError, match="does not say by one clock when its 2 groups of leads begin"):
        from_ecg(tmp_path / "x.xml")
    _check(from_ecg(tmp_path / "x.xml", series=2), [0, 1], [(0, 2000), (0, 2000)], 0.00488)
    write_muse(tmp_path / "x.xml", [("Rhythm", _leads([0])), ("Continuous", _leads([0]))])
    with pytest.raises(UsageError, match="waveform 2 is of type 'Continuous'; expected Rhythm or Median"):
        from_ecg(tmp_path / "x.xml")
    write_muse(tmp_path / "x.xml", [("Rhythm", _leads([0]))], more="<LeadOff>TRUE</LeadOff>")
    assert np.isnan(from_ecg(tmp_path / "x.xml").signal).all()
    write_muse(tmp_path / "x.xml", [("Rhythm", _leads([0]))], more="<LeadTimeOffset>3</LeadTimeOffset>")
    with pytest.raises(UsageError, match=r"lead I has a time offset without a unit \(LeadTimeOffset\)"):
        from_ecg(tmp_path / "x.xml")
    write_muse(tmp_path / "x.xml", [("Rhythm", _leads([0]))], damaged=True)
    with pytest.raises(UsageError, match=r"x\.xml: not wholly readable as ECG file: CRC32 mismatch in lead I"):
        from_ecg(tmp_path / "x.xml")


def test_leads_of_an_scp_file_that_begin_later(tmp_path: Path) -> None:
    write_scp(tmp_path / "x.scp", [(1, 1, X[0, :1500]), (2, 1, X[1]), (61, 1001, X[2, 1000:])])
    _check(from_ecg(tmp_path / "x.scp"), range(3), [(0, 1500), (0, 2000), (1000, 2000)])
    damaged = bytearray((tmp_path / "x.scp").read_bytes())
    damaged[-1] ^= 4
    (tmp_path / "x.scp").write_bytes(damaged)
    with pytest.raises(UsageError, match=r"x\.scp: not wholly readable as ECG file: SCP-ECG CRC mismatch"):
        from_ecg(tmp_path / "x.scp")


def _kardia(path: Path) -> None:
    raw = {"frequency": 299.7, "amplitudeResolution": 500, "numLeads": 1, "samples": {"leadI": X[0].tolist()}}
    path.write_text(json.dumps({"id": "x", "recordedAt": "2020-01-01T00:00:00Z", "data": {"raw": raw}}))


def _mortara(path: Path) -> None:
    data = base64.b64encode(X[0].astype("<i2").tobytes()).decode()
    channel = '<CHANNEL NAME="I" SAMPLE_FREQ="499.5" UNITS_PER_MV="400" BITS="16" FORMAT="SIGNED" DURATION="2000"'
    path.write_text(f'<?xml version="1.0"?><ECG ID="1">{channel} ENCODING="BASE64" DATA="{data}"/></ECG>')


RATES: list[tuple[str, Callable[[Path], object], float]] = [
    ("x.xml", lambda path: write_aecg(path, [[("20200101120000", _leads([0]))]], "0.0039"), 1 / 0.0039),
    ("x.xml", lambda path: write_aecg(path, [[("20200101120000", _leads([0]))]], "3.90625", "ms"), 256.0),
    ("x.dcm", lambda path: write_dicom(path, [dicom_group(_leads([0]), rate="499.5")]), 499.5),
    ("x.xml", lambda path: write_muse(path, [("Rhythm", _leads([0]))], ("4995", "-1")), 499.5),
    ("x.scp", lambda path: write_scp(path, [(1, 1, X[0])], 3900), 1e6 / 3900),
    ("x.json", _kardia, 299.7),
    ("x.xml", _mortara, 499.5),
]


@pytest.mark.parametrize(("name", "write", "rate"), RATES)
def test_exact_rates(name: str, write: Callable[[Path], object], rate: float, tmp_path: Path) -> None:
    write(tmp_path / name)
    assert from_ecg(tmp_path / name).sampling_rate == [rate]


def test_waveforms_of_philips_files(tmp_path: Path) -> None:
    data = base64.b64encode(X[:2].astype("<i2").tobytes()).decode()
    described = 'leadlabels="I II" numberofleads="2" durationperchannel="4000" resolution="5" dataencoding="Base64"'
    waveform = f'<parsedwaveforms samplespersecond="500" {described}>{data}</parsedwaveforms>'
    info = "<documentinfo><documenttype>SierraECG</documenttype><documentversion>1.03</documentversion></documentinfo>"

    def read(waveforms: str) -> Recording:
        (tmp_path / "x.xml").write_text(f"<restingecgdata>{info}<waveforms>{waveforms}</waveforms></restingecgdata>")
        return from_ecg(tmp_path / "x.xml")

    _check(read(waveform), [0, 1], [(0, 2000), (0, 2000)], 0.005)
    with pytest.raises(UsageError, match=r"x\.xml: has 2 waveforms of which one can be read"):
        read(2 * waveform)
    with pytest.raises(UsageError, match=r"x\.xml: has a rate that is no whole number; export it as HL7"):
        read(waveform.replace('"500"', '"499.5"'))


def test_formats_that_other_readers_read(tmp_path: Path) -> None:
    edfio.Edf([edfio.EdfSignal(np.arange(100.0), 100, physical_range=(0, 100))]).write(tmp_path / "x.edf")
    with pytest.raises(UsageError, match=r"x\.edf: is EDF/EDF\+; read it by from_edf"):
        from_ecg(tmp_path / "x.edf")


def test_limb_leads_follow_from_two(tmp_path: Path) -> None:
    write_scp(tmp_path / "x.scp", [(1, 1, X[0]), (2, 1001, X[1, 1000:]), (3, 1, X[6])])
    found = from_ecg(tmp_path / "x.scp", derive_leads=True)
    assert found.channels == ["I", "II", "III", "aVR", "aVL", "aVF", "V1"]
    one, two = np.asarray(found.signal)[:2]
    assert np.isnan(two[:1000]).all()
    expected = [one, two, two - one, -(one + two) / 2, one - two / 2, two - one / 2, X[6] * 0.0025]
    np.testing.assert_allclose(found.signal, expected, atol=1e-12)
    write_scp(tmp_path / "x.scp", [(1, 1, X[0]), (3, 1, X[6])])
    with pytest.raises(UsageError, match=r"x\.scp: derive_leads: needs the leads I and II; there are I, V1"):
        from_ecg(tmp_path / "x.scp", derive_leads=True)


def test_limb_leads_that_are_there_stay() -> None:
    path = get_testdata_file("waveform_ecg.dcm")
    whole, file = from_ecg(str(path), derive_leads=True), pydicom.dcmread(str(path))
    np.testing.assert_allclose(np.stack(whole.signal), file.waveform_array(0).T / 1000, atol=1e-12)
    some = Recording(whole.signal[:3], channels=LEADS[:3], units="mV", sampling_rate=1000, gain=[2.0, 2.0, 1.0])
    found = with_limb_leads(some)
    assert (list(found.channels or ()), found.gain) == (list(LEADS[:6]), [2.0, 2.0, 1.0, 2.0, 2.0, 2.0])
    for number in (3, 4, 5):  # the electrocardiograph computes them in steps of 1.25 uV
        np.testing.assert_allclose(found.signal[number], whole.signal[number], atol=0.00126)


def test_limb_leads_of_two_units_and_of_edf_files(tmp_path: Path) -> None:
    one, two = X[:2] / 100
    signals = [
        edfio.EdfSignal(one, 500, label="I", physical_dimension="mV", physical_range=(-5, 5)),
        edfio.EdfSignal(1000 * two, 500, label="II", physical_dimension="uV", physical_range=(-5000, 5000)),
    ]
    edfio.Edf(signals).write(tmp_path / "x.edf")
    found = from_edf(tmp_path / "x.edf", derive_leads=True)
    assert (found.channels, found.units) == (["I", "II", "III", "aVR", "aVL", "aVF"], ["mV", "uV", *["mV"] * 4])
    np.testing.assert_allclose(found.signal[2], two - one, atol=1e-3)
    with pytest.raises(UsageError, match="derive_leads: I and II have different rates, gains or units"):
        with_limb_leads(Recording([one, two], channels=("I", "II"), units=("mV", "g"), sampling_rate=500))


def _ishne(path: Path, counts: np.ndarray[Any, Any], nanovolts: int, counted: int) -> None:
    """Write a Holter file of leads I and II in ISHNE's format, without a checksum."""
    header = bytearray(512)
    struct.pack_into("<iiiih", header, 0, 0, counted, 522, 522, 1)
    header[98:100] = b"p7"
    struct.pack_into("<hhh", header, 128, 4, 3, 2020)
    struct.pack_into("<hhhh", header, 140, 5, 6, 7, 2)
    struct.pack_into("<12h", header, 148, 5, 6, *[-9] * 10)
    struct.pack_into("<12h", header, 172, 1, 1, *[-9] * 10)
    struct.pack_into("<12h", header, 196, nanovolts, nanovolts, *[-9] * 10)
    struct.pack_into("<h", header, 262, 250)
    path.write_bytes(b"ISHNE1.0" + b"\0\0" + header + counts.T.astype("<i2").tobytes())


def test_faults_of_holter_files_are_missing(tmp_path: Path) -> None:
    counts = np.random.default_rng(0).integers(-3000, 3000, (2, 500))
    counts[0, 100:110] = -32768
    _ishne(tmp_path / "a.ecg", counts, 2500, 500)
    found = from_ecg(tmp_path / "a.ecg")
    assert (found.channels, found.units, found.patient) == (["I", "II"], "mV", "p7")
    assert found.start == datetime(2020, 3, 4, 5, 6, 7)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found.signal[0])), np.arange(100, 110))
    expected = np.where(counts == -32768, np.nan, counts * 2500 / 1e6)
    np.testing.assert_allclose(np.stack(found.signal), expected)


@pytest.mark.parametrize(
    ("counted", "note"),
    [
        (500, None),
        (1000, None),  # of both leads together
        (0, None),
        (800, "holds 500 samples per lead, and its header counts 800: it may be cut short"),
    ],
)
def test_a_holter_file_that_holds_less_than_its_header_counts(counted: int, note: str | None, tmp_path: Path) -> None:
    _ishne(tmp_path / "a.ecg", np.ones((2, 500), int), 2500, counted)
    assert list(from_ecg(tmp_path / "a.ecg").notes) == ([] if note is None else [note])


def test_a_lead_that_is_given_twice_is_noted(tmp_path: Path) -> None:
    write_aecg(tmp_path / "x.xml", [[("20200101123456", [("I", X[0]), ("I", X[1])])]])
    found = from_ecg(tmp_path / "x.xml")
    assert found.channels == ["I", "I_2"]
    assert list(found.notes) == ["gives lead I more than once: another one is I_2"]
    write_scp(tmp_path / "x.scp", [(1, 1, X[0]), (1, 1, X[1])])
    assert list(from_ecg(tmp_path / "x.scp").notes) == ["gives lead I more than once: another one is I_2"]


def test_samples_beyond_the_end_in_the_header_of_an_scp_file_are_noted(tmp_path: Path) -> None:
    write_scp(tmp_path / "x.scp", [(1, 1, X[0]), (2, 1, X[1])], ends=[2000, 1900])
    found = from_ecg(tmp_path / "x.scp")
    assert np.isnan(found.signal[1]).sum() == 100
    note = "holds 2,000 samples of lead 2, and its header counts 1,900: those beyond are left out"
    assert list(found.notes) == [note]
    write_scp(tmp_path / "x.scp", [(1, 1, X[0]), (2, 1, X[1])])
    assert list(from_ecg(tmp_path / "x.scp").notes) == []


def test_an_invalid_date_is_noted(tmp_path: Path) -> None:
    write_scp(tmp_path / "x.scp", [(1, 1, X[0])], begin=datetime(2020, 2, 28, 12, 30))
    assert list(from_ecg(tmp_path / "x.scp").notes) == []
    content = bytearray((tmp_path / "x.scp").read_bytes())
    content[content.index(struct.pack("<HBB", 2020, 2, 28)) + 3] = 30
    (tmp_path / "x.scp").write_bytes(with_scp_checksums(bytes(content)))
    found = from_ecg(tmp_path / "x.scp")
    end = "is not a valid date with a time of day, so the recording has no start"
    assert (found.start, list(found.notes)) == (None, [f"its date 2020-02-30 12:30:00 {end}"])
    counts = np.ones((2, 500), int)
    _ishne(tmp_path / "a.ecg", counts, 2500, 500)
    content = bytearray((tmp_path / "a.ecg").read_bytes())
    struct.pack_into("<h", content, 140, 13)  # the month
    (tmp_path / "a.ecg").write_bytes(content)
    assert list(from_ecg(tmp_path / "a.ecg").notes) == [f"its date 2020-13-04 05:06:07 {end}"]
    write_aecg(tmp_path / "x.xml", [[("20200230123456", _leads([0]))]])
    assert list(from_ecg(tmp_path / "x.xml").notes) == [f"its date 20200230123456 {end}"]
    write_dicom(tmp_path / "x.dcm", [dicom_group(_leads([0]))], acquired="20200230123456")
    assert list(from_ecg(tmp_path / "x.dcm").notes) == [f"its date 20200230123456 {end}"]


def test_a_subject_without_an_extension_is_noted(tmp_path: Path) -> None:
    write_aecg(tmp_path / "x.xml", [[("20200101123456", _leads([0]))]])
    assert list(from_ecg(tmp_path / "x.xml").notes) == []
    text = (tmp_path / "x.xml").read_text().replace("<id extension='p7'/>", "<id root='1.2.840.7'/>")
    (tmp_path / "x.xml").write_text(text)
    found = from_ecg(tmp_path / "x.xml")
    assert found.patient is None
    assert list(found.notes) == ["the id of its subject has a root and no extension, so it names no person"]


@pytest.mark.parametrize(
    ("element", "written", "sentence"),
    [
        ("scale", 'value="2,5" unit="uV"', "MDC_ECG_LEAD_I has the scale '2,5'; expected a number such as 2.5"),
        ("scale", 'unit="uV"', "MDC_ECG_LEAD_I has the scale ''; expected a number such as 2.5"),
        ("origin", 'value="0,5" unit="uV"', "MDC_ECG_LEAD_I has the origin '0,5'; expected a number such as 2.5"),
        ("origin", 'unit="uV"', None),
        ("origin", 'value="100" unit="uV"', None),
    ],
)
def test_scales_of_aecg_files_that_are_no_numbers_are_refused(
    element: str, written: str, sentence: str | None, tmp_path: Path
) -> None:
    """ecgdatakit takes 1 for such a scale, and 0 for such an origin."""
    path = tmp_path / "x.xml"
    write_aecg(path, [[("0", [("I", np.arange(50)), ("II", np.arange(50))])]])
    before = {"scale": '<scale value="2.5" unit="uV"/>', "origin": '<origin value="0" unit="uV"/>'}[element]
    content = path.read_text()
    assert content.count(before) == 2
    path.write_text(content.replace(before, f"<{element} {written}/>"))
    if sentence is not None:
        with pytest.raises(UsageError, match=sentence):
            from_ecg(path)
        return
    origin = 0.1 if "100" in written else 0.0
    np.testing.assert_allclose(from_ecg(path).signal[0], np.arange(50) * 0.0025 + origin)
