"""The quality of declared data by ward, against numbers from the arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clops_sweep import Recordings, dataset, prepare
from clops_sweep.data.prepared.quality import Quality, quality_tables
from clops_sweep.data.prepared.quality_cells import quality_cells
from tests.data.declared_files import forget

RATE = 100
UNITS = ("mV", "mV", "bpm")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _recordings() -> list[tuple[str, str, np.ndarray, dict[str, str]]]:
    """Return ward, person, signal and groups of twelve recordings; those of ward B are longer."""
    stream = np.random.default_rng(0)
    recordings = []
    for number in range(12):
        ward = "AB"[number // 6]
        seconds = 2 if ward == "A" else 3 + number % 2
        signal = stream.normal(size=(3, seconds * RATE)).astype(np.float32)
        signal[2] = 60 + 5 * signal[2]
        person = "shared" if number in (0, 6) else f"P{number}"
        recordings.append(
            (ward, person, signal, {"sex": "fm"[number % 2], "age": "" if number == 3 else str(40 + number)})
        )
    recordings[1][2][0, 10] = np.nan  # the first of two windows
    recordings[2][2][:, :RATE] = 1.5  # the first of two windows, in all channels
    recordings[7][2][1, :RATE] = 0.25  # one channel of the first window
    return recordings


def _tables(folder: Path, *, has_wards: bool = True) -> dict[str, list[Quality]]:
    recordings = _recordings()

    @dataset("ward", scenarios=("class_il_union",))
    def ward(data_root: Path | None) -> Recordings:
        groups = [of_recording for _, _, _, of_recording in recordings]
        return Recordings(
            [signal for _, _, signal, _ in recordings], RATE, ["I", "II", "HR"], list(UNITS),
            labels=np.arange(12) % 2, classes=("N", "AF"), patients=[person for _, person, _, _ in recordings],
            domains={"ward": [name for name, _, _, _ in recordings]} if has_wards else None,
            groups={column: [of_recording[column] for of_recording in groups] for column in ("sex", "age")},
            window_seconds=1, missing="drop_windows",
        )  # fmt: skip

    return quality_tables(prepare("ward", prepared_root=folder, data_root=None, workers=1))


def test_the_quality_of_each_ward(tmp_path: Path) -> None:
    ((column, (first, second)),) = _tables(tmp_path).items()
    assert (column, first.name, second.name) == ("ward", "A", "B")
    assert (first.people, first.shared, first.recordings, first.frames) == (6, 1, 6, 10)
    assert (second.people, second.shared, second.recordings, second.frames) == (6, 1, 6, 21)
    assert (first.seconds, second.seconds) == ((2, 2, 2), (3, 3.5, 4))
    assert first.rates == second.rates == (RATE,)
    assert first.missing == pytest.approx(1 / 12)
    assert first.flat == pytest.approx(1 / 12)
    assert second.missing == 0
    assert second.flat == pytest.approx(1 / 63), "one channel of one of 21 frames"
    assert first.ages == {"age": (40, 42, 45)}
    assert (first.unknown, second.unknown) == ({"age": 1}, {"age": 0})
    assert first.categories == {"sex": {"f": 3, "m": 3}}
    of_ward = [signal for name, _, signal, _ in _recordings() if name == "B"]
    voltages = np.concatenate([signal[:2].ravel() for signal in of_ward])
    rates = np.concatenate([signal[2] for signal in of_ward])
    assert second.amplitude["mV"] == pytest.approx(tuple(np.percentile(voltages, (50, 1, 99))), abs=1e-6)
    assert second.amplitude["bpm"] == pytest.approx(tuple(np.percentile(rates, (50, 1, 99))), abs=1e-4)


def test_without_wards_there_is_one_row(tmp_path: Path) -> None:
    ((column, (every,)),) = _tables(tmp_path, has_wards=False).items()
    assert (column, every.name, every.people, every.shared, every.recordings) == ("", "all", 11, 0, 12)
    assert every.missing == pytest.approx(1 / 33)


def test_the_cells_of_the_table(tmp_path: Path) -> None:
    headings, rows = quality_cells("ward", _tables(tmp_path)["ward"])
    cells = [dict(zip(headings, row, strict=True)) for row in rows]
    assert cells[1]["length (s)"] == "3 to 4, median 3.5"
    assert cells[0] | {"mV: median, 1 % to 99 %": "", "bpm: median, 1 % to 99 %": ""} == {
        "ward": "A",
        "people": "6",
        "in another ward, too": "1",
        "recordings": "6",
        "frames": "10",
        "length (s)": "2",
        "Hz": "100",
        "missing": "8.3 %",
        "flat": "8.3 %",
        "mV: median, 1 % to 99 %": "",
        "bpm: median, 1 % to 99 %": "",
        "age": "40 to 45, median 42, 1 missing",
        "sex": "f 3, m 3",
    }
