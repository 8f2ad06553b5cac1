"""Only declared rules adapt signals; others are refused in a sentence that names the mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import resample

from clops_sweep.data.files.filters import Filters
from clops_sweep.experiment.plugins.declarations import EncoderInput
from clops_sweep.learning.encoders.adapting import Signals, adapter


def signals(**changes: Any) -> Signals:
    found: dict[str, Any] = {
        **{"dataset": "d", "channels": ["I", "II", "aVR"], "samples": 1000},
        **{"sampling_rate": 100.0, "normalize": "none", "unit": "mV"},
    }
    return Signals(**(found | changes))


def taking(*adapt: str, **takes: Any) -> EncoderInput:
    return EncoderInput(takes.pop("channels", 3), adapt=frozenset(adapt), **takes)


def waves(rate: float, seconds: float = 10.0) -> np.ndarray[Any, Any]:
    time = np.arange(round(rate * seconds)) / rate
    return np.stack([np.sin(2 * np.pi * hertz * time) for hertz in (1, 3, 7)])[None].astype(np.float32)


@pytest.mark.parametrize("rate", [250.0, 40.0, 500.0, 73.3])
def test_resampled_waves_stay_the_same_waves(rate: float) -> None:
    adapt = adapter("e", taking("resample", sampling_rate=rate), signals())
    np.testing.assert_allclose(adapt(waves(100)), waves(rate), atol=1e-5)


def test_frames_are_padded_and_cropped_at_the_end() -> None:
    x = waves(100)
    padded = adapter("e", taking("pad", samples=1200), signals())(x)
    np.testing.assert_array_equal(padded, np.pad(x, ((0, 0), (0, 0), (0, 200))))
    np.testing.assert_array_equal(adapter("e", taking("crop", samples=900), signals())(x), x[:, :, :900])
    both = adapter("e", taking("resample", "pad", sampling_rate=50, samples=600), signals())(x)
    assert both.shape == (1, 3, 600)
    assert not both[:, :, 500:].any()


def test_frames_are_filtered_resampled_and_cropped_before_they_are_normalised_and_padded() -> None:
    x, filters = 5 + 3 * waves(100), Filters.given((0.5, 20), None, None, None)
    takes = taking("resample", "pad", sampling_rate=50, samples=600, filters=filters, normalizes="zscore")
    found = adapter("e", takes, signals())(x)[0]
    expected = resample(filters(x, 100.0)[0], 500, axis=1)
    expected = (expected - expected.mean(1, keepdims=True)) / expected.std(1, keepdims=True)
    np.testing.assert_allclose(found, np.pad(expected, ((0, 0), (0, 100))), atol=1e-5)


def test_channels_are_selected_by_name_and_one_is_repeated() -> None:
    x = waves(100)
    selected = adapter("e", taking("select", channels=("AVR", "i")), signals())(x)
    np.testing.assert_array_equal(selected, x[:, [2, 0]])
    one = signals(channels=["ECG"])
    for channels in (12, ("I", "II")):
        repeated = adapter("e", taking("repeat", channels=channels), one)(x[:, :1])
        np.testing.assert_array_equal(repeated, np.repeat(x[:, :1], 12 if channels == 12 else 2, axis=1))
