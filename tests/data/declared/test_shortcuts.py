"""Channels, padding and amplitudes that tell the label without a network: left out, refused or noted."""

from __future__ import annotations

from pathlib import Path

import edfio
import h5py
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from clops_sweep.analysis.look import look
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.declared.markers import looks_like_marker
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, write_wfdb

LABELS = np.arange(12) % 2


def _prepared(tmp_path: Path, body: str) -> PreparedSet:
    declare(tmp_path / "space.py", body)
    return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


def _noise(recordings: int = 12, channels: int = 2, samples: int = 800) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(0, 20, (recordings, channels, samples))


def _edf(tmp_path: Path, name: str, unit: str) -> None:
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *(f"s{n:02},{'AB'[n % 2]}" for n in range(12))]))
    for number, noise in enumerate(_noise()):
        signals = [
            edfio.EdfSignal(each, 100, label=f"A{place}", physical_dimension="uV", physical_range=(-400, 400))
            for place, each in enumerate(noise, 1)
        ]
        code = edfio.EdfSignal(
            np.full(800, 1.0 + number % 2), 100, label=name, physical_dimension=unit, physical_range=(-32768, 32767)
        )
        edfio.Edf([*signals, code]).write(tmp_path / f"s{number:02}.edf")


EDF = """
from clops_sweep import from_edf
@dataset("own")
def own(data_root):
    return Recordings.from_folder(data_root, "*.edf", read={read}, table="labels.csv", name="file", label="label",
                                  window_seconds=2{more})
"""


@pytest.mark.parametrize(("name", "unit"), [("Status", "uV"), ("STI 014", ""), ("X", "Boolean"), ("EventMarker", "mV")])
def test_a_trigger_channel_of_a_file_is_left_out(name: str, unit: str, tmp_path: Path) -> None:
    _edf(tmp_path, name, unit)
    manifest = _prepared(tmp_path, EDF.format(read="from_edf", more="")).manifest
    assert manifest.lead_names == ("A1", "A2")
    assert any(f"channel {name} is left out" in note for note in manifest.notes)


@pytest.mark.parametrize(
    ("read", "more"),
    [("from_edf", ', channels=["A1", "Status"]'), ('lambda path: from_edf(path, ["A1", "Status"])', "")],
)
def test_a_trigger_channel_that_is_named_is_taken(read: str, more: str, tmp_path: Path) -> None:
    _edf(tmp_path, "Status", "uV")
    manifest = _prepared(tmp_path, EDF.format(read=read, more=more)).manifest
    assert manifest.lead_names == ("A1", "Status")
    assert any("channel Status is an input" in note for note in manifest.notes)


@pytest.mark.parametrize("name", ["DIN1", "EVT", "MKR", "Mark", "TRG", "eventcode", "StimCode", "STI101"])
def test_names_of_markers(name: str) -> None:
    assert looks_like_marker(name)


def test_few_values_that_follow_the_labels_are_refused_whatever_their_name(tmp_path: Path) -> None:
    _edf(tmp_path, "A3", "uV")
    with pytest.raises(UsageError, match=r"channel 'A3' has few values, .* 1 in class A, 2 elsewhere; leave it out"):
        _prepared(tmp_path, EDF.format(read="from_edf", more=""))


@pytest.mark.nightly
def test_trigger_channels_of_wfdb_and_generators(tmp_path: Path) -> None:
    for number, noise in enumerate(_noise()):
        signal = np.rint(np.vstack([noise, np.full(800, number % 2)]))
        write_wfdb(tmp_path, f"r{number:02}", signal, 100, ["I", "II", "TRIG"], comments=[f"Dx: {'AB'[number % 2]}"])
    np.save(tmp_path / "x.npy", _noise())
    wfdb = '@dataset("own")\ndef own(data_root):\n    return Recordings.from_wfdb(data_root, "#Dx", window_seconds=2)\n'
    generator = """
    @dataset("own", window_seconds=2)
    def own(data_root):
        for n, x in enumerate(np.load(data_root / "x.npy")):
            yield Recording(np.vstack([x, np.full(800, n % 2)]), n % 2, n, classes=("A", "B"), units="mV",
                            sampling_rate=100, channels=("I", "II", "TRIG"))
    """
    for body in (wfdb, generator):
        manifest = _prepared(tmp_path, body).manifest
        assert manifest.lead_names == ("I", "II")
        assert any("channel TRIG is left out" in note for note in manifest.notes)


