"""Filters as fields of a data set and of an encoder, against scipy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, iirnotch, sosfiltfilt, tf2sos

from clops_sweep.data.files.filters import Filters
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from tests.data.declared_files import declare, waves

X = waves(12, 2, 3000, seed=5)
BAND = butter(4, (0.5, 40), "band", fs=250, output="sos")
NOTCH = tf2sos(*iirnotch(50, 30, fs=250))


def _frames(tmp_path: Path, fields: str = "", more: str = "") -> FrameSet:
    np.save(tmp_path / "x.npy", X)
    declare(
        tmp_path / "space.py",
        f"@dataset('own', files=['x.npy']{fields})\ndef own(data_root):\n"
        "    x = np.load(data_root / 'x.npy')\n"
        "    return Recordings(x, 250, ('I', 'II'), 'uV', [0, 1] * 6, ('a', 'b'), range(12), window_seconds=4"
        f"{more})\n",
    )
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


def test_a_data_set_is_filtered_as_scipy_does(tmp_path: Path) -> None:
    plain = _frames(tmp_path)
    frames = _frames(tmp_path, ", bandpass=(0.5, 40), notch=50, scale='mV', clip=1e-3")
    whole = np.clip(sosfiltfilt(NOTCH, sosfiltfilt(BAND, X.astype(np.float64) / 1000)), -1e-3, 1e-3)
    expected = whole.reshape(12, 2, 3, 1000).swapaxes(1, 2).reshape(36, 2, 1000)
    np.testing.assert_allclose(frames.signal(np.arange(36)), expected, rtol=1e-6, atol=1e-10)
    assert (frames.unit, plain.unit) == ("mV", "uV")
    assert len({frames.data_hash, plain.data_hash, _frames(tmp_path, ", notch=50").data_hash}) == 3
    assert _frames(tmp_path).data_hash == plain.data_hash


@pytest.mark.parametrize(("bandpass", "kind", "edge"), [((1, None), "high", 1), ((None, 30), "low", 30)])
def test_one_edge(bandpass: tuple[float | None, float | None], kind: str, edge: float) -> None:
    made = Filters.given(bandpass, None, None, None)
    x = X.astype(np.float64)
    np.testing.assert_array_equal(made(x, 250), sosfiltfilt(butter(4, edge, kind, fs=250, output="sos"), x))


def test_pieces_between_missing_samples_are_filtered_alone() -> None:
    made = Filters.given((0.5, 40), None, None, None)
    x = X[0].astype(np.float64)
    x[1, [1000, 1010]] = np.nan
    found = made(x, 250)
    np.testing.assert_array_equal(found[0], sosfiltfilt(BAND, x[0]))
    np.testing.assert_array_equal(found[1, :1000], sosfiltfilt(BAND, x[1, :1000]))
    np.testing.assert_array_equal(found[1, 1011:], sosfiltfilt(BAND, x[1, 1011:]))
    assert np.isnan(found[1, 1000:1011]).all()  # nine samples are too few
