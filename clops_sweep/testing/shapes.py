"""Tiny frame sets with shapes other than 1 x 2,500."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from clops_sweep.data.frames import FrameSet

_LATER = 17


def of_shape(frames: FrameSet, channels: int, samples: int) -> FrameSet:
    """Return a single-lead frame set with instances of another shape.

    Args:
        frames: a frame set with one row per instance.
        channels: number of channels; each additional one is the first, shifted in time.
        samples: number of samples, from the beginning of each row.
    """
    rows, count = frames.frames[:, :samples], len(frames)
    return replace(
        frames,
        frames=np.concatenate([np.roll(rows, _LATER * channel, axis=1) for channel in range(channels)]),
        gain=np.tile(frames.gain, channels),
        offset=np.tile(frames.offset, channels),
        members=np.arange(count)[:, None] + count * np.arange(channels),
        data_hash=hashlib.sha256(f"{frames.data_hash} {channels} {samples}".encode()).hexdigest(),
    )