@pytest.mark.parametrize("name", ["Trigger", "event_code", "STIM"])
def test_a_column_of_markers_is_refused(name: str, tmp_path: Path) -> None:
    for number, noise in enumerate(_noise()):
        pd.DataFrame({"a": noise[0], name: noise[1]}).to_csv(tmp_path / f"r{number}.csv", index=False)
    (tmp_path / "labels.txt").write_text("\n".join(["file,label", *(f"r{n},{'AB'[n % 2]}" for n in range(12))]))
    with pytest.raises(UsageError, match=f"column '{name}' looks like no signal; give channels"):
        _prepared(
            tmp_path,
            '@dataset("own")\ndef own(data_root):\n    return Recordings.from_folder(data_root, "*.csv", '
            'table="labels.txt", name="file", label="label", sampling_rate=100, units="mV", window_seconds=2)\n',
        )


ARRAYS = """
@dataset("own"{declared})
def own(data_root):
    return Recordings(np.load(data_root / "x.npy"), 100, ("a", "b", "c"), "mV", np.arange(12) % 2, ("A", "B"),
                      range(12), window_seconds=2{more})
"""


def _arrays(tmp_path: Path, third: NDArray[np.float64], declared: str = "", more: str = "") -> PreparedSet:
    np.save(tmp_path / "x.npy", np.concatenate([_noise(), third[:, None]], axis=1))
    return _prepared(tmp_path, ARRAYS.format(declared=declared, more=more))


