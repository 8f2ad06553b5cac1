"""Notes on recordings whose scale is unlike the others'."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clops_sweep import Recording, dataset, prepare
from clops_sweep.data.scales import (
    channel_scale_notes,
    domain_scale_notes,
    ecg_scale_notes,
    scale_notes,
    usual_scale_notes,
)
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
    assert not any("usual" in note for note in _notes(tmp_path, {0: 0.2, 1: 4, 7: 5}))


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


def _ward_notes(folder: Path, factors: dict[str, float], *, of: str = "domains", unit: str = "mV") -> list[str]:
    """Return the notes on the scales of wards A, B and C of six recordings each; those of some have a factor."""

    @dataset("ward", scenarios=("class_il_union",), window_seconds=1)
    def ward(data_root: Path | None) -> Iterator[Recording]:
        for number in range(18):
            of_ward = "ABC"[number % 3]
            size = factors.get(of_ward, 1.0) * (0.7 + 0.05 * number)
            yield Recording(
                size * waves(1, 2, 400, seed=number)[0], label=number % 2, patient=f"p{number // 2}",
                name=f"P{number:03}", classes=CLASSES, sampling_rate=100, channels=("I", "II"), units=unit,
                **{of: {"ward": of_ward}},
            )  # fmt: skip

    notes = prepare("ward", prepared_root=folder, data_root=None, workers=1).manifest.notes
    return [note for note in notes if "span" in note]


@pytest.mark.parametrize("of", ["domains", "groups"])
@pytest.mark.parametrize(("factor", "times"), [(10, "10"), (0.1, "10"), (6, "10"), (1000, "1,000")])
def test_a_ward_with_another_gain_is_noted(tmp_path: Path, factor: float, times: str, of: str) -> None:
    (note,) = (note for note in _ward_notes(tmp_path, {"B": factor}, of=of) if "elsewhere" in note)
    assert note.startswith("channels I, II usually span ")
    assert " mV in ward 'B' and " in note
    assert note.endswith(f" mV elsewhere; is a unit or a gain wrong by a factor of {times}?")


def test_wards_of_one_scale_have_no_note(tmp_path: Path) -> None:
    assert _ward_notes(tmp_path, {"A": 0.6, "B": 1.8}) == []


def test_wards_whose_units_have_no_usual_range_have_no_note(tmp_path: Path) -> None:
    assert _ward_notes(tmp_path, {"B": 10}, unit="NU") == []


def test_of_two_wards_the_larger_is_named() -> None:
    spans = np.array([1.0, 1.1, 0.9, 1.2, 10, 11, 9, 12])
    one_lead, recordings = np.zeros(8, np.int16), np.arange(8, dtype=np.int32)
    site = {"site": (np.repeat(np.arange(2, dtype=np.int32), 4), ("X", "Y"))}
    assert domain_scale_notes(spans, one_lead, recordings, site, ["x"], "mV") == [
        "channel x usually spans 10.5 mV in site 'Y' and 1.05 mV elsewhere; is a unit or a gain wrong by a factor of "
        "10?"
    ]
    few = {"site": (np.array([0, 0, 0, 0, 1, 1, 1, 2], np.int32), ("X", "Y", "Z"))}
    assert domain_scale_notes(spans, one_lead, recordings, few, ["x"], "mV") == []


def test_of_four_wards_the_two_larger_are_named() -> None:
    spans = np.repeat([1.0, 1.5, 11.0, 12.0], 4)
    site = {"site": (np.repeat(np.arange(4, dtype=np.int32), 4), tuple("WXYZ"))}
    notes = domain_scale_notes(spans, np.zeros(16, np.int16), np.arange(16, dtype=np.int32), site, ["x"], "mV")
    assert [note.partition("elsewhere")[0] for note in notes] == [
        "channel x usually spans 11 mV in site 'Y' and 1.25 mV ",
        "channel x usually spans 12 mV in site 'Z' and 1.25 mV ",
    ]


def test_ecgs_of_another_gain_are_noted_and_noise_is_not() -> None:
    names = dict(enumerate("abcdefgh"))
    recordings = np.repeat(np.arange(8, dtype=np.int32), 4)
    leads = np.zeros(32, np.int16)
    spans = np.tile([0.8, 1.0, 1.2, 1.0], 8)
    spans[3] = 40.0  # noise in a frame of a
    assert ecg_scale_notes(spans, leads, recordings, names, ["II"], "mV") == []
    spans[recordings == 2] *= 10
    spans[recordings == 5] *= 0.1
    spans[recordings == 6] *= 1000  # which scale_notes names
    assert ecg_scale_notes(spans, leads, recordings, names, ["II"], "mV") == [
        "channel II spans 8 times more than usual in 1 recording: c; is its gain wrong by a factor of 10?",
        "channel II spans 8 times less than usual in 1 recording: f; is its gain wrong by a factor of 10?",
    ]
    assert ecg_scale_notes(spans, leads, recordings, names, ["II"], "V/m") == []
    assert ecg_scale_notes(spans, leads, recordings, names, ["EMG"], "mV") == []
    of_one_frame = ecg_scale_notes(spans[::4], leads[::4], recordings[::4], names, ["II"], "mV")
    assert of_one_frame == [
        "channel II spans 8 times less than usual in 1 recording: f; is its gain wrong by a factor of 10?"
    ]


def test_typical_spans_are_medians_of_moving_frames() -> None:
    """`scale_notes` of frames in any order equals that of medians which are computed recording by recording."""
    stream = np.random.default_rng(0)
    recordings = stream.integers(0, 20, 400).astype(np.int32)
    spans = stream.lognormal(0, 1, 400) * np.where(recordings == 7, 1000, 1)
    spans[stream.random(400) < 0.2] = 0
    medians = {name: np.median(spans[(recordings == name) & (spans > 0)]) for name in range(20)}
    usual = np.median(list(medians.values()))
    odd = [str(name) for name, median in medians.items() if not usual / 300 <= median <= 300 * usual]
    names = {name: str(name) for name in range(20)}
    (note,) = scale_notes(spans, np.zeros(400, np.int16), recordings, names, ["x"])
    assert odd == ["7"]
    assert note == "channel x spans 300 times more or less than usual in 1 recording: 7; another unit?"


def _one_lead(of_sites: list[list[float]]) -> list[str]:
    """Return the notes on the spans of recordings at sites W, X, Y."""
    spans = np.concatenate(of_sites)
    sizes = [len(of_site) for of_site in of_sites]
    site = {"site": (np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), tuple("WXY"[: len(sizes)]))}
    recordings = np.arange(len(spans), dtype=np.int32)
    return domain_scale_notes(spans, np.zeros(len(spans), np.int16), recordings, site, ["x"], "mV")


def test_a_gain_of_3_in_one_ward_is_noted_if_wards_hardly_overlap() -> None:
    usual = np.linspace(0.8, 1.2, 12).tolist()
    threefold = [3 * span for span in usual]
    assert _one_lead([usual, usual, threefold]) == [
        "channel x usually spans 3 mV in site 'Y' and 1 mV elsewhere, and hardly any recording as much as one of the "
        "others; is a gain wrong by a factor of 3?"
    ]
    assert _one_lead([usual, usual, [2.2 * span for span in usual]]) == []
    assert _one_lead([usual[:9], usual[:9], threefold[:9]]) == [], "too few recordings to see that they do not overlap"
    wide = np.geomspace(0.2, 5, 12).tolist()
    assert _one_lead([wide, wide, [3 * span for span in wide]]) == []


@pytest.mark.parametrize(("factor", "is_noted"), [(9.0, False), (1 / 9, False), (12.0, True), (1 / 12, True)])
def test_channels_whose_scales_are_far_apart_are_noted(factor: float, is_noted: bool) -> None:
    leads = np.repeat(np.array([0, 1, 2], np.int16), 3)
    spans = np.array([1.0, 1.0, 500.0, factor, factor, 0.0, 1.0, 1.0, 1.0])
    assert bool(channel_scale_notes(spans, leads, ["a", "b", "c"], "mV")) == is_noted
    assert channel_scale_notes(np.zeros(9), leads, ["a", "b", "c"], "mV") == []


def test_channels_of_a_wearable_are_noted_with_spans_and_remedy() -> None:
    leads = np.array([0, 1, 0, 1], np.int16)
    assert channel_scale_notes(np.array([118.0, 4.0, 122.0, 4.0]), leads, ["EEG", "acc"], "uV, g") == [
        "scales of channels differ by a factor of 30 (usual span in a frame: EEG 120 uV, acc 4 g); with "
        "normalize='none', a network hardly learns from the small ones: set normalize='zscore' in RunConfig"
    ]
