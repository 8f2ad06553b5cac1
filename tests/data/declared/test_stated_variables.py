"""Variables beside the samples of MAT and NPZ files that contradict what is declared, wherever it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from clops_sweep import from_npz
from clops_sweep.data.preparing.prepare import prepare
from tests.data.declared_files import declare, waves

X = waves(8, 2, 120).astype(float)
TIME = np.arange(120) / 100
GIVEN = 'sampling_rate=100, channels=("I", "II"), units="mV"'
TO_READER = f"read=lambda path: READER(path, SIGNAL, {GIVEN})"
TO_FOLDER = f"read=lambda path: READER(path, SIGNAL), {GIVEN}"


def _npz(path: Path, variables: Mapping[str, Any]) -> None:
    np.savez(path.with_suffix(".npz"), **variables)


def _mat(path: Path, variables: Mapping[str, Any]) -> None:
    savemat(path.with_suffix(".mat"), dict(variables))


def _struct(path: Path, variables: Mapping[str, Any]) -> None:
    savemat(path.with_suffix(".mat"), {"ecg": dict(variables)})


KINDS = {"npz": (_npz, '"signal"'), "mat": (_mat, '"signal"'), "mat struct": (_struct, '"ecg.signal"')}


def notes(folder: Path, kind: str, how: str, stated: Mapping[str, Any]) -> list[str]:
    """Return the notes on variables beside the samples of eight files."""
    write, signal = KINDS[kind]
    for number, values in enumerate(X):
        write(folder / f"r{number}", {"signal": values, **stated})
    rows = [f"r{number},{'AB'[number % 2]}" for number in range(8)]
    (folder / "labels.csv").write_text("\n".join(["name,label", *rows]))
    ending = kind.partition(" ")[0]
    reader = how.replace("READER", f"from_{ending}").replace("SIGNAL", signal)
    declare(
        folder / "space.py",
        f"""
        from clops_sweep import from_mat, from_npz

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            table = dict(table="labels.csv", name="name", label="label")
            return Recordings.from_folder(data_root, "r*.{ending}", {reader}, **table)
        """,
    )
    manifest = prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest
    return [note.partition("8 recordings: ")[2] for note in manifest.notes if "variable" in note]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [TO_READER, TO_FOLDER], ids=["reader", "folder"])
@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"fs": 250}, "its variable fs is 250, and sampling_rate is 100: check it"),
        ({"dt": 0.004}, "its variable dt is 0.004, which is no 0.01 s in any unit: check it"),
        ({"units": "uV"}, "its variable units says that it is in uV, and units is mV: check it"),
        ({"leads": ["II", "I"]}, "its variable says leads = II, I, and channels are I, II: check it"),
        (
            {"time": TIME * 0.4},
            "variable 'time' has steps of 0.004, which are no 0.01 s in any unit: is sampling_rate=100 right?",
        ),
        (
            {"t": np.where(np.arange(120) < 60, TIME, TIME + 5)},
            "variable 't' jumps: samples around a gap are taken as neighbours; read=function with "
            "Recording(timestamps=...) keeps gaps",
        ),
    ],
)
def test_what_variables_state_otherwise_is_noted(
    kind: str, how: str, stated: dict[str, Any], said: str, tmp_path: Path
) -> None:
    assert notes(tmp_path, kind, how, stated) == [said]


@pytest.mark.parametrize("kind", ["npz", "mat"])
@pytest.mark.parametrize("how", [TO_READER, TO_FOLDER], ids=["reader", "folder"])
@pytest.mark.parametrize(
    "stated",
    [
        {"fs": 100, "units": "mV", "leads": ["I", "II"], "time": TIME},
        {"dt": 10, "time": 1000 * TIME},  # ms
        {"units": ["mV", "mV"], "unit": "uV"},  # the first one counts
        {"t": X[0, 0]},  # no times
        {"time": TIME[:50], "units": "furlong", "dt": [0.1, 0.2]},
    ],
)
def test_what_agrees_or_is_something_else_has_no_note(
    kind: str, how: str, stated: dict[str, Any], tmp_path: Path
) -> None:
    assert notes(tmp_path, kind, how, stated) == []


def test_what_the_caller_says_on_purpose_is_not_compared(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", signal=X[0], units="uV", time=TIME * 0.4)
    scaled = from_npz(tmp_path / "a.npz", channels=["I", "II"], units="mV", gain=0.001)
    assert scaled.notes == []
    timed = from_npz(tmp_path / "a.npz", channels=["I", "II"], units="uV", sampling_rate=100, timestamps="time")
    assert timed.notes == []
    np.savez(tmp_path / "b.npz", signal=X[0, 0], units="uV", fs=250)
    assert from_npz(tmp_path / "b.npz", units="mV", sampling_rate=100).notes == [
        "its variable fs is 250, and sampling_rate is 100: check it",
        "its variable units says that it is in uV, and units is mV: check it",
    ]


def test_a_generator_compares_with_the_values_of_its_data_set(tmp_path: Path) -> None:
    for number, values in enumerate(X):
        np.savez(tmp_path / f"r{number}.npz", signal=values, fs=250)
    declare(
        tmp_path / "space.py",
        """
        from dataclasses import replace
        from clops_sweep import from_npz

        @dataset("own", classes=("A", "B"), channels=("I", "II"), units="mV", sampling_rate=100)
        def own(data_root):
            for number in range(8):
                yield replace(from_npz(data_root / f"r{number}.npz"), label="AB"[number % 2], patient=number)
        """,
    )
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest
    assert "8 recordings: its variable fs is 250, and sampling_rate is 100: check it" in manifest.notes


@pytest.mark.parametrize(("step", "is_noted"), [(0.004, True), (0.01, False), (10, False)])
@pytest.mark.parametrize("layout", ["x", "*/x"])
def test_times_beside_the_samples_of_hdf5_are_compared(
    layout: str, step: float, is_noted: bool, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if layout == "x":
            file["x"], file["time"] = X, np.arange(120) * step
            file["time"].make_scale("time")
            file["x"].dims[2].attach_scale(file["time"])
        else:
            for number, values in enumerate(X):
                file[f"{number}/x"], file[f"{number}/time"] = values, np.arange(120) * step
    rows = [f"{number},{'AB'[number % 2]}" for number in range(8)]
    (tmp_path / "labels.csv").write_text("\n".join(["name,label", *rows]))
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            table = dict(table="labels.csv", name="name", label="label")
            return Recordings.from_hdf5(data_root, "a.h5", signals={layout!r}, {GIVEN}, **table)
        """,
    )
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest
    said = "8 recordings: dataset 'time' has steps of 0.004, which are no 0.01 s in any unit: is sampling_rate=100"
    assert any(note.startswith(said) for note in manifest.notes) == is_noted
    assert any("dataset 'time'" in note for note in manifest.notes) == is_noted
