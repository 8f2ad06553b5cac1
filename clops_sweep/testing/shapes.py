"""The tiny frame sets in other shapes than 1 x 2,500."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from clops_sweep.data.frames import FrameSet

_LATER = 17


def of_shape(frames: FrameSet, channels: int, samples: int) -> FrameSet:
    """The instances of a set of single leads in another shape.

    Args:
        frames: one row an instance.
        channels: of an instance; each further one is its row, later by some samples.
        samples: of a channel, from the beginning of the row.
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
