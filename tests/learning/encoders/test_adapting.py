"""Only declared rules adapt signals; others are refused in a sentence that names the mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clops_sweep.errors import UsageError
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


def test_channels_are_selected_by_name_and_one_is_repeated() -> None:
    x = waves(100)
    selected = adapter("e", taking("select", channels=("AVR", "i")), signals())(x)
    np.testing.assert_array_equal(selected, x[:, [2, 0]])
    one = signals(channels=["ECG"])
    for channels in (12, ("I", "II")):
        repeated = adapter("e", taking("repeat", channels=channels), one)(x[:, :1])
        np.testing.assert_array_equal(repeated, np.repeat(x[:, :1], 12 if channels == 12 else 2, axis=1))


@pytest.mark.parametrize(
    ("takes", "changes", "says"),
    [
        (taking("select", channels=12), {}, "takes 12 channels, and frames of 'd' have 3"),
        (taking("select", channels=("I", "V6")), {}, "takes the channels I, V6, and frames of 'd' have 3 (I, II, aVR)"),
        (taking(channels=("II", "I", "aVR")), {}, 'adapt=["select"]'),
        (taking(channels=12), {"channels": ["ECG"]}, 'adapt=["repeat"]'),
        (taking(channels=12), {"channels": ["I|II"]}, "frames of 'd' have 1 (I|II); set leads = 'all'"),
        (taking("pad", sampling_rate=500.0), {}, "takes 500 Hz, and frames of 'd' have 100 Hz"),
        (taking(sampling_rate=500.0), {"sampling_rate": None}, "have no known sampling rate"),
        (
            taking("crop", samples=1001),
            {},
            "takes 1,001 samples, and frames of 'd' have 1,000; allow it with adapt=[\"pad\"]",
        ),
        (taking("resample", sampling_rate=200.0, samples=1000), {}, "have 2,000 after resampling"),
        (taking("resample", sampling_rate=1e9), {}, "have 3 x 10,000,000,000 once adapted; use another encoder"),
        (taking("pad", samples=2**26), {}, "takes frames of at most 67,108,864 values"),
        (taking(normalize="zscore"), {}, "set normalize = 'zscore'"),
        (taking(unit="g"), {}, "takes signals in g, and frames of 'd' have the unit mV"),
    ],
)
def test_what_does_not_fit_is_named(takes: EncoderInput, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        adapter("e", takes, signals(**changes))
    assert says in str(refused.value)
