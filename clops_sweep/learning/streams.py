"""Named random streams: every random draw of a run is a function of (seed, name, counters) alone.

A stream has no persistent state. Its draws in epoch 7 of task 3 do not depend on earlier draws, so a run that resumes,
or is trained in lockstep with others, draws the same numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

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
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.SeedSequence([seed, number, *counters])


def generator(seed: int, name: str, *counters: int) -> np.random.Generator:
    """Return a NumPy generator at the start of a named stream."""
    return np.random.Generator(np.random.Philox(sequence(seed, name, *counters)))


def key(seed: int, name: str, *counters: int) -> NDArray[np.int32]:
    """Return the `keys` of one run: int32 [2]."""
    return sequence(seed, name, *counters).generate_state(2, np.uint32).view(np.int32)


def keys(seeds: Sequence[int], name: str, *counters: int) -> torch.Tensor:
    """Return two 32-bit keys per run, for draws that are a function of a counter (see `dropout`).

    Returns:
        int32 tensor of shape [S, 2].
    """
    return torch.from_numpy(np.stack([key(seed, name, *counters) for seed in seeds]))


def permutations(seeds: Sequence[int], size: int, name: str, *counters: int) -> torch.Tensor:
    """Return one permutation of 0 .. size - 1 per run: int64 tensor of shape [S, size]."""
    orders = [generator(seed, name, *counters).permutation(size) for seed in seeds]
    return torch.from_numpy(np.stack(orders))


def choices(seeds: Sequence[int], size: int, count: int, name: str, *counters: int) -> torch.Tensor:
    """Return `count` distinct indices below `size` per run, ascending: int64 tensor of shape [S, count]."""
    drawn = [np.sort(generator(seed, name, *counters).choice(size, count, replace=False)) for seed in seeds]
    return torch.from_numpy(np.stack(drawn))
