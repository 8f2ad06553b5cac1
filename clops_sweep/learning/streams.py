"""Named random streams: every random draw of a run is a function of (seed, name, counters) alone.

A stream has no persistent state. Its draws in epoch 7 of task 3 do not depend on earlier draws, so a run that resumes
draws the same numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray


def sequence(seed: int, name: str, *counters: int) -> np.random.SeedSequence:
    """Return the seed sequence of a named stream.

    Args:
        seed: the run's seed.
        name: purpose of the draws, e.g. ``"batch order"``.
        counters: progress of the run, e.g. task and epoch; trailing zeros make no difference.
    """
    digest = hashlib.sha256(name.encode()).digest()
    number = int.from_bytes(digest[:8], "little")
    return np.random.SeedSequence([seed, number, *counters])


def generator(seed: int, name: str, *counters: int) -> np.random.Generator:
    """Return a NumPy generator at the start of a named stream."""
    stream = sequence(seed, name, *counters)
    return np.random.Generator(np.random.Philox(stream))


def key(seed: int, name: str, *counters: int) -> NDArray[np.int32]:
    """Return the `keys` as an array: int32 [2]."""
    stream = sequence(seed, name, *counters)
    words = stream.generate_state(2, np.uint32)
    return words.view(np.int32)


def keys(seed: int, name: str, *counters: int) -> torch.Tensor:
    """Return two 32-bit keys, int32 [2], for draws that are a function of a counter (see `dropout`)."""
    return torch.from_numpy(key(seed, name, *counters))


def permutation(seed: int, size: int, name: str, *counters: int) -> torch.Tensor:
    """Return a permutation of 0 .. size - 1: int64 [size]."""
    stream = generator(seed, name, *counters)
    order = stream.permutation(size)
    return torch.from_numpy(order)


def choice(seed: int, size: int, count: int, name: str, *counters: int) -> torch.Tensor:
    """Return `count` distinct indices below `size`, ascending: int64 [count]."""
    stream = generator(seed, name, *counters)
    chosen = stream.choice(size, count, replace=False)
    return torch.from_numpy(np.sort(chosen))
