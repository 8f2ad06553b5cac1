"""Hearts that beat too slowly or too fast in the median: a note that the sampling rate may be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clops_sweep.data.heart_rates import beats_a_minute
from clops_sweep.data.preparing.prepare import prepare
from tests.data.declared_files import declare, forget

ECG = """
import numpy as np


def ecg(beats, seed, rate, seconds=10):
    stream = np.random.default_rng(seed)
    time = np.arange(seconds * rate) / rate
    at = np.cumsum(60 / beats * (1 + 0.04 * stream.standard_normal(200)))
    signal = 0.03 * stream.standard_normal(len(time))
    for width, height, later in ((0.012, 1.0, 0.0), (0.05, 0.25, 0.25), (0.03, 0.12, -0.16)):
        for moment in at[at < seconds + 1]:
            signal += height * np.exp(-(((time - moment - later) / width) ** 2) / 2)
    return signal
"""

WARDS = """
COMMON = dict(channels=("{channel}",), units="{units}", sampling_rate={rate}, window_seconds={window})


@dataset("hospital", classes=("a", "b"), **COMMON)
def hospital(data_root):
    for number in range(48):
        ward = "AB"[number % 2]
        beats = 55 + 30 * (number % 12) / 12
        true = {true_a} if ward == "A" else {true_b}
        yield Recording(ecg(beats, number, true)[None], number % 3 % 2, f"p{{number}}", domains={{"ward": ward}})
"""


def made(beats: float, rate: int, seconds: int = 10, seed: int = 0) -> NDArray[np.float64]:
    names: dict[str, object] = {}
    exec(ECG, names)  # the declared data sets below have the same signals
    signal: NDArray[np.float64] = names["ecg"](beats, seed, rate, seconds)  # type: ignore[operator]
    return signal


@pytest.mark.parametrize("rate", [100, 250, 500])
@pytest.mark.parametrize("beats", [40, 62, 75, 96, 130, 180])
def test_the_heart_rate_is_that_of_the_beats(beats: float, rate: int) -> None:
    rates = [beats_a_minute(made(beats, rate, seconds, seed), rate) for seconds in (10, 30) for seed in range(5)]
    assert np.median(rates) == pytest.approx(beats, rel=0.05)


@pytest.mark.parametrize(
    "signal",
    [
        pytest.param(np.random.default_rng(0).standard_normal(2500), id="noise"),
        pytest.param(np.zeros(2500), id="flat"),
        pytest.param(np.full(2500, np.nan), id="missing samples"),
        pytest.param(made(70, 250)[:1000], id="too short"),
    ],
)
def test_without_a_rhythm_there_is_no_heart_rate(signal: NDArray[np.float64]) -> None:
    assert np.isnan(beats_a_minute(signal, 250))


def notes(tmp_path: Path, **values: object) -> list[str]:
    given = {"channel": "ECG", "units": "mV", "rate": 250, "window": 10, "true_a": 250, "true_b": 250} | values
    declare(tmp_path / "space.py", ECG + WARDS.format(**given))
    said = prepare("hospital", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest.notes
    forget()
    return [note for note in said if "beat" in note]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"true_a": 500}, ["ward 'A': hearts seem to beat 34 times a minute in the median, and 68 elsewhere; is its"]),
        ({"true_a": 125, "window": 5}, ["ward 'A': hearts seem to beat 137 times a minute in the median, and 68"]),
        ({"true_a": 500, "true_b": 500}, ["hearts seem to beat 34 times a minute in the median of 48 recordings: is"]),
        ({"true_a": 500, "window": 2}, []),  # too short for a rhythm
        ({"true_a": 500, "channel": "EEG"}, []),
        ({"true_a": 500, "units": "1"}, []),
    ],
)
def test_a_wrong_sampling_rate_of_a_ward_is_noted(
    values: dict[str, object], expected: list[str], tmp_path: Path
) -> None:
    said = notes(tmp_path, **values)
    assert len(said) == len(expected)
    for note, begin in zip(said, expected, strict=True):
        words, numbers = _parted(note)
        expected_words, expected_numbers = _parted(begin)
        assert words[: len(expected_words)] == expected_words
        np.testing.assert_allclose(numbers, expected_numbers, rtol=0.1)


def _parted(text: str) -> tuple[list[str], list[float]]:
    """Return the words of a text and its numbers."""
    words = [word for word in text.split() if not word.isdecimal()]
    return words, [float(word) for word in text.split() if word.isdecimal()]


def test_the_hearts_of_published_recordings_beat_as_hearts_do(data_root: Path) -> None:
    wfdb = pytest.importorskip("wfdb")
    headers = sorted((data_root / "mitdb").glob("*.hea"))
    if not headers:
        pytest.skip("MIT-BIH Arrhythmia is not in the data root")
    rates = []
    for header in headers:
        record = wfdb.rdrecord(str(header.with_suffix("")), channels=[0], sampto=3600 * 3)
        rates.append(beats_a_minute(record.p_signal[:, 0], record.fs))
    assert np.isfinite(rates).mean() > 0.8
    assert 60 < np.nanmedian(rates) < 90
