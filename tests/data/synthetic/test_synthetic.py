"""Generated ECG: laws of the leads, rhythms true to their names, people who differ, splits that permute people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.data.synthetic.ecg_model import NORMAL_BEAT, P, R, draw_beats
from clops_sweep.data.synthetic.rhythms import RHYTHMS, draw_patient


def test_twelve_leads_have_a_common_source(synthetic: FrameSet) -> None:
    for first in (0, 1200, 12 * 700):
        signal = dict(zip(synthetic.lead_names, synthetic.signal(slice(first, first + 12)), strict=True))
        # Einthoven's and Goldberger's laws, up to rounding to a microvolt
        np.testing.assert_allclose(signal["III"], signal["II"] - signal["I"], atol=2.1e-3)
        np.testing.assert_allclose(signal["aVR"] + signal["aVL"] + signal["aVF"], 0, atol=2.1e-3)
        precordial = np.stack([signal[f"V{number}"] for number in range(1, 7)])
        assert np.linalg.matrix_rank(precordial, tol=0.5) >= 2


def test_a_beat_is_the_sum_of_its_gaussians() -> None:
    beat = NORMAL_BEAT
    drawn = draw_beats(np.array([1.0]), np.array([1.0]), [beat], 1000, 500.0)
    time = np.arange(1000) / 500.0
    bumps = np.exp(-((time[:, None] - 1.0 - beat.centre) ** 2) / (2 * beat.width**2))
    np.testing.assert_allclose(drawn, (bumps @ beat.dipole).T, atol=1e-3)
    assert abs(time[np.argmax(drawn[0])] - 1.0) < 0.01


def _strip(rhythm: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the intervals between beats, whether each has a P wave, and the width of each QRS."""
    stream = np.random.default_rng(seed)
    strip = RHYTHMS[rhythm](draw_patient(stream), stream)
    amplitude = np.array([np.abs(beat.dipole).sum(1) for beat in strip.beats])
    conducted = amplitude[:, R] > 0
    times = np.array(strip.times)
    return np.diff(times[conducted]), amplitude[:, P] > 0, np.array([beat.width[R] for beat in strip.beats])


@pytest.mark.parametrize("seed", range(5))
def test_rhythms_are_what_their_names_say(seed: int) -> None:
    variation = {name: np.std(_strip(name, seed)[0]) / np.mean(_strip(name, seed)[0]) for name in RHYTHMS}
    assert variation["AFIB"] > 0.05 > variation["SVT"]
    assert variation["BIGEMINY"] > 0.15
    assert variation["TRIGEMINY"] > 0.1
    assert not _strip("AFIB", seed)[1].any()
    assert _strip("NSR", seed)[1].all()
    assert _strip("AVB", seed)[1].all()
    for fast in ("SVT", "VT"):
        assert _strip(fast, seed)[0].mean() < 0.57
    pauses = _strip("WENCKEBACH", seed)[0]
    assert pauses.max() > 1.25 * np.median(pauses)
    assert _strip("IVR", seed)[2].min() > 0.02


def test_every_split_seed_has_equal_counts_and_other_people(synthetic: FrameSet, prepared_root: Path) -> None:
    def counts(frames: FrameSet) -> np.ndarray:
        table = np.zeros((3, 12), int)
        np.add.at(table, (frames.split, frames.labels), 1)
        return table

    other = open_frames("synthetic", prepared_root=prepared_root, split_seed=1)
    assert np.array_equal(counts(other), counts(synthetic))
    assert (other.split != synthetic.split).mean() > 0.2
