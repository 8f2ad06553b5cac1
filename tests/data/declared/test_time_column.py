"""A column of times beside the signals of a text or Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.declared.time_column import notes_on_times
from clops_sweep.data.preparing.prepare import prepare
from tests.data.declared_files import declare, forget, waves

RATE, SAMPLES = 10.0, 40
EVEN = np.arange(SAMPLES) / RATE
GAP = EVEN + 5 * (np.arange(SAMPLES) > 15)
JUMPS = (
    "column 'time' jumps: samples around a gap are taken as neighbours; read=function with Recording(timestamps=...)"
)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget()


def notes_of(
    folder: Path, times: object, kind: str = "csv", channel: str = '"ecg"', as_index: bool = False
) -> list[str]:
    """Return the notes on a data set of eight files with a column of times, or with times as pandas' index."""
    (folder / "data").mkdir(exist_ok=True)
    for number, wave in enumerate(waves(8, 1, SAMPLES)):
        table = pd.DataFrame({"time": times, "ecg": wave[0]})
        path = folder / "data" / f"s{number}.{kind}"
        if as_index:
            table = table.set_index("time").rename_axis(None)
        if kind == "csv":
            table.to_csv(path, index=as_index)
        else:
            table.to_parquet(path)
    space = declare(
        folder / "space.py",
        f"""
@dataset("own", files=["data"], one_recording_per_person=True)
def own(data_root):
    table = pd.DataFrame({{"file": [f"s{{n}}" for n in range(8)], "kind": ["a", "b"] * 4}})
    return Recordings.from_folder(
        data_root / "data", "*.{kind}", table=table, name="file", label="kind", classes=("a", "b"),
        channels=[{channel}], units="mV", sampling_rate={RATE},
    )
""",
    )
    manifest = prepare("own", prepared_root=space.parent / "prepared", data_root=folder, workers=1).manifest
    return [note.removeprefix("8 recordings: ") for note in manifest.notes if "column" in note]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_times_that_fit_are_not_noted(tmp_path: Path, kind: str) -> None:
    assert notes_of(tmp_path, EVEN, kind) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("dated", [False, True])
def test_a_gap_is_noted(tmp_path: Path, kind: str, dated: bool) -> None:
    times = pd.Timestamp("2021-03-04 10:00") + pd.to_timedelta(GAP, "s") if dated else GAP
    (note,) = notes_of(tmp_path, times, kind)
    assert note.startswith(JUMPS)


def test_another_rate_is_noted_also_for_channels_by_position(tmp_path: Path) -> None:
    expected = ["column 'time' has steps of 0.05, which are no 0.1 s in any unit: is sampling_rate=10 right?"]
    assert notes_of(tmp_path, EVEN / 2, channel="1") == expected


def test_times_that_go_back_are_noted(tmp_path: Path) -> None:
    assert notes_of(tmp_path, EVEN[::-1]) == [
        "column 'time' goes back: the samples are taken in the order of their lines"
    ]


@pytest.mark.parametrize("unit", [1, 1e3, 1e6, 1e9, 1 / 60, 1 / 3600, 1 / 86400])
def test_times_of_any_unit_fit(unit: float) -> None:
    assert notes_on_times("time", 1.7e9 * unit + np.arange(300) / RATE * unit, RATE) == []


def test_rounded_times_and_counters_fit() -> None:
    rounded = np.round(np.arange(3000) / 256, 2)
    assert notes_on_times("time", rounded, 256.0) == []
    assert notes_on_times("time", np.arange(50.0), 256.0) == []


@pytest.mark.parametrize(("kind", "name"), [("csv", "Unnamed: 0"), ("parquet", "__index_level_0__")])
def test_an_index_of_pandas_that_jumps_or_goes_back_is_noted(kind: str, name: str, tmp_path: Path) -> None:
    dropped = np.delete(np.arange(SAMPLES + 5), range(10, 15))
    (note,) = notes_of(tmp_path, dropped, kind, as_index=True)
    assert note.startswith(f"column {name!r} jumps")
    (note,) = notes_of(tmp_path, np.roll(np.arange(SAMPLES), 5), kind, as_index=True)
    assert note.startswith(f"column {name!r} goes back")
    (note,) = notes_of(tmp_path, pd.Timestamp("2021-03-04 10:00") + pd.to_timedelta(GAP, "s"), kind, as_index=True)
    assert note.startswith(f"column {name!r} jumps")
    assert notes_of(tmp_path, np.arange(SAMPLES), kind, as_index=True) == []
