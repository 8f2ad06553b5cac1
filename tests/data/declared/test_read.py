"""`Recordings.from_folder(..., read=...)`: files of any format, read by functions and by the readers of the package."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import edfio
import h5py
import numpy as np
import pandas as pd
import pydicom
import pyedflib
import pytest
from pydicom.data import get_testdata_file
from scipy.io import savemat
from scipy.signal import firwin, resample_poly

from clops_sweep import Recording, from_ecg, from_edf, from_npz
from clops_sweep.data.declared.grids import on_grid
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves

SHIPPED = sorted((Path(pyedflib.__file__).parent / "tests" / "data").glob("*.?df"))
X = waves(20, 2, 400, seed=3)
BODY = """
def text_file(path):
    number = int(path.stem[1:])
    if path.read_text() == "broken":
        raise ValueError("no numbers")
    signal = np.array(path.read_text().split(), np.float32).reshape(2, -1)
    return Recording(signal, "ab"[number % 2], number // 2, channels=("I", "II"), units="mV", sampling_rate=100)

@dataset("own", files=["files"])
def own(data_root):
    return Recordings.from_folder(data_root / "files", "*.txt", read=text_file, classes=("a", "b"){more})
"""


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of twenty files in a custom format."""
    (tmp_path / "files").mkdir()
    for number, signal in enumerate(X):
        (tmp_path / "files" / f"r{number:02}.txt").write_text(" ".join(map(repr, signal.ravel().tolist())))
    return tmp_path


def _frames(tmp_path: Path, body: str, **how: object) -> FrameSet:
    declare(tmp_path / "space.py", body)
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, **{"workers": 1, **how})  # type: ignore[arg-type]
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_reads_the_files_of_a_folder(workers: int, texts: Path) -> None:
    frames = _frames(texts, BODY.format(more=""), workers=workers)
    np.testing.assert_array_equal(frames.signal(np.arange(20)), X)
    assert frames.labels.tolist() == [0, 1] * 10
    assert len(frames.patient_names) == 10
    assert (frames.unit, frames.lead_names, frames.frame_seconds) == ("mV", ("I", "II"), 4.0)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_names_the_file_and_the_file_can_be_skipped(workers: int, texts: Path) -> None:
    (texts / "files" / "r07.txt").write_text("broken")
    with pytest.raises(UsageError, match=r"r07\.txt: text_file\(\) raises ValueError: no numbers"):
        _frames(texts, BODY.format(more=""), workers=workers)
    frames = _frames(texts, BODY.format(more=""), workers=workers, on_error="skip")
    np.testing.assert_array_equal(frames.signal(np.arange(19)), np.delete(X, 7, 0))


def test_a_file_may_hold_several_recordings(texts: Path) -> None:
    other = "    yield Recording(-signal, 'c', number // 2, channels=('I', 'II'), units='mV', sampling_rate=100)\n"
    body = BODY.format(more="").replace("    return Recording(signal", f"{other}    yield Recording(signal")
    frames = _frames(texts, body)
    np.testing.assert_array_equal(frames.signal(np.arange(20)), X)
    both = _frames(texts, body.replace('("a", "b")', '("a", "b", "c")'))
    assert both.labels.tolist() == [2, 0, 2, 1] * 10
    np.testing.assert_array_equal(both.signal(np.arange(40))[::2], -X)


