"""Values such as -9999 that stand for missing samples: noted with counts, and valid signals are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.sentinels import sentinel_notes, sentinels_in
from tests.data.declared_files import declare, forget, waves, write_wfdb

FOLDER = """
@dataset("hospital", scenarios=("class_il",), files=["hospital"])
def hospital(data_root):
    return Recordings.from_folder(
        data_root / "hospital", "*.{ending}", table=TABLE, label="rhythm", patient="patient", sampling_rate=50,
        units="mV", channels={channels}, classes=["a", "b", "c", "d"],
    )

TABLE = pd.DataFrame({{
    "name": [f"r{{number}}" for number in range(16)], "rhythm": ["a", "b", "c", "d"] * 4, "patient": range(16)
}})
"""


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_sentinels_in_files_are_noted_with_their_counts(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "hospital"
    folder.mkdir()
    for number, signal in enumerate(waves(16, 2, 100)):
        if number < 3:
            signal[1, 10:30] = -9999
        if ending == "npy":
            np.save(folder / f"r{number}.npy", signal)
        else:
            pd.DataFrame(signal.T, columns=["I", "II"]).to_csv(folder / f"r{number}.csv", index=False)
    declare(tmp_path / "space.py", FOLDER.format(ending=ending, channels='["I", "II"]'))
    notes = prepare("hospital", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest.notes
    forget()
    said = "channel II: 60 samples of 3 recordings are -9999, far from all other values: if it stands for missing"
    assert [note for note in notes if note.startswith("channel")] == [f"{said} samples, replace it by NaN before"]


def test_missing_samples_that_wfdb_reserves_are_no_sentinels(tmp_path: Path) -> None:
    for number, signal in enumerate((500 * waves(16, 1, 100)).astype(int)):
        if number < 3:
            signal[0, 10:30] = -32768
        write_wfdb(tmp_path / "hospital", f"r{number}", signal, 50)
    reader = 'from_folder(\n        data_root / "hospital", "*.{ending}",'
    body = FOLDER.replace(reader, 'from_wfdb(\n        data_root / "hospital",').format(channels='["ECG"]')
    body = body.replace('sampling_rate=50,\n        units="mV"', 'missing="drop_windows"')
    declare(tmp_path / "space.py", body)
    made = prepare("hospital", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest
    forget()
    assert made.dropped == {"missing samples": 3}
    assert not [note for note in made.notes if note.startswith("channel")]


STREAM = np.random.default_rng(0)
NOISE = STREAM.standard_normal(1000)


def with_run(signal: np.ndarray, value: float, times: int = 20) -> np.ndarray:
    changed = signal.copy()
    changed[100 : 100 + times] = value
    return changed


@pytest.mark.parametrize(
    ("signal", "value", "times"),
    [
        (with_run(NOISE, -9999), -9999.0, 20),
        (with_run((200 * NOISE).astype(np.int16), 32767), 32767.0, 20),
        (with_run(np.where(np.arange(1000) % 7 == 0, np.nan, NOISE), 999, 2), 999.0, 2),
        (with_run(with_run(NOISE, -32768, 40), 9999), 9999.0, 20),
    ],
    ids=["-9999 in mV", "32767 in counts", "beside NaN", "two values"],
)
def test_a_value_far_from_all_others_is_found(signal: np.ndarray, value: float, times: int) -> None:
    assert sentinels_in(signal[None, None])[0, value] == (1, times)


@pytest.mark.parametrize(
    "signal",
    [
        NOISE,
        np.clip(20_000 * NOISE, -32768, 32767).astype(np.int16),  # cut off at the ends of the range of its recorder
        np.clip(500 * NOISE, -999, 999),  # cut off by software
        np.linspace(-9999, 9999, 1000).round(),  # a ramp over the whole range
        np.where(np.arange(1000) % 50 < 5, 999, 0),  # a trigger
        (12_000 + 9_000 * NOISE.clip(-1, 1)).astype(np.int32),  # 9999 is one of many values
        np.full(1000, 999.0),  # a flat line is counted as such
        with_run(NOISE, -500, 20),  # no value that programs reserve
        np.full(1000, np.nan),
    ],
    ids=[
        "noise",
        "full scale",
        "limiter",
        "ramp",
        "trigger",
        "counts",
        "flat",
        "another value",
        "missing",
    ],
)
def test_valid_signals_have_none(signal: np.ndarray) -> None:
    assert sentinels_in(signal[None, None]) == {}


def test_one_value_alone_is_an_artefact_and_two_are_noted() -> None:
    found = sentinels_in(with_run(NOISE, -9999, 1)[None, None])
    assert sentinel_notes([found], ["I"]) == []
    assert sentinel_notes([found, found], ["I"])[0].startswith("channel I: 2 samples of 2 recordings are -9999")
