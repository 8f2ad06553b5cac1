"""Signals that are cut off at the end of their range: noted with counts, and other plateaus are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from clops_sweep.data.clipping import Clipped, clipped_in, clipping_notes
from clops_sweep.data.preparing.prepare import prepare
from tests.data.declared_files import declare, forget, waves

TIME = np.arange(2000) / 100
NOISE = 0.02 * np.random.default_rng(0).standard_normal(len(TIME))
SINE = np.sin(2 * np.pi * 1.3 * TIME)
ZERO = np.zeros(1)


def clipped(signal: NDArray[np.float64], zeros: NDArray[np.float64] = ZERO) -> dict[int, Clipped]:
    return dict(clipped_in(signal[None, None], zeros, {}))


@pytest.mark.parametrize("low", [-0.8, -np.inf])
@pytest.mark.parametrize("scale", [1, 1000])
def test_a_signal_that_is_cut_off_is_counted(low: float, scale: int) -> None:
    whole = SINE + NOISE
    cut = np.clip(whole, low, 0.8)
    stored = np.round(scale * cut) if scale > 1 else cut
    outside = (whole >= 0.8) | (whole <= low)
    found = clipped(stored)
    assert found[0].recordings == 1
    assert found[0].samples == len(TIME)
    assert 0.8 * outside.sum() < found[0].plateaus <= 1.02 * outside.sum() + 2


@pytest.mark.parametrize(
    "signal",
    [
        pytest.param(SINE + NOISE, id="whole"),
        pytest.param(np.round(40 * np.sin(2 * np.pi * 0.1 * TIME)), id="the crests of a slow wave in coarse steps"),
        pytest.param(np.repeat((np.round(10 * (SINE + NOISE)))[::8], 8), id="a slower channel that holds each value"),
        pytest.param(np.maximum(SINE + NOISE, 0), id="rectified"),
        pytest.param(np.round(2 * SINE), id="few levels"),
        pytest.param(np.where((TIME > 5) & (TIME < 7), 3.0, SINE + NOISE), id="an electrode that came off once"),
        pytest.param(np.where(TIME > 15, -2.0, SINE + NOISE), id="a flat end"),
        pytest.param(np.zeros(2000), id="flat"),
        pytest.param(np.where(TIME % 1 < 0.1, np.nan, SINE + NOISE), id="missing samples"),
    ],
)
def test_other_plateaus_are_no_end_of_a_range(signal: NDArray[np.float64]) -> None:
    assert not clipped(signal)


def test_the_stored_zero_may_be_an_end_of_the_range() -> None:
    """Converters without sign store the lowest value as 0."""
    stored = np.clip(np.round(700 * (SINE + NOISE) + 600), 0, 2047)
    assert clipped(stored, np.array([600.0]))
    assert not clipped(stored)


def test_values_that_stand_for_missing_samples_are_no_end_of_a_range() -> None:
    signal = np.round(1000 * (SINE + NOISE))
    signal[100:130] = signal[900:950] = -9999
    assert clipped(signal)
    assert not clipped_in(signal[None, None], ZERO, {(0, -9999.0): (1, 80)})


def test_one_recording_of_many_is_not_noted() -> None:
    one = {0: Clipped(1, 20, 2000)}
    assert clipping_notes([one], 101, ["I"]) == []
    assert clipping_notes([one], 100, ["I"])[0].startswith("channel I: 1 recording of 100 lies at")


def test_recordings_that_are_cut_off_are_noted(tmp_path: Path) -> None:
    folder = tmp_path / "hospital"
    folder.mkdir()
    for number, signal in enumerate(waves(16, 2, 400)):
        if number < 5:
            signal[1] = np.clip(signal[1], -0.7, 0.7)
        np.save(folder / f"r{number}.npy", signal)
    rows = {"name": [f"r{number}" for number in range(16)], "rhythm": ["a", "b", "c", "d"] * 4, "patient": range(16)}
    pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)
    declare(
        tmp_path / "space.py",
        """
@dataset("hospital", scenarios=("class_il",), files=["hospital"])
def hospital(data_root):
    return Recordings.from_folder(
        data_root / "hospital", "*.npy", table="table.csv", label="rhythm", patient="patient", sampling_rate=50,
        units="mV", channels=["I", "II"], classes=["a", "b", "c", "d"],
    )
""",
    )
    notes = prepare("hospital", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest.notes
    forget()
    (note,) = [note for note in notes if note.startswith("channel")]
    assert note.startswith("channel II: 5 recordings of 16 lie at the highest or lowest value for ")