def test_a_table_describes_the_files(texts: Path) -> None:
    rows = [f"r{number:02},{'xy'[number % 2]},p{number // 2}" for number in range(20)]
    (texts / "labels.csv").write_text("\n".join(["file,kind,who", *rows, "r99,x,p0"]))
    more = ", table=data_root / 'labels.csv', label='kind', patient='who'"
    body = BODY.format(more=more).replace('("a", "b")', '("x", "y")').replace('"ab"[number % 2], number // 2, ', "")
    with pytest.raises(UsageError, match=r"r99: there is no such file"):
        _frames(texts, body)
    (texts / "files" / "unlisted.txt").write_text("1 2")
    frames = _frames(texts, body, on_error="skip")
    assert frames.labels.tolist() == [0, 1] * 10
    assert frames.patient_names == tuple(f"p{number}" for number in range(10))
    manifest = prepare("own", prepared_root=texts / "prepared", data_root=texts).manifest
    assert [each.sentence() for each in manifest.left_out] == ["1 recording that the table does not list"]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            "number // 2, channels",
            "number // 2, split='train' if number % 2 else 'test', channels",
            "one split for a pat",
        ),
        ('units="mV"', 'units="mV" if number else "g"', "in mV where the first recording is in g"),
        ('channels=("I", "II")', 'channels=("I", "II") if number < 5 else ("I", "V1")', "r05.txt: has no channel II"),
        ("sampling_rate=100", "sampling_rate=100 + number", "r01.txt: sampling_rate: 101 where the first has 100"),
        ("return Recording(signal", "return Recording(signal[None]", "r00.txt: signal: has 1 channels; expected 2"),
        ("return Recording(signal", "return Recording(signal.T", "has 400 channels; expected 2, .*; transpose it"),
        ("return Recording(signal", "return Recording(None", "signal: expected samples .channels, samples., not None"),
        (
            "return Recording(signal",
            "return Recording(signal if number else np.int16(9 * signal)",
            "r01.txt: is of f",
        ),
        ("return Recording(signal", "return Recording(7.0", "signal: expected samples .channels, samples., not 7.0"),
        ("return Recording(signal", "return Recording([]", r"signal: expected samples .channels, samples., not \[\]"),
        ('"ab"[number % 2]', "None", "r00.txt: label: is missing; expected one, or intervals"),
        (
            "    return Recording(",
            "    return 7 if number else Recording(",
            "r01.txt: text_file.. raises Ty",
        ),
    ],
)
def test_bad_recordings(before: str, after: str, sentence: str, texts: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        _frames(texts, BODY.format(more="").replace(before, after, 1))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_edf_files_that_another_library_ships(path: Path) -> None:
    found = from_edf(path, annotations=True)
    with pyedflib.EdfReader(str(path)) as file:
        old = "EDF Annotations" in file.getSignalLabels()  # a file that pyEDFlib takes for plain EDF
        assert list(found.channels or ()) == [name for name in file.getSignalLabels() if "Annotations" not in name]
        for place, signal in enumerate(found.signal):
            np.testing.assert_array_equal(signal, file.readSignal(place))
            assert found.sampling_rate[place] == file.getSampleFrequency(place)
            assert found.units[place] == file.getPhysicalDimension(place)
        onsets, _, texts = file.readAnnotations()
    assert old or [label for _, _, label in found.intervals or ()] == list(texts)
    np.testing.assert_allclose([] if old else [start for start, _, _ in found.intervals or ()], onsets, atol=1e-6)


SLEEP = """
from dataclasses import replace
from clops_sweep import from_ecg, from_edf, from_mat, from_npz

def night(path):
    recording = from_edf(path, ["EEG", "EMG"], annotations=path.with_name(path.stem + "-Hypnogram.edf"))
    return replace(recording, patient=path.stem[:3])

@dataset("own", files=["sleep"])
def own(data_root):
    return Recordings.from_folder(
        data_root / "sleep", "n??.edf", read=night, classes={"Sleep stage W": "W", "Sleep stage 2": "N2"},
        window_seconds=30, resample_to=50, gaps=GAPS, interval_rule=RULE)
"""


@pytest.mark.parametrize(
    ("reads", "sentence"),
    [
        ("from_edf(path)", r"x05\.txt: needs edfio; pip install 'clops-sweep\[edf\]'$"),
        (
            "__import__('absent_package')",
            r"x05\.txt: text_file\(\) raises ModuleNotFoundError: No module named 'absent_package'; "
            r"install that package$",
        ),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_missing_package_is_no_bad_record(
    reads: str, sentence: str, on_error: str, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "edfio", None)
    (texts / "files" / "x05.txt").write_bytes(b"0       " + bytes(300))
    first = f"    if path.stem == 'x05':\n        return {reads}\n    number ="
    body = "from clops_sweep import from_edf\n" + BODY.format(more="").replace("    number =", first)
    with pytest.raises(UsageError, match=sentence):  # it ends there: no advice to skip such records
        _frames(texts, body, on_error=on_error)


def _night(folder: Path, name: str, stages: list[tuple[float, float, str]], seconds: int = 300) -> list[np.ndarray]:
    """Write an EDF file with signals of two rates, and a hypnogram; return the signals."""
    folder.mkdir(exist_ok=True)
    stream = np.random.default_rng(len(name) + int(name[1:]))
    signals = [50 * stream.standard_normal(seconds * rate) for rate in (100, 20)]
    edfio.Edf([
        edfio.EdfSignal(signal, rate, label=label, physical_dimension=unit, physical_range=(-400, 400))
        for signal, rate, label, unit in zip(signals, (100, 20), ("EEG", "EMG"), ("uV", "mV"), strict=True)
    ]).write(folder / f"{name}.edf")  # fmt: skip
    notes = [edfio.EdfAnnotation(start, end - start, label) for start, end, label in stages]
    edfio.Edf([], annotations=notes).write(folder / f"{name}-Hypnogram.edf")
    with pyedflib.EdfReader(str(folder / f"{name}.edf")) as file:
        return [file.readSignal(place) for place in (0, 1)]


def _nights(tmp_path: Path, body: str, stages: list[tuple[float, float, str]]) -> tuple[FrameSet, list[np.ndarray]]:
    signals = [_night(tmp_path / "sleep", f"n{number:02}", stages) for number in range(6)]
    return _frames(tmp_path, body), signals[0]


def test_edf_files_with_hypnograms_and_signals_of_two_rates(tmp_path: Path) -> None:
    stages = [(0, 90, "Sleep stage W"), (90, 200, "Sleep stage 2"), (200, 9000, "Sleep stage ?")]
    frames, (eeg, emg) = _nights(tmp_path, SLEEP.replace("GAPS", "None").replace("RULE", "'within'"), stages)
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1] * 6
    assert (frames.unit, frames.samples, frames.lead_names) == ("uV, mV", 1500, ("EEG", "EMG"))
    unscaled = 5 * firwin(101, 1 / 5, window=("kaiser", 5.0))
    per_phase = np.array([unscaled[phase::5].sum() for phase in range(5)])  # gains of a constant
    slow = resample_poly(emg, 5, 2, window=unscaled / 5 / per_phase[np.arange(101) % 5])
    expected = np.stack([resample_poly(eeg, 1, 2), slow])[:, 3 * 1500 : 4 * 1500]
    np.testing.assert_allclose(frames.signal(np.array([3]))[0], expected, atol=2e-5)


def test_annotations_without_a_duration_hold_no_frame(tmp_path: Path) -> None:
    stages = [(at, at, "Sleep stage W") for at in (0, 30)]
    with pytest.raises(
        UsageError, match="2 of 2 labelled intervals have no duration; give their ends, until_next=True"
    ):
        _nights(tmp_path, SLEEP.replace("GAPS", "None").replace("RULE", "'within'"), stages)


@pytest.mark.parametrize(
    ("rule", "labels"), [("within", [0, 1, 1, 0]), ("majority", [0, 1, 1, 1, 0, 0]), ("contains", [0, 0, 1, 1, 0, 0])]
)
def test_rules_of_intervals(rule: str, labels: list[int], tmp_path: Path) -> None:
    stages = [(0, 40, "Sleep stage W"), (40, 115, "Sleep stage 2"), (130, 170, "Sleep stage W")]
    body = SLEEP.replace("GAPS", "None").replace("RULE", repr(rule))
    assert _nights(tmp_path, body, stages)[0].labels.tolist() == labels * 6


def test_edf_headers_with_equal_names_in_latin_1_and_without_a_scale(tmp_path: Path) -> None:
    signal = edfio.EdfSignal(X[0, 0].astype(float), 100, label="EEG", physical_dimension="uV", physical_range=(-9, 9))
    edfio.Edf([signal, signal]).write(tmp_path / "x.edf")
    content = (tmp_path / "x.edf").read_bytes()

    def read(at: int, field: bytes) -> Recording:
        (tmp_path / "x.edf").write_bytes(content[:at] + field.ljust(8) + content[at + 8 :])
        return from_edf(tmp_path / "x.edf", [1, 0])

    for micro in (b"\xb5V", "\u00b5V".encode()):
        found = read(448, micro)
        assert (found.channels, found.units) == (["EEG 2", "EEG"], ["uV", "\u00b5V"])
    for at, field in ((480, b"-9"), (512, b"-32768")):  # the maxima of the first signal
        with pytest.raises(UsageError, match=r"x\.edf: signal EEG has equal minimum and maximum, so no scale"):
            read(at, field)


HDF5 = """
@dataset("own", files=["h"])
def own(data_root):
    return Recordings.from_hdf5(data_root / "h", "*.h5", signals={signals}, ids={ids}, table="t.csv", label="kind",
        patient="who", channels=("I", "II"), units="mV", sampling_rate=100, window_seconds=2{more})
"""


_MIXED = [x if number % 10 else np.int16(9 * x) for number, x in enumerate(X)]


def _hdf5(root: Path, layout: str = "last") -> None:
    """Write two files of ten recordings, in another order than the table, which lacks r05 and has a row too many."""
    (root / "h").mkdir()
    rows = [f"r{number:02},{'xy'[number % 2]},p{number // 2}" for number in range(21) if number != 5]
    (root / "h" / "t.csv").write_text("\n".join(["file,kind,who", *rows]))
    for part in (0, 1):
        names = [f"r{10 * part + number:02}" for number in range(10)]
        with h5py.File(root / "h" / f"part{part}.h5", "w") as file:
            if layout == "groups":
                for name in names:
                    file[f"{name}/ecg"] = _MIXED[int(name[1:])]
                continue
            file["id"] = names
            file["x"] = np.moveaxis(X[10 * part :][:10], 1, 2 if layout == "last" else 1)


@pytest.mark.parametrize(
    ("layout", "signals", "ids"), [("last", "'x'", "'id'"), ("first", "'x'", "'id'"), ("groups", "'*/ecg'", None)]
)
def test_hdf5_files(layout: str, signals: str, ids: str | None, tmp_path: Path) -> None:
    _hdf5(tmp_path, layout)
    frames = _frames(tmp_path, HDF5.format(signals=signals, ids=ids, more=""))
    expected = (
        np.delete(_MIXED if layout == "groups" else X, 5, 0).reshape(19, 2, 2, 200).swapaxes(1, 2).reshape(38, 2, 200)
    )
    np.testing.assert_array_equal(frames.signal(np.arange(38)), expected)
    assert frames.labels.tolist() == np.delete([0, 1] * 10, 5).repeat(2).tolist()
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest
    assert {each.reason.text: each.count for each in manifest.left_out} == {
        "recordings that the table does not list": 1,
        "rows of the table without a recording": 1,
    }


def test_matlab_and_numpy_files(tmp_path: Path) -> None:
    body = "read=lambda path: from_mat(path, 'ecg.data', label='rhythm', patient='ecg.person')"
    for ending, read in (
        ("mat", body),
        ("npz", "read=lambda path: from_npz(path, 'x', label='rhythm', patient='who')"),
    ):
        for number, signal in enumerate(X):
            path, kind = tmp_path / f"m{number:02}.{ending}", "ab"[number % 2]
            if ending == "mat":
                savemat(path, {"ecg": {"data": signal, "person": number // 2}, "rhythm": kind})
            else:
                np.savez(path, x=signal, rhythm=kind, who=number // 2)
        call = f"data_root, '*.{ending}', {read}, classes=('a', 'b'), channels=('I', 'II'), units='mV', sampling_rate=1"
        own = f"@dataset('own')\ndef own(data_root):\n    return Recordings.from_folder({call})\n"
        frames = _frames(tmp_path, f"from clops_sweep import from_mat, from_npz\n{own}")
        np.testing.assert_array_equal(frames.signal(np.arange(20)), X)
        assert (frames.labels.tolist(), len(frames.patient_names)) == ([0, 1] * 10, 10)


def test_a_dicom_file_of_an_electrocardiograph() -> None:
    path = get_testdata_file("waveform_ecg.dcm")
    found, file = from_ecg(path), pydicom.dcmread(path)
    np.testing.assert_allclose(found.signal, file.waveform_array(0).T / 1000, atol=1e-12)
    assert (found.patient, set(found.sampling_rate)) == (file.PatientID, {1000})
    assert found.channels == ["I", "II", "III", "aVR", "aVL", "aVF", *(f"V{number}" for number in range(1, 7))]


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (from_edf, b"1" + SHIPPED[1].read_bytes()[1:], r"x: not a readable EDF file: it begins with b'1       '"),
        (from_npz, b"hello", r"x: not a readable NPZ file \(it is not a ZIP archive\)"),
    ],
)
def test_files_of_another_format(read: Callable[[Path], object], content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read(tmp_path / "x")


CALL = "channels=['II'], units='mV', sampling_rate=100, window_seconds=1)"
FOLDER = f"from_folder(data_root, 'r??.???', table='t.csv', label='kind', name='file', READ{CALL}"
CSV, EDF = FOLDER.replace("READ", "").replace("???", "csv"), FOLDER.replace("READ", "read=from_edf, ")
MAT, NPZ = (FOLDER.replace("READ", f"read=lambda it: from_{each}(it, 'x'), ") for each in ("mat", "npz"))


@pytest.mark.parametrize(
    ("ending", "kept", "call", "sentence"),
    [
        (".edf", 700, EDF, "r00.edf: truncated, 0 records of data"),
        (".edf", None, EDF, "r00.edf: has no channel II"),
        (".mat", 150, MAT, "r00.mat: not a readable MAT file"),
        (".mat", None, MAT.replace("'x'", "'y'"), "r00.mat: has no variable 'y'; it has x"),
        (".npz", 150, NPZ, "r00.npz: not a readable NPZ file"),
        (".npz", None, NPZ.replace("'II'", "'II', 'V1'"), "r00.npz: .* channels"),
        (".hdf5", 900, f"from_hdf5(data_root, signals='x', ids='id', label='kind', table='t.csv', {CALL}", "r00.hdf5"),
        (".csv", 0, CSV, "r00.csv: has no column 'II'; it has none"),
        (".csv", 14, CSV, "r00.csv: line 4 has 1 cells; expected 2"),
    ],
)  # fmt: skip
def test_damaged_files_are_named(ending: str, kept: int | None, call: str, sentence: str, tmp_path: Path) -> None:
    path, x = tmp_path / f"r00{ending}", np.sin(np.arange(1000.0))[None]
    write: dict[str, Callable[[], object]] = {
        ".edf": lambda: edfio.Edf([edfio.EdfSignal(x[0], 100, label="EEG")]).write(path),
        ".mat": lambda: savemat(path, {"x": x}),
        ".npz": lambda: np.savez(path, x=x),
        ".hdf5": lambda: h5py.File(path, "w").create_dataset("x", data=x).file.close(),
        ".csv": lambda: path.write_text("I,II\n1,2\n3,4\n5,6\n"),
    }
    write[ending]()
    if kept is not None:
        path.write_bytes(path.read_bytes()[:kept])
    for file in tmp_path.glob("r00.*"):
        shutil.copy(file, file.with_stem("r01"))
    (tmp_path / "t.csv").write_text("file,kind\nr00,a\nr01,b\n")
    own = f"@dataset('own')\ndef own(data_root):\n    return Recordings.{call}\n"
    with pytest.raises(UsageError, match=sentence) as caught:
        _frames(tmp_path, f"from clops_sweep import from_edf, from_mat, from_npz\n{own}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("unit", ["seconds", "samples"])
def test_a_table_of_intervals(unit: str, tmp_path: Path) -> None:
    rows, factor = ["file,from,to,kind,who"], 1 if unit == "seconds" else 100
    for number, signal in enumerate(X):
        np.save(tmp_path / f"r{number:02}.npy", signal)
        for begin, end, kind in ((0, 1.5, "x"), (1.5, 4, "y")):
            rows.append(f"r{number:02},{begin * factor:g},{end * factor:g},{kind},p{number}")
    (tmp_path / "t.csv").write_text("\n".join([*rows, f"r00,0,{factor},z,p0"]))
    call = (
        "data_root, '*.npy', table='t.csv', name='file', start='from', end='to', label='kind', patient='who',"
        f" classes=('x', 'y'), interval_unit={unit!r}, sampling_rate=100, units='mV', window_seconds=1"
    )
    own = f"@dataset('own', files=['t.csv'])\ndef own(data_root):\n    return Recordings.from_folder({call})\n"
    frames = _frames(tmp_path, own)
    assert frames.labels.tolist() == [0, 1, 1] * 20
    np.testing.assert_array_equal(frames.signal(np.array([1]))[0], X[0, :, 150:250])
    (tmp_path / "t.csv").write_text("\n".join(rows).replace(",", ";").replace(".", ","))
    np.testing.assert_array_equal(_frames(tmp_path, own).signal(slice(None)), frames.signal(slice(None)))
    for wrong, sentence in (
        ("r00,x,2,x,p0", "t.csv: row 42: start: 'x' is not a number"),
        ("r00,0,1,x,p1", "t.csv: row 42: patient is 'p1' where an earlier row of 'r00' has 'p0'"),
        ("r00,0,1,x,p0", "t.csv: row 42: the interval from 0 to 1 .* overlaps|overlaps the one before"),
        ("r00,390000,400000,x,p0", "t.csv: row 42: the interval from 390000 to 400000 .* ends after the recording"),
        ("r00,2,1,x,p0", "t.csv: row 42: the interval from 2 to 1 .* has no duration"),
        ("r99,0,1,x,", "patient: recording 'r99' has none"),
    ):
        (tmp_path / "t.csv").write_text("\n".join([*rows, "r00,0,1,z,p0", wrong]))
        with pytest.raises(UsageError, match=sentence):
            _frames(tmp_path, own)


def test_bids_events(tmp_path: Path) -> None:
    _night(tmp_path, "n00", [(0, 1, "x")])
    table = tmp_path / "n00_events.tsv"
    table.write_text("onset\tduration\ttrial_type\n0\t30\trest\n30.5\tn/a\tblink\n")
    assert from_edf(tmp_path / "n00.edf", annotations=table).intervals == [(0, 30, "rest"), (30.5, 30.5, "blink")]
    table.write_text("onset\tduration\ttrial_type\n0\t30\trest\nx\t1\trest\n")
    with pytest.raises(UsageError, match=r"n00_events\.tsv: line 3: onset 'x' is not a number"):
        from_edf(tmp_path / "n00.edf", annotations=table)


TIMED = """
@dataset("own", files=["w"])
def own(data_root):
    for path in sorted((data_root / "w").glob("*.npy")):
        for person in range(3):
            t = np.load(path)
            yield Recording(np.sin(t)[None] + person, int(path.stem), 3 * int(path.stem) + person, timestamps=t)
"""


def test_dates_with_a_time_zone_are_timestamps() -> None:
    dates = pd.date_range("2020-03-29 00:59:59", periods=4, freq="s", tz="Europe/Berlin")
    assert on_grid(np.arange(4.0)[None], dates, 2).tolist() == [[0, 0.5, 1, 1.5, 2, 2.5, 3]]


def test_irregular_samples_with_a_gap(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    stream = np.random.default_rng(0)
    for number in (0, 1):
        times = np.arange(400) / 20 + stream.uniform(0, 0.02, 400)
        np.save(tmp_path / "w" / f"{number}.npy", np.delete(times, np.s_[100:200]))  # five seconds are lost
    head = '@dataset("own", files=["w"]'
    given = ', classes=("a", "b"), channels=["x"], units="g", sampling_rate=10, window_seconds=4'
    body = TIMED.replace(head, head + given)
    with pytest.raises(UsageError, match="samples that are NaN, infinite or missing"):
        _frames(tmp_path, body)
    with pytest.raises(
        UsageError, match=r"timestamps: rise by 49\.\d+ s where 10 Hz is 0\.1 s; expected seconds, not milli"
    ):
        _frames(tmp_path, body.replace("timestamps=t", "timestamps=1000 * t"))
    frames = _frames(tmp_path, body.replace(given, f'{given}, gaps="split"'))
    assert len(frames) == 6 * 3  # one window before the gap, two after it
    times = np.load(tmp_path / "w" / "0.npy")
    grid = times[0] + np.arange(40) / 10
    np.testing.assert_allclose(frames.signal(np.array([0]))[0], np.interp(grid, times, np.sin(times)), atol=1e-6)
    np.save(tmp_path / "w" / "1.npy", times[[0, 1, 3, 2, 4]])
    with pytest.raises(UsageError, match=r"recording 3: timestamps: sample 3 \(from 0\) is -0\.\d+ s after"):
        _frames(tmp_path, body)


SESSIONS = """
def session(path):
    file = np.load(path)
    return Recording([file["ecg"], file["skin"]], "ab"[int(path.stem[1:]) % 2], sampling_rate=[50, 4],
                     channels=("ECG", "TEMP"), units=("mV", "degC"))

@dataset("own", files=["s"])
def own(data_root):
    return Recordings.from_folder(data_root / "s", "*.npz", read=session, classes=("a", "b"), window_seconds=5)
"""


def _sessions(tmp_path: Path, seconds: float) -> FrameSet:
    (tmp_path / "s").mkdir()
    for number in range(8):
        ecg = np.random.default_rng(number).normal(size=50 * 30)
        np.savez(tmp_path / "s" / f"s{number}.npz", ecg=ecg, skin=np.full(round(4 * seconds), 33.0))
    return _frames(tmp_path, SESSIONS)


@pytest.mark.parametrize(("seconds", "windows", "noted"), [(30, 6, False), (29.5, 5, False), (28, 5, True)])
def test_channels_that_stop_one_after_another_are_cut(
    seconds: float, windows: int, noted: bool, tmp_path: Path
) -> None:
    frames = _sessions(tmp_path, seconds)
    assert len(frames) == 8 * windows
    np.testing.assert_array_equal(frames.signal(np.arange(len(frames)))[:, 1], 33)
    notes = frames_notes(tmp_path)
    assert "8 recordings: channel TEMP is resampled from 4 to 50 Hz" in notes
    assert ("8 recordings: channel TEMP ends more than a second before others, which are cut to its end" in notes) == (
        noted
    )


def test_channels_of_unequal_duration_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"s0\.npz: signal: channel TEMP lasts 7\.5 s where ECG lasts 30 s"):
        _sessions(tmp_path, 7.5)


def frames_notes(tmp_path: Path) -> tuple[str, ...]:
    """Return the notes of the prepared data set."""
    return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
