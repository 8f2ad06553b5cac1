"""The frames as a learner sees them: resident on the device, gathered by row, scaled to signal units on the way."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet


def shared_tensor(array: NDArray[np.generic]) -> torch.Tensor:
    """A tensor over the array's own memory, also where that is read-only (a memory map, Ray's object store)."""
    with warnings.catch_warnings():
        # PyTorch warns that writing would be undefined; nothing here writes to frames.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(array))


class FrameBank:
    """Rows of a FrameSet as float32 batches: signal = gain * stored + offset.

    Attributes:
        stored: the frames as they are kept, float32 or int16 [n, 2500], on the device.
        gain: float32 [n], or None where the stored frames are the signal already.
        offset: as `gain`.
        device: where frames are.
    """

    def __init__(self, frames: FrameSet, device: torch.device) -> None:
        self.stored = shared_tensor(frames.frames).to(device)
        plain = self.stored.dtype == torch.float32 and bool((frames.gain == 1).all() and (frames.offset == 0).all())
        self.gain = None if plain else shared_tensor(frames.gain).to(device)
        self.offset = None if plain else shared_tensor(frames.offset).to(device)
        self.device = device

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Frames by row: int64 [...] to float32 [..., 2500]."""
        flat = rows.reshape(-1)
        frames = self.stored.index_select(0, flat)
        if self.gain is not None and self.offset is not None:
            frames = frames.to(torch.float32).mul_(self.gain[flat, None]).add_(self.offset[flat, None])
        return frames.view(*rows.shape, -1)
