"""The built-in augmentations, as compared by Iwana and Uchida (2021), "Data augmentation for time series".

Each is a function of frames, float32 [n, channels, samples], and a `numpy.random.Generator`.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.interpolate import CubicSpline

from clops_sweep.errors import UsageError


def jitter(frames: torch.Tensor, rng: np.random.Generator, *, jitter_std: float) -> torch.Tensor:
    """Return x + sigma s e: noise e of N(0, 1) per sample, s the standard deviation of the frame's channel."""
    scale = jitter_std * frames.std(dim=2, correction=0, keepdim=True)
    noise = _normal(rng, frames.shape, frames.device)
    return frames + scale * noise


def scaling(frames: torch.Tensor, rng: np.random.Generator, *, scaling_std: float) -> torch.Tensor:
    """Return (1 + sigma e) x, with one e of N(0, 1) per channel of a frame."""
    count, channels, _ = frames.shape
    noise = _normal(rng, (count, channels, 1), frames.device)
    return frames * (1 + scaling_std * noise)


def time_warp(
    frames: torch.Tensor, rng: np.random.Generator, *, time_warp_std: float, time_warp_knots: int
) -> torch.Tensor:
    """Return x(tau(t)), interpolated linearly; tau keeps both ends, and is the same for all channels of a frame.

    Its slope follows a cubic spline through values of N(1, sigma^2) at both ends and at `time_warp_knots` times evenly
    between them (Um et al., 2017); slopes below 0.1 become 0.1, so that time does not run backwards.
    """
    count, channels, samples = frames.shape
    last = samples - 1
    knots = np.linspace(0, last, time_warp_knots + 2)
    slopes_at_knots = rng.normal(1, time_warp_std, (len(knots), count))
    spline = CubicSpline(knots, slopes_at_knots)
    slopes = spline(np.arange(samples)).clip(0.1)
    steps = (slopes[1:] + slopes[:-1]) / 2
    travelled = np.cumsum(steps, axis=0)
    start = np.zeros((1, count))
    path = np.concatenate([start, travelled]) * (last / travelled[-1])
    times = path.T.clip(0, last)
    tau = torch.from_numpy(times).to(frames.device)
    sample_before = tau.floor().clamp_max(samples - 2).long()
    share = (tau - sample_before).to(frames.dtype)[:, None]
    index = sample_before[:, None].expand(-1, channels, -1)
    before = frames.gather(2, index)
    after = frames.gather(2, index + 1)
    return before * (1 - share) + after * share


def lead_dropout(frames: torch.Tensor, rng: np.random.Generator, *, lead_dropout_probability: float) -> torch.Tensor:
    """Return frames in which each channel is 0 with a probability, except one random channel that is always kept.

    Raises:
        UsageError: frames have one channel.
    """
    count, channels, _ = frames.shape
    if channels == 1:
        raise UsageError("augment = 'lead_dropout': frames have one channel; expected several, as with leads = 'all'")
    is_kept = rng.random((count, channels)) >= lead_dropout_probability
    always_kept = rng.integers(0, channels, count)
    is_kept[np.arange(count), always_kept] = True
    mask = torch.from_numpy(is_kept).to(frames.device)
    return frames * mask[:, :, None]


def _normal(rng: np.random.Generator, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Return draws of N(0, 1): float32 of a shape."""
    drawn = rng.standard_normal(tuple(shape), np.float32)
    return torch.from_numpy(drawn).to(device)
