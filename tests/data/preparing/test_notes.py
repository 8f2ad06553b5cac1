"""Notes of a preparation that name recordings: flat channels, and rates of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import Recording, dataset, prepare
from tests.data.declared_files import forget, waves

CLASSES = ("N", "AF")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _notes(folder: Path, *, rates: tuple[int, ...], flat: int | None) -> tuple[str, ...]:
    """Return the notes on a recording of 4 s and two leads for each rate; one has V2 flat in its last 2 s."""

    @dataset("ward", scenarios=("class_il_union",), resample_to=100, window_seconds=1)
    def ward(data_root: Path | None) -> Iterator[Recording]:
        for number, rate in enumerate(rates):
            signal = waves(1, 2, 4 * rate, seed=number)[0]
            if number == flat:
                signal[1, 2 * rate :] = 0
            yield Recording(
                signal, label=number % 2, patient=f"p{number}", name=f"P{number:03}", classes=CLASSES,
                sampling_rate=rate, channels=("I", "V2"), units="mV",
            )  # fmt: skip

    return prepare("ward", prepared_root=folder, data_root=None, workers=1).manifest.notes


def test_a_flat_channel_is_noted_with_its_recordings(tmp_path: Path) -> None:
    assert "channel V2 is flat in 2 frames of 1 recording: P002" in _notes(tmp_path, rates=(100,) * 6, flat=2)


def test_recordings_of_another_rate_are_noted(tmp_path: Path) -> None:
    notes = _notes(tmp_path, rates=(100, 100, 100, 50, 100, 50), flat=None)
    assert "2 recordings of 50 Hz resampled to 100 Hz: P003, P005" in notes
    assert not any("flat" in note for note in notes)


def test_recordings_of_one_rate_have_no_note_on_it(tmp_path: Path) -> None:
    assert not any("resampled" in note for note in _notes(tmp_path, rates=(50,) * 6, flat=None))
