"""Notes on recordings whose scale is unlike the others'."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clops_sweep import Recording, dataset, prepare
from clops_sweep.data.scales import scale_notes, usual_scale_notes
from tests.data.declared_files import forget, waves

CLASSES = ("N", "AF")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _notes(folder: Path, factors: dict[int, float], least: float = 1.0, unit: str = "mV") -> tuple[str, ...]:
    """Return the notes on eight recordings of two leads; II of some is multiplied by a factor."""

    @dataset("ward", scenarios=("class_il_union",), window_seconds=1)
    def ward(data_root: Path | None) -> Iterator[Recording]:
        for number in range(8):
            signal = least * waves(1, 2, 400, seed=number)[0]
            signal[1] *= factors.get(number, 1)
            yield Recording(
                signal, label=number % 2, patient=f"p{number}", name=f"P{number:03}", classes=CLASSES,
                sampling_rate=100, channels=("I", "II"), units=unit,
            )  # fmt: skip

    return prepare("ward", prepared_root=folder, data_root=None, workers=1).manifest.notes


@pytest.mark.parametrize("factor", [1000, 0.001])
def test_a_recording_of_another_unit_is_named_where_it_is_prepared_and_at_launch(tmp_path: Path, factor: float) -> None:
    notes = _notes(tmp_path, {3: factor, 5: 0.5})
    assert [note for note in notes if "usual" in note] == [
        "channel II spans 300 times more or less than usual in 1 recording: P003; another unit?"
    ]


def test_recordings_of_one_scale_have_no_note(tmp_path: Path) -> None:
    assert not any("usual" in note for note in _notes(tmp_path, {0: 0.1, 1: 8, 7: 30}))


def test_a_unit_that_no_signal_has_is_noted(tmp_path: Path) -> None:
    spans = np.ptp(waves(1, 2, 400, seed=0)[0])
    notes = _notes(tmp_path, {}, least=1000 / spans)  # about 1,000 mV
    assert any(note.endswith(" mV in a frame; is the unit wrong by a factor of 1,000?") for note in notes), notes


def test_a_unit_that_is_no_voltage_is_not_judged() -> None:
    leads = np.array([0, 1, 0, 1], np.int16)
    assert usual_scale_notes(np.full(4, 900.0), leads, ["x", "y"], "au") == []
    assert usual_scale_notes(np.full(4, 900.0), leads, ["I", "II"], "mV") == [
        "channels usually span 900 mV in a frame; is the unit wrong by a factor of 1,000?"
    ]


def test_milligravities_called_g_are_noted_beside_channels_of_other_units() -> None:
    leads = np.array([0, 1, 2, 0, 1, 2], np.int16)
    spans = np.array([4000.0, 3000.0, 900.0, 4000.0, 3000.0, 900.0])
    assert usual_scale_notes(spans, leads, ["ax", "ay", "ppg"], "g, g, au") == [
        "channels ax, ay usually span 3,500 g in a frame; is the unit wrong by a factor of 1,000?"
    ]
    assert usual_scale_notes(spans / 1000, leads, ["ax", "ay", "ppg"], "g, g, au") == []


def test_few_recordings_and_flat_frames_have_no_usual_scale() -> None:
    spans = np.array([1.0, 1.0, 1000.0, 0.0])
    nothing = np.zeros(4, np.int16)
    assert scale_notes(spans, nothing, np.arange(4, dtype=np.int32), dict(enumerate("abcd")), ["I"]) == []
