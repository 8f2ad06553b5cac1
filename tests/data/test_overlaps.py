"""Sketches of frames: how often overlapping frames are found, and what says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from clops_sweep.data.overlaps import LENGTH, sketches

SAMPLES = 500


def noise(samples: int, dtype: str, seed: int = 0) -> NDArray[np.generic]:
    signal = np.random.default_rng(seed).standard_normal(samples)
    return (1000 * signal).astype(dtype) if dtype.startswith("i") else signal.astype(dtype)


def cut(signal: NDArray[np.generic], step: int) -> NDArray[np.generic]:
    """Return the frames that begin every few samples."""
    return np.stack([signal[begin : begin + SAMPLES] for begin in range(0, len(signal) - SAMPLES + 1, step)])


def share_found(frames: NDArray[np.generic]) -> float:
    """Return the share of neighbouring frames with a digest in common."""
    found = []
    for one, next_one in zip(sketches(frames)[:-1], sketches(frames)[1:], strict=True):
        found.append(bool(set(one.tolist()) & set(next_one.tolist()) - {b""}))
    return float(np.mean(found))


@pytest.mark.parametrize("dtype", ["i2", "i4", "f4"])
@pytest.mark.parametrize("overlap", [0.25, 0.5, 0.75])
def test_overlapping_frames_are_found_as_often_as_the_formula_says(dtype: str, overlap: float) -> None:
    step = int(SAMPLES * (1 - overlap))
    runs = SAMPLES - LENGTH + 1
    in_common = (runs - step) / (runs + step)  # runs that both frames have, among those that one has
    expected = 1 - (1 - in_common) ** 4
    frames = cut(noise(200_000, dtype), step)
    deviation = np.sqrt(expected * (1 - expected) / len(frames))
    assert abs(share_found(frames) - expected) < 6 * deviation  # neighbouring pairs are not independent


@pytest.mark.parametrize("dtype", ["i2", "f4"])
def test_frames_of_other_samples_have_no_digest_in_common(dtype: str) -> None:
    digests = sketches(cut(noise(500_000, dtype), SAMPLES)).ravel()
    assert len(np.unique(digests)) > 0.9 * len(digests)  # two functions may choose one run
    assert share_found(cut(noise(500_000, dtype), SAMPLES)) == 0


@pytest.mark.parametrize(
    "signal",
    [
        pytest.param(np.zeros(SAMPLES, "i2"), id="flat"),
        pytest.param(np.arange(SAMPLES, dtype="i2"), id="a ramp"),
        pytest.param((np.arange(SAMPLES) // 50 % 2).astype("i2"), id="steps"),
        pytest.param(np.full(SAMPLES, np.nan, "f4"), id="missing samples"),
    ],
)
def test_what_unrelated_signals_share_has_no_digest(signal: NDArray[np.generic]) -> None:
    assert not sketches(signal[None]).any()


def test_frames_that_are_too_short_have_no_digest() -> None:
    assert not sketches(noise(10 * (LENGTH - 1), "i2").reshape(10, -1)).any()
    assert sketches(noise(10 * LENGTH, "i2").reshape(10, -1)).all()


def test_sketches_do_not_depend_on_what_is_beside_a_frame() -> None:
    frames = cut(noise(300_000, "f4"), 100)
    one_by_one = np.concatenate([sketches(frame[None]) for frame in frames])
    np.testing.assert_array_equal(sketches(frames), one_by_one)
