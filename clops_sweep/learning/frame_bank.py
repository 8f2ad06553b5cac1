"""Frames for learners: stored on the device, gathered by row and scaled to signal units."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.data.frames import FrameSet


def shared_tensor(array: NDArray[np.generic]) -> torch.Tensor:
    """Return a tensor on the array's own memory, even if it is read-only (a memory map, Ray's object store)."""
    with warnings.catch_warnings():
        # PyTorch warns about undefined writes; nothing here writes to frames.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(array))


class FrameBank:
    """Instances of a FrameSet as float32 batches: signal = gain * stored + offset.

    Attributes:
        stored: stored rows, float32 or int16 [r, samples], on the device.
        gain: float32 [r], or None if the stored rows are the signal.
        offset: as `gain`.
        members: int64 [n, channels], the stored rows of every instance; None if instance i is row i. If only rows of
            `used` instances are stored, the rows of others are -1.
        shape: shape of an instance in a batch: [samples], or [channels, samples] with members.
        device: device of the frames.
    """

    def __init__(self, frames: FrameSet, device: torch.device, used: NDArray[np.int64] | None = None) -> None:
        """Store the instances of a data set.

        Args:
            frames: the data set. A CPU reads its rows in place, shared among processes.
            device: device of the batches.
            used: the instances that will be gathered, in any order; None for all. Only their rows are copied to a GPU.
        """
        members = frames.members
        rows: NDArray[np.int64] | slice = slice(None)
        if members is not None and np.array_equal(members, np.arange(len(frames.frames))[:, None]):
            members = None  # all channels of the used instances
        self.shape = (frames.samples,) if members is None else (frames.channels, frames.samples)
        if used is not None and device.type != "cpu":
            rows, members = rows_in_use(members, used, len(frames), len(frames.frames))
        stored = frames.frames[rows]
        is_scaled = bool((frames.gain != 1).any() or (frames.offset != 0).any())
        self.stored = shared_tensor(stored).to(device)
        self.gain: torch.Tensor | None = None
        self.offset: torch.Tensor | None = None
        self.members: torch.Tensor | None = None
        if is_scaled or stored.dtype != np.float32:
            self.gain = shared_tensor(frames.gain[rows]).to(device)
            self.offset = shared_tensor(frames.offset[rows]).to(device)
        if members is not None:
            self.members = shared_tensor(members).to(device)
        self.device = device

    @property
    def instance_bytes(self) -> int:
        """Bytes of the stored samples of one instance, over all channels."""
        return math.prod(self.shape) * self.stored.element_size()

    def rows(self, instances: torch.Tensor) -> torch.Tensor:
        """Return the stored rows of all channels of instances: int64 [..., m] to [..., m * channels]."""
        return instances if self.members is None else self.members[instances].flatten(-2)

    def gather(self, instances: torch.Tensor) -> torch.Tensor:
        """Return instances by position: int64 [...] to float32 [..., *shape]."""
        flat = instances.reshape(-1)
        if self.members is not None:
            flat = self.members.index_select(0, flat).flatten()
        return self._signals(flat).view(*instances.shape, *self.shape)

    def frames(self, instances: torch.Tensor) -> torch.Tensor:
        """Return instances by position with their channels: int64 [n] to float32 [n, channels, samples]."""
        if self.members is None:
            return self._signals(instances)[:, None]
        return self.gather(instances)

    def _signals(self, rows: torch.Tensor) -> torch.Tensor:
        """Return stored rows, int64 [n], as signals, float32 [n, samples]."""
        if self.gain is None or self.offset is None:
            return self.stored.index_select(0, rows)
        if self.device.type == "cpu" and self.stored.dtype == torch.int16:
            indices = rows.contiguous().numpy()
            signals = native.gather(self.stored.numpy(), self.gain.numpy(), self.offset.numpy(), indices)
            if signals is not None:
                return torch.from_numpy(signals)
        frames = self.stored.index_select(0, rows).to(torch.float32)
        return frames.mul_(self.gain[rows, None]).add_(self.offset[rows, None])


class LastBank:
    """Creates frame banks and caches the last one, for the runs of a job."""

    def __init__(self) -> None:
        self._bank: FrameBank | None = None
        self._made_of: tuple[FrameSet, torch.device, NDArray[np.int64]] | None = None

    def __call__(self, frames: FrameSet, device: torch.device, used: NDArray[np.int64]) -> FrameBank:
        """As `FrameBank`."""
        last = self._made_of
        same = last is not None and last[0] is frames and last[1] == device and np.array_equal(last[2], used)
        if self._bank is None or not same:
            self._bank = None  # release first, because two banks may exceed the memory
            self._bank = FrameBank(frames, device, used)
            self._made_of = frames, device, used
        return self._bank


def rows_in_use(
    members: NDArray[np.int64] | None, used: NDArray[np.int64], instances: int, rows: int
) -> tuple[NDArray[np.int64] | slice, NDArray[np.int64] | None]:
    """Return the sorted rows of some instances, and the members as indices into them.

    If all rows are used, both are unchanged. Shapes: members [n, channels] or None, used [m]; returned: [rows in use]
    and [n, channels], -1 for unused instances.
    """
    used = np.unique(used)
    rows_of_used = used[:, None] if members is None else members[used]
    sorted_rows = np.unique(rows_of_used)
    if len(sorted_rows) == rows:
        return slice(None), members
    channels = rows_of_used.shape[1]
    indices = np.full((instances, channels), -1, np.int64)
    indices[used] = np.searchsorted(sorted_rows, rows_of_used)
    return sorted_rows, indices
