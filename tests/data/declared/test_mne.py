"""`from_mne`: EEG that MNE-Python reads, written by MNE, by hand after the formats' specifications, and by edfio."""

from __future__ import annotations

import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import edfio
import mne
import numpy as np
import pytest
from scipy.io import savemat

from clops_sweep import Recording, from_mne
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare

X = np.random.default_rng(0).normal(0, 20, (3, 1000)).round(1)
NAMES = ["Fz", "Cz", "Pz"]


def _raw(kinds: tuple[str, ...] = ("eeg", "eeg", "stim")) -> Any:
    info = mne.create_info(["Fz", "Cz", "STI 014"], 250, list(kinds))
    return mne.io.RawArray(np.vstack([X[:2] * 1e-6, np.arange(1000)[None] // 500]), info, verbose="error")


def _brainvision(folder: Path, unit: str = "µV", name: str = "b", markers: str = "") -> Path:
    (X / 0.1).round().astype("<i2").T.tofile(folder / f"{name}.eeg")
    channels = "".join(f"Ch{n}={each},,0.1,{unit}\n" for n, each in enumerate(NAMES, 1))
    (folder / f"{name}.vhdr").write_text(
        "Brain Vision Data Exchange Header File Version 1.0\n[Common Infos]\nCodepage=UTF-8\n"
        f"DataFile={name}.eeg\nMarkerFile={name}.vmrk\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\n"
        "NumberOfChannels=3\nSamplingInterval=4000\n[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\n" + channels,
        encoding="utf-8",
    )
    (folder / f"{name}.vmrk").write_text(
        "Brain Vision Data Exchange Marker File, Version 1.0\n[Common Infos]\nCodepage=UTF-8\n"
        f"DataFile={name}.eeg\n[Marker Infos]\nMk1=New Segment,,1,1,0,20200131120000000000\n{markers}",
        encoding="utf-8",
    )
    return folder / f"{name}.vhdr"


def _eeglab(folder: Path) -> Path:
    X.T.astype("<f4").tofile(folder / "a.fdt")
    channels = np.array([(name, "EEG") for name in NAMES], [("labels", object), ("type", object)])
    events = np.array([("boundary", 501.0, 0.0), ("rest", 101.0, 50.0)],
                      [("type", object), ("latency", float), ("duration", float)])  # fmt: skip
    facts = {"setname": "a", "nbchan": 3, "trials": 1, "pnts": 1000, "srate": 250.0, "xmin": 0.0, "xmax": 3.996,
             "data": "a.fdt", "chanlocs": channels, "event": events, "epoch": [], "icawinv": []}  # fmt: skip
    savemat(folder / "a.set", {"EEG": facts}, appendmat=False)
    return folder / "a.set"


def _gdf(folder: Path, codes: tuple[int, ...] = (4275, 4275), rates: tuple[int, ...] = (250, 250)) -> Path:
    """Write a GDF 2.20 file of 4 records of 1 s, with float32 samples."""
    many = len(codes)
    head = bytearray(256)
    head[:8] = b"GDF 2.20"
    head[184:186] = np.uint16(1 + many).tobytes()
    head[236:244] = np.int64(4).tobytes()
    head[244:252] = np.array([1, 1], "<u4").tobytes()
    head[252:254] = np.uint16(many).tobytes()
    columns = [
        b"".join(name.encode().ljust(16, b"\0") for name in NAMES[:many]), bytes(86 * many),
        np.array(codes, "<u2").tobytes(), np.full(many, -1000.0).tobytes(), np.full(many, 1000.0).tobytes(),
        np.full(many, -1000.0).tobytes(), np.full(many, 1000.0).tobytes(), bytes(68 * many), bytes(12 * many),
        np.array(rates, "<u4").tobytes(), np.full(many, 16, "<u4").tobytes(), bytes(32 * many),
    ]  # fmt: skip
    records = b"".join(
        X[n, record * rate : (record + 1) * rate].astype("<f4").tobytes()
        for record in range(4)
        for n, rate in enumerate(rates)
    )
    (folder / "g.gdf").write_bytes(bytes(head) + b"".join(columns) + records)
    return folder / "g.gdf"


def _fif(folder: Path) -> Path:
    _raw().save(folder / "f_raw.fif", verbose="error")
    return folder / "f_raw.fif"


@pytest.mark.parametrize("write", [_brainvision, _eeglab, _gdf, _fif])
def test_files_are_read_in_microvolts(write: Any, tmp_path: Path) -> None:
    found = from_mne(write(tmp_path))
    assert isinstance(found, Recording)
    rows = [place for place, name in enumerate(found.channels or ()) if name in NAMES]
    signal = np.where(np.isnan(found.signal), np.r_[X][: len(found.signal)], found.signal)
    np.testing.assert_allclose(signal[rows], X[rows], atol=1e-3)
    assert [found.units[row] for row in rows] == ["uV"] * len(rows)
    assert found.sampling_rate == 250


def test_a_stimulus_channel_is_left_out_and_said(tmp_path: Path) -> None:
    _raws(tmp_path)
    for more, names in (("", ("Fz", "Cz")), (', channels=["Cz", "STI 014"]', ("Cz", "STI 014"))):
        manifest = _prepared(tmp_path, more).manifest
        assert manifest.lead_names == names
        assert more or any("channel STI 014 is left out" in note for note in manifest.notes)


def _raws(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *(f"r{n}_raw,{'ab'[n % 2]}" for n in range(6))]))
    for number in range(6):
        raw = _raw()
        raw.apply_function(lambda values, k=number: values + k * 1e-6, picks=[0, 1], verbose="error")
        raw.save(tmp_path / f"r{number}_raw.fif", verbose="error")


def _prepared(tmp_path: Path, more: str) -> PreparedSet:
    declare(
        tmp_path / "space.py",
        f"""
from clops_sweep import from_mne
@dataset("own")
def own(data_root):
    return Recordings.from_folder(data_root, "*.fif", read=from_mne, table="labels.csv", name="file", label="label",
                                  window_seconds=1{more})
""",
    )
    return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_annotations_are_intervals_and_bad_segments_are_missing(first: float, tmp_path: Path) -> None:
    raw = _raw()
    raw.info["bads"] = ["Cz"]
    raw.set_annotations(mne.Annotations([1.5, 2.0, 3.0], [0.2, 0.5, 0.0], ["BAD_muscle", "rest", "go"]))
    raw.crop(first)
    found = from_mne(raw, ["Fz", "Cz"], annotations=True, until_next=True)
    assert isinstance(found, Recording)
    shift = round(first * 250)
    expected = X[0, shift:].copy()
    expected[375 - shift : 425 - shift] = np.nan
    np.testing.assert_allclose(found.signal[0], expected)
    assert np.isnan(found.signal[1]).all()
    assert found.intervals == [(2 - first, 2.5 - first, "rest"), (3 - first, 4 - first, "go")]
    assert any("Cz is marked as bad" in note for note in found.notes)
    assert any("1 bad segment" in note for note in found.notes)


def test_markers_of_one_sample_last_until_the_next(tmp_path: Path) -> None:
    markers = "Mk2=Stimulus,S  1,101,1,0\nMk3=Stimulus,S  2,501,1,0\n"
    found = from_mne(_brainvision(tmp_path, markers=markers), annotations=True, until_next=True)
    assert isinstance(found, Recording)
    assert [(round(start, 6), round(end, 6)) for start, end, _ in found.intervals or ()] == [(0.4, 2.0), (2.0, 4.0)]
    raw = _raw()
    raw.set_annotations(mne.Annotations([1.0], [1.5], ["rest"]))
    lasting = from_mne(raw, annotations=True, until_next=True)
    assert isinstance(lasting, Recording)
    assert lasting.intervals == [(1.0, 2.5, "rest")]


@pytest.mark.parametrize("write", ["eeglab", "brainvision"])
def test_cuts_are_missing_samples(write: str, tmp_path: Path) -> None:
    markers = "Mk2=New Segment,,501,1,0\nMk3=Comment,rest,101,50,0\n"
    path = _eeglab(tmp_path) if write == "eeglab" else _brainvision(tmp_path, markers=markers)
    found = from_mne(path, annotations=True)
    assert isinstance(found, Recording)
    assert np.flatnonzero(np.isnan(found.signal).all(0)).tolist() == [500]
    ((start, end, label),) = found.intervals or ()
    assert (round(start, 6), round(end, 6)) == (0.4, 0.6)
    assert label.endswith("rest")


def test_epochs_are_recordings_of_one_person(tmp_path: Path) -> None:
    events = np.array([[100, 0, 1], [300, 0, 2], [600, 0, 1]])
    epochs = mne.Epochs(
        _raw(), events, {"left": 1, "right": 2}, 0, 0.4, baseline=None, preload=True, verbose="error"
    )  # fmt: skip
    epochs.save(tmp_path / "e-epo.fif", verbose="error")
    for source in (epochs, tmp_path / "e-epo.fif"):
        found = from_mne(source, ["Fz"])
        assert isinstance(found, list)
        assert [each.label for each in found] == ["left", "right", "left"]
        assert len({each.patient for each in found}) == 1
        np.testing.assert_allclose(found[1].signal[0], X[0, 300:401], atol=1e-4)


def _recordings(found: Recording | list[Recording]) -> list[Recording]:
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("kind", ["raw", "epochs"])
@pytest.mark.parametrize("is_applied", [False, True])
def test_projections_that_are_not_applied_are_noted(kind: str, is_applied: bool) -> None:
    raw = _raw()
    raw.set_eeg_reference(projection=True, verbose="error")
    events = np.array([[100, 0, 1], [300, 0, 1]])
    data = raw if kind == "raw" else mne.Epochs(
        raw, events, {"left": 1}, 0, 0.4, baseline=None, preload=True, proj=False, verbose="error"
    )  # fmt: skip
    if is_applied:
        data.apply_proj(verbose="error")
    for found in _recordings(from_mne(data)):
        said = [note for note in found.notes if "projection" in note]
        expected = "projections are not applied: Average EEG reference; apply_proj() of MNE applies them"
        assert said == ([] if is_applied else [expected])


def test_annotations_of_single_channels_are_noted() -> None:
    raw = _raw()
    raw.set_annotations(mne.Annotations([1, 2], [0.5, 0.5], ["seizure", "rest"], ch_names=[["Fz"], []]))
    found = from_mne(raw, annotations=True)
    assert isinstance(found, Recording)
    assert found.intervals == [(1, 1.5, "seizure"), (2, 2.5, "rest")]
    assert "annotations of single channels count for all channels: seizure" in found.notes


@pytest.mark.parametrize("rejects", [False, True])
def test_epochs_on_bad_segments_are_noted(rejects: bool) -> None:
    raw = _raw()
    raw.set_annotations(mne.Annotations([1.3, 2.0], [0.2, 0.1], ["BAD_muscle", "rest"]))
    events = np.array([[100, 0, 1], [300, 0, 1], [500, 0, 1]])
    epochs = mne.Epochs(
        raw, events, {"left": 1}, 0, 0.4, baseline=None, preload=True, reject_by_annotation=rejects, verbose="error"
    )  # fmt: skip
    noted = []
    for found in _recordings(from_mne(epochs)):
        noted.append([note for note in found.notes if "epoch lies" in note])
    said = "an epoch lies on BAD_muscle: drop it by reject_by_annotation=True of mne.Epochs"
    assert noted == ([[], []] if rejects else [[], [said], []])


def _edf(folder: Path, units: tuple[str, ...], rates: tuple[int, ...] = (250, 250)) -> Path:
    edfio.Edf(
        [
            edfio.EdfSignal(X[n, :: 250 // rate], rate, label=f"EEG {NAMES[n]}", physical_dimension=unit,
                            physical_range=(-200, 200))
            for n, (unit, rate) in enumerate(zip(units, rates, strict=True))
        ]
    ).write(folder / "e.edf")  # fmt: skip
    return folder / "e.edf"


WRONG: dict[str, tuple[Any, str]] = {
    "nV in EDF": (lambda folder: _edf(folder, ("uV", "nV")), "EEG Cz is in nV, which MNE .*; read it by from_edf"),
    "UV in EDF": (lambda folder: _edf(folder, ("UV", "uV")), "EEG Fz is in UV, which MNE takes for V"),
    "no unit in EDF": (lambda folder: _edf(folder, ("uV", "")), "EEG Cz is in no unit, which MNE takes for V"),
    "slow EDF": (lambda folder: _edf(folder, ("uV", "uV"), (250, 50)), "several rates, which MNE resamples"),
    "slow GDF": (lambda folder: _gdf(folder, rates=(250, 50)), "several rates, which MNE .* export it as EDF"),
    "nV in GDF": (lambda folder: _gdf(folder, (4275, 4276)), "signal Cz is in the unit of code 4276, which MNE takes"),
    "UV in BrainVision": (lambda folder: _brainvision(folder, "UV"), "MNE takes channel Fz, in UV, for no voltage"),
    "Greek mu": (lambda folder: _brainvision(folder, "\u03bcV"), "MNE takes channel Fz, in \u03bcV, for no voltage"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_mne_reads_wrongly_is_refused(what: str, tmp_path: Path) -> None:
    write, says = WRONG[what]
    with pytest.raises(UsageError, match=says):
        from_mne(write(tmp_path))


def test_a_raw_of_such_a_file_is_refused_and_others_are_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is in nV, which MNE takes for V"):
        from_mne(mne.io.read_raw_edf(_edf(tmp_path, ("uV", "nV")), verbose="error"))
    found = from_mne(_edf(tmp_path, ("uV", "uV")))
    assert isinstance(found, Recording)
    np.testing.assert_allclose(found.signal, X[:2], atol=0.01)
    with pytest.raises(UsageError, match=r"from_mne: expected a path, mne\.io\.Raw or mne\.Epochs, not 7"):
        from_mne(7)


def test_channels_without_positions_keep_their_scale(tmp_path: Path) -> None:
    path = _brainvision(tmp_path)
    positions = "[Coordinates]\nCh1=1,0,0\nCh2=1,45,0\nCh3=0,0,0\n"
    path.write_text(path.read_text(encoding="utf-8") + positions, encoding="utf-8")
    found = from_mne(path.with_suffix(".eeg"))
    assert isinstance(found, Recording)
    assert found.units == ["uV"] * 3
    np.testing.assert_allclose(found.signal, X, atol=1e-6)


def test_temperatures_of_brainvision_keep_their_unit(tmp_path: Path) -> None:
    found = from_mne(_brainvision(tmp_path, "C"))
    assert isinstance(found, Recording)
    assert found.units == ["C"] * 3
    np.testing.assert_allclose(found.signal, X, atol=1e-6)


def test_mne_is_imported_on_use() -> None:
    program = "import sys, clops_sweep; clops_sweep.from_mne; print('mne' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "False"


def test_without_mne_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(UsageError, match=r"needs mne; pip install 'clops-sweep\[mne\]'"):
        from_mne(_brainvision(tmp_path))


def _cnt(folder: Path, kind: str, samples_in_header: int) -> Path:
    """Write a Neuroscan CNT file of 3 channels at 250 Hz, after its documented layout, with one event.

    Microvolts are (sample - baseline) * sensitivity * calibration / 204.8.
    """
    header = bytearray(900)
    header[225:245] = b"05/10/20\0\x0017:35:31\0\0"
    struct.pack_into("<H", header, 370, len(NAMES))
    struct.pack_into("<H", header, 376, 250)
    struct.pack_into("<i", header, 864, samples_in_header)
    electrodes = b""
    for number, name in enumerate(NAMES, 1):
        electrode = bytearray(75)
        electrode[: len(name)] = name.encode()
        struct.pack_into("<2f", electrode, 19, number, -2.0 * number)  # its place on the head
        struct.pack_into("<h", electrode, 47, 5)
        struct.pack_into("<f", electrode, 59, 2.048)
        struct.pack_into("<f", electrode, 71, 10.0)
        electrodes += electrode
    samples = ((X / 0.1).round().astype(kind) + 5).T.tobytes()
    table_at = len(header) + len(electrodes) + len(samples)
    struct.pack_into("<i", header, 886, table_at)
    offset = len(header) + len(electrodes) + 100 * len(NAMES) * np.dtype(kind).itemsize
    event = struct.pack("<HBBi", 7, 0, 0, offset) + bytes(11)
    table = struct.pack("<Bii", 2, len(event), 0) + event
    path = folder / "a.cnt"
    path.write_bytes(bytes(header) + electrodes + samples + table)
    return path


@pytest.mark.parametrize("kind", ["<i2", "<i4"])
def test_neuroscan_cnt(tmp_path: Path, kind: str) -> None:
    recording = from_mne(_cnt(tmp_path, kind, X.shape[1]), annotations=True)
    assert isinstance(recording, Recording)
    np.testing.assert_allclose(recording.signal, X, atol=1e-4)
    assert (recording.channels, recording.sampling_rate) == (NAMES, 250)
    assert recording.start == datetime(2020, 5, 10, 17, 35, 31)
    ((onset, *_),) = recording.intervals or ()
    assert onset == pytest.approx(0.4, abs=1.001 / 250), "MNE places events one sample before their offset"


def test_a_cnt_file_that_does_not_tell_its_bits_names_the_remedy(tmp_path: Path) -> None:
    """With 32 instead of 16 bits, MNE reads noise of volts without a warning."""
    path = _cnt(tmp_path, "<i2", 0)
    with pytest.raises(UsageError, match=r"16 or 32 bits; expected from_mne\(mne\.io\.read_raw_cnt") as refused:
        from_mne(path)
    assert 'data_format="int16"' in str(refused.value)
    recording = from_mne(mne.io.read_raw_cnt(path, data_format="int16", preload=True, verbose="warning"))
    assert isinstance(recording, Recording)
    np.testing.assert_allclose(recording.signal, X, atol=1e-4)


@pytest.mark.parametrize("last", [500, 501])
def test_pauses_that_begin_half_a_sample_early(last: int) -> None:
    """As MNE annotates the zeros of an MFF file: rounded to even, one of them stays, or a sample is lost."""
    raw = _raw()
    raw.set_annotations(mne.Annotations((last - 0.5) / 250, 125 / 250, "BAD_ACQ_SKIP"))
    raw.event_id = None  # which the Raw of an MFF file has
    found = from_mne(raw)
    assert isinstance(found, Recording)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found.signal[0])), np.arange(last, last + 125))


def test_a_folder_of_mff_files(tmp_path: Path) -> None:
    """Written by the library of the format's maker, in two epochs with a pause of half a second."""
    pytest.importorskip("mffpy")
    from mffpy.bin_writer import BinWriter
    from mffpy.writer import Writer

    signal = np.random.default_rng(0).normal(0, 20, (33, 1000)).astype("<f4")
    samples = BinWriter(sampling_rate=250, data_type="EEG")
    samples.add_block(signal[:, :500])
    samples.add_block(signal[:, 500:], offset_us=500_000)
    file = Writer(tmp_path / "a.mff")
    file.addxml("fileInfo", recordTime=datetime(2020, 3, 4, 5, 6, 7, 250000, tzinfo=UTC))
    file.add_coordinates_and_sensor_layout("HydroCel GSN 32 1.0")
    file.addbin(samples)
    file.write()
    found = from_mne(tmp_path / "a.mff")
    assert isinstance(found, Recording)
    values = np.stack(found.signal)
    expected = np.insert(signal.astype(float), [500] * 125, np.nan, axis=1)
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert (found.channels or ())[0] == "E1"
    assert found.start == datetime(2020, 3, 4, 5, 6, 7, 250000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("marker", "is_refused"),
    [
        ("Mk2=Comment,SpO2 97,5,501,125,0", True),  # as MNE exports it by pybv
        ("Mk2=Comment,a,b,5,501,125,0", True),
        (r"Mk2=Comment,SpO2 97\1 5,501,125,0", False),
        ("Mk2=New Segment,,501,1,0,20200131120002000000", False),
        ("Mk2=Comment,rest,501,125,0,", False),
    ],
)
def test_a_comma_in_the_description_of_a_marker(marker: str, is_refused: bool, tmp_path: Path) -> None:
    header = _brainvision(tmp_path, markers=f"{marker}\n")
    if is_refused:
        with pytest.raises(UsageError, match=r"b\.vmrk: Mk2 has a comma in its description"):
            from_mne(header, annotations=True)
    else:
        from_mne(header, annotations=True)
