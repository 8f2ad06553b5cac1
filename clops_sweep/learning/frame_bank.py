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
    """Instances of a FrameSet as float32 batches: signal = gain * stored + offset.

    Attributes:
        stored: the rows as they are kept, float32 or int16 [r, samples], on the device.
        gain: float32 [r], or None where the stored rows are the signal already.
        offset: as `gain`.
        members: int64 [n, channels], the rows of every instance; None where instance i is row i.
        shape: of an instance in a batch: [samples], or [channels, samples] where there are members.
        device: where frames are.
    """

    def __init__(self, frames: FrameSet, device: torch.device) -> None:
        self.stored = shared_tensor(frames.frames).to(device)
        plain = self.stored.dtype == torch.float32 and bool((frames.gain == 1).all() and (frames.offset == 0).all())
        self.gain = None if plain else shared_tensor(frames.gain).to(device)
        self.offset = None if plain else shared_tensor(frames.offset).to(device)
        members = frames.members
        if members is not None and np.array_equal(members, np.arange(len(frames.frames))[:, None]):
            members = None  # all channels of what has one
        self.members = None if members is None else shared_tensor(members).to(device)
        self.shape = (frames.samples,) if self.members is None else (frames.channels, frames.samples)
        self.device = device

    def gather(self, instances: torch.Tensor) -> torch.Tensor:
        """Instances by position: int64 [...] to float32 [..., *shape]."""
        flat = instances.reshape(-1)
        if self.members is not None:
            flat = self.members.index_select(0, flat).flatten()
        frames = self.stored.index_select(0, flat)
        if self.gain is not None and self.offset is not None:
            frames = frames.to(torch.float32).mul_(self.gain[flat, None]).add_(self.offset[flat, None])
        return frames.view(*instances.shape, *self.shape)