def _steps(follow: bool) -> NDArray[np.float64]:
    """Return a binary channel [12, 800] whose steps follow the labels, or the number of the recording."""
    found = np.zeros((12, 800))
    for number in range(12):
        found[number, 100 * (number // 2) :: 400] = (1 + number % 2) if follow else 1 + number // 2 % 2
    return found


@pytest.mark.parametrize("resampled", ["", ", resample_to=50"])
def test_an_array_with_a_trigger_channel_is_refused_or_kept_on_purpose(resampled: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"channel 'c' has few values.* 0 and 1 in class A, 0 and 2 elsewhere; leave"):
        _arrays(tmp_path, _steps(True), more=resampled)
    assert _arrays(tmp_path, _steps(True), ', markers="keep"', resampled).manifest.lead_names == ("a", "b", "c")


def test_signals_of_few_values_are_kept(tmp_path: Path) -> None:
    assert _arrays(tmp_path, _steps(False)).manifest.lead_names == ("a", "b", "c")
    levels = np.rint(np.random.default_rng(1).normal(0, 1 + LABELS[:, None], (12, 800)))
    assert _arrays(tmp_path, levels).manifest.lead_names == ("a", "b", "c")


def test_names_of_signals_are_no_markers() -> None:
    signals = [
        "I",
        "aVR",
        "EEG Fpz-Cz",
        "Resp oro-nasal",
        "trigeminal",
        "ax",
        "SpO2",
        "stimulation current",
        "Eventide",
    ]
    assert not any(map(looks_like_marker, signals))


def _padded(tmp_path: Path, more: str = "", declared: str = "") -> PreparedSet:
    signals = _noise(12, 3, 1000)
    signals[LABELS == 1, :, :150] = 0
    signals[LABELS == 1, :, -250:] = 0
    np.save(tmp_path / "x.npy", signals)
    return _prepared(tmp_path, ARRAYS.format(declared=declared, more=more))


def test_padding_is_noted_at_preparation_at_launch_and_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = _padded(tmp_path)
    notes = "\n".join(prepared.manifest.notes)
    assert "flat at the ends of 6 recordings: a median of 400 samples (4 s)" in notes
    assert "shortcuts: class B can be told without a network by padding (median 40 %, others 0 %; AUC 1.00)" in notes
    assert "shortcuts: class A" in notes
    assert "flat at the ends of 6 recordings" in look(prepared)
    PreparedData(tmp_path / "prepared", tmp_path).prepare([DataKey("own", 0, "none", "all")])
    assert "own: padding: all channels are flat" in capsys.readouterr().err


def test_padding_is_cut_on_request(tmp_path: Path) -> None:
    prepared = _padded(tmp_path, ', trim="flat"')
    low, high = prepared.table.statistics[:, 0], prepared.table.statistics[:, 1]
    assert prepared.manifest.frames == 3 * (6 * 5 + 6 * 3)
    assert (low < high).all()
    assert sorted(set(prepared.table.start[prepared.table.labels == 1])) == [1.5, 3.5, 5.5]
    assert any('trim="flat" cut the flat ends of 6 recordings' in note for note in prepared.manifest.notes)
    with pytest.raises(UsageError, match=r"window_seconds: expected the duration of the frames, because trim"):
        _prepared(tmp_path, ARRAYS.format(declared="", more=', trim="flat"').replace(", window_seconds=2", ""))


def test_other_shortcuts_have_a_line_each(tmp_path: Path) -> None:
    signals = _noise(12, 3, 1000)
    signals[LABELS == 1] *= 1000
    signals[LABELS == 0, 1, 100:150] = np.nan
    np.save(tmp_path / "x.npy", signals)
    (line, _) = [
        note
        for note in _prepared(tmp_path, ARRAYS.format(declared="", more=', missing="drop_windows"')).manifest.notes
        if note.startswith("shortcuts")
    ]
    assert "missing samples (median 5 %, others 0 %; AUC 1.00)" in line
    assert "amplitude (median 19.9 mV, others 2e+04 mV; AUC 1.00)" in line
    same = _noise(12, 3, 1000)
    np.save(tmp_path / "x.npy", same)
    assert not any(
        note.startswith("shortcuts") for note in _prepared(tmp_path, ARRAYS.format(declared="", more="")).manifest.notes
    )


def test_markers_of_labelled_intervals_are_refused(tmp_path: Path) -> None:
    for number, noise in enumerate(_noise(4, 1, 1600)):
        states = np.repeat([1.0, 2, 1, 2], 400)
        signals = [
            edfio.EdfSignal(values, 100, label=name, physical_dimension="uV", physical_range=(-400, 400))
            for name, values in (("EEG", noise[0]), ("DC1", 10 * states))
        ]
        notes = [edfio.EdfAnnotation(4.0 * place, 4.0, "AB"[place % 2]) for place in range(4)]
        edfio.Edf(signals, annotations=notes).write(tmp_path / f"n{number}.edf")
    body = """
    from clops_sweep import from_edf
    def night(path):
        return from_edf(path, annotations=True)
    @dataset("own")
    def own(data_root):
        return Recordings.from_folder(data_root, "*.edf", read=night, classes=("A", "B"), window_seconds=2)
    """
    with pytest.raises(UsageError, match=r"channel 'DC1' has few values, and they follow the labels"):
        _prepared(tmp_path, body)


def test_markers_in_hdf5_and_npz_are_refused(tmp_path: Path) -> None:
    signals = np.concatenate([_noise(), _steps(True)[:, None]], axis=1)
    rows = pd.DataFrame({"id": [f"s{n}" for n in range(12)], "label": ["AB"[n % 2] for n in range(12)]})
    rows.to_csv(tmp_path / "labels.csv", index=False)
    with h5py.File(tmp_path / "all.hdf5", "w") as file:
        file["x"], file["ids"] = signals, [name.encode() for name in rows["id"]]
    for name, signal in zip(rows["id"], signals, strict=True):
        np.savez(tmp_path / f"{name}.npz", signal=signal)
    hdf5 = 'from_hdf5(data_root, "*.hdf5", signals="x", ids="ids", units="uV", sampling_rate=100, '
    npz = 'from_folder(data_root, "*.npz", read=from_npz, units="uV", sampling_rate=100, '
    for call in (hdf5, npz):
        body = (
            f'from clops_sweep import from_npz\n@dataset("own")\ndef own(data_root):\n    return Recordings.{call}'
            'table="labels.csv", name="id", label="label", channels=("a", "b", "c"), window_seconds=2)\n'
        )
        with pytest.raises(UsageError, match=r"channel 'c' has few values, and they follow the labels"):
            _prepared(tmp_path, body)
