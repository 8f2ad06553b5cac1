"""Samples at another rate: what a filter must keep at the ends of a signal and beside missing samples."""

from __future__ import annotations

import numpy as np
import pytest

from clops_sweep.data.files.resampling import at_rate, resampling_notes
from clops_sweep.data.records import Common
from clops_sweep.data.windowing import Windowing

RATES = [(1, 500), (4, 64), (64, 700), (300, 500), (360, 250), (500, 100), (700, 4), (256.4103, 500), (499.5, 500)]


@pytest.mark.parametrize(("rate", "wanted"), RATES)
@pytest.mark.parametrize("samples", [1, 2, 3, 30, 2500])
def test_a_constant_stays_a_constant_and_a_ramp_a_ramp(rate: float, wanted: float, samples: int) -> None:
    constant = at_rate(np.full(samples, 95.0), rate, wanted)
    assert len(constant) == np.ceil(np.round(samples * wanted / rate, 6))
    np.testing.assert_allclose(constant, 95, atol=1e-9)
    if samples > 1:
        ramp = at_rate(np.linspace(-3, 5, samples), rate, wanted)
        seconds = np.arange(len(ramp)) / wanted
        step = 8 / (samples - 1)
        np.testing.assert_allclose(ramp, -3 + step * seconds * rate, atol=0.01 * step)


@pytest.mark.parametrize(("rate", "wanted"), [(50, 700), (50, 70), (300, 500), (500, 100)])
def test_a_sine_stays_a_sine_up_to_both_ends(rate: float, wanted: float) -> None:
    for phase in (0, 1, 2):
        seconds = np.arange(round(4 * rate)) / rate
        found = at_rate(np.sin(2 * np.pi * 3 * seconds + phase), rate, wanted)
        within = np.arange(len(found)) / wanted
        within = within[within <= seconds[-1]]
        np.testing.assert_allclose(found[: len(within)], np.sin(2 * np.pi * 3 * within + phase), atol=0.03)


def test_an_impulse_at_an_end_rings_no_more_than_one_within() -> None:
    outer, inner = np.zeros((2, 60))
    outer[0], inner[30] = 1, 1
    assert np.abs(at_rate(outer, 1, 16)[16:]).max() <= 2 * np.abs(at_rate(inner, 1, 16)[31 * 16 :]).max()
    assert at_rate(inner, 1, 16).argmax() == 30 * 16
    assert at_rate(inner, 1, 16)[30 * 16] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("rate", "wanted"), [(1, 8), (8, 1), (3, 2), (5, 7)])
def test_a_missing_sample_is_missing_for_as_long_as_it_lasts(rate: int, wanted: int) -> None:
    """Every sample of the result that one of 17 to 19 or the last one lasts into, and no other."""
    values = np.full((2, 80), 7.0)
    values[1, 17:20] = np.nan
    values[1, 79] = np.inf
    found = at_rate(values, rate, wanted)
    np.testing.assert_allclose(found[0], 7)
    expected = np.zeros(found.shape[1], bool)
    for place in range(len(expected)):
        covered = np.arange(place * rate, (place + 1) * rate) // wanted
        expected[place] = not np.isfinite(values[1, covered[covered < 80]]).all()
    np.testing.assert_array_equal(np.isnan(found[1]), expected)
    np.testing.assert_allclose(found[1][~expected], 7)


def test_pieces_keep_their_times() -> None:
    seconds = np.arange(600) / 50
    values = np.sin(2 * np.pi * 2 * seconds)
    values[np.r_[200:230, 333]] = np.nan
    found = at_rate(values, 50, 70)
    known = np.isfinite(found)
    truth = np.sin(2 * np.pi * 2 * np.arange(len(found)) / 70)
    np.testing.assert_allclose(found[known], truth[known], atol=0.05)


def test_a_ratio_of_no_small_numbers_does_not_drift() -> None:
    """An hour at 256.0123 Hz: the ratio to 256 Hz rounded to four digits would end 0.1 s too late."""
    rate, samples = 256.0123, 256 * 3600
    values = np.arange(samples) / rate
    assert len(at_rate(values, rate, 256)) == pytest.approx(samples / rate * 256, abs=1)
    np.testing.assert_allclose(at_rate(values, rate, 256), np.arange(len(at_rate(values, rate, 256))) / 256, atol=0.002)


def test_frames_have_their_number_of_samples() -> None:
    assert at_rate(np.ones((3, 1282)), 256.4103, 500, 2500).shape == (3, 2500)


def test_frames_of_one_rate_keep_their_slope() -> None:
    """By the Fourier method, frames of a ramp rang by 40 % of its range where they end."""
    common = Common(("a", "b"), ("x",), "mV", windowing=Windowing(rate=500))
    frames = common.frames(np.linspace(-1, 1, 1800)[None], 360, "r")
    np.testing.assert_allclose(frames[0], np.linspace(-1, -1 + 2 * 2499 / 500 * 360 / 1799, 2500), atol=1e-4)
    half = common.frames(np.r_[np.zeros(900), np.full(900, np.nan)][None], 360, "r")
    np.testing.assert_array_equal(np.isfinite(half[0]), np.arange(2500) < 1250)


def test_channels_of_one_rate_share_a_note() -> None:
    rates = [("ECG", 200.0), ("Resp", 50.0), ("EDA", 4.0), ("SpO2", 50.0)]
    assert resampling_notes(rates, 200) == [
        "channels Resp, SpO2 are resampled from 50 to 200 Hz",
        "channel EDA is resampled from 4 to 200 Hz",
    ]
    assert resampling_notes(rates[:1], 200) == []
