"""MiniRocket gives the features of aeon, is fitted to training frames of each split alone, and is a run's baseline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from clops_sweep.learning.encoders.minirocket import MiniRocket
from tests.learning.encoders.place import FILE, Place, config

AEON = np.load(Path(__file__).parent / "minirocket.npz")
"""Features of random walks, and biases fitted to the first walk, by aeon 1.6.0's `MiniRocket(random_state=0)`."""


def test_biases_and_features_are_those_of_aeon() -> None:
    signals = torch.from_numpy(AEON["signals"])
    encoder = MiniRocket(signals[:1])  # of one signal, so that the random choice of training signals plays no part
    np.testing.assert_array_equal(encoder.dilations, AEON["dilations"])
    np.testing.assert_allclose(encoder.biases, AEON["biases"], rtol=1e-4, atol=1e-4)
    found = encoder(signals).numpy()
    assert found.shape == (3, 9996)
    assert np.abs(found - AEON["features"]).max() <= 1.001 / signals.shape[2]  # of one sample near a bias
    assert (np.abs(found - AEON["features"]) > 1e-6).mean() < 1e-3


def test_several_channels_are_summed_in_random_subsets() -> None:
    signals = torch.randn(4, 12, 200, generator=torch.Generator().manual_seed(0))
    encoder = MiniRocket(signals)
    used = (encoder.kernels.reshape(-1, 12, 9) != 0).any(2).sum(1)
    assert (used.min(), used.max()) == (1, 9)
    alone = torch.cat([encoder(it[None]) for it in signals])
    torch.testing.assert_close(encoder(signals), alone, rtol=0, atol=0)


def test_other_frames_than_training_frames_do_not_matter(place: Place) -> None:
    seen: list[torch.Tensor] = []
    place.declare(
        FILE
        + """
@encoder("means", channels=None, fit=True)
def means(weights, signals):
    module = nn.Sequential(nn.Flatten(), nn.Linear(256, 2, bias=False))
    module[1].weight.data.copy_(torch.stack([signals.mean(0).flatten(), torch.full([256], float(len(signals)))]))
    return module
"""
    )
    for seed in (0, 1):
        signals = place.frames(config(None, split_seed=seed))
        frames = place.frames(config("means", split_seed=seed))
        training = signals.signal(np.flatnonzero(signals.split == 0))
        flat = signals.signal(slice(None)).reshape(len(signals), -1)
        expected = flat @ training.mean(0).flatten()
        np.testing.assert_allclose(frames.signal(slice(None))[:, 0], expected, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(frames.encoded.seen, signals.split == 0)
        seen.append(frames.data_hash)
    assert len(set(seen)) == 2
    assert len(list((place.prepared / "small" / "features").iterdir())) == 2
