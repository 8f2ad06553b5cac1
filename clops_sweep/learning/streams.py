"""Named random streams: every random draw of a run comes from (seed, name, counters) and from nothing else.

A stream has no state that is carried along. What it yields in epoch 7 of task 3 does not depend on what was drawn
before, so a run that resumes, or is trained in lockstep with others, draws the same numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray


def sequence(seed: int, name: str, *counters: int) -> np.random.SeedSequence:
    """The seed sequence of a named stream.

    Args:
        seed: the run's seed.
        name: what the draws are for, e.g. ``"batch order"``.
        counters: where in the run, e.g. task and epoch; zeros at their end make no difference.
    """
    return np.random.SeedSequence([seed, _number_of(name), *counters])


@lru_cache
def _number_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def generator(seed: int, name: str, *counters: int) -> np.random.Generator:
    """A NumPy generator at the start of a named stream."""
    return np.random.Generator(np.random.Philox(sequence(seed, name, *counters)))


def key(seed: int, name: str, *counters: int) -> NDArray[np.int32]:
    """One run's `keys`: int32 [2]."""
    return sequence(seed, name, *counters).generate_state(2, np.uint32).view(np.int32)


def keys(seeds: Sequence[int], name: str, *counters: int) -> torch.Tensor:
    """Two 32-bit keys a run, for draws that are a function of a counter (see `dropout`).

    Returns:
        int32 tensor of shape [S, 2].
    """
    return torch.from_numpy(np.stack([key(seed, name, *counters) for seed in seeds]))


def permutations(seeds: Sequence[int], size: int, name: str, *counters: int) -> torch.Tensor:
    """One permutation of 0 .. size - 1 a run: int64 tensor of shape [S, size]."""
    orders = [generator(seed, name, *counters).permutation(size) for seed in seeds]
    return torch.from_numpy(np.stack(orders))


def choices(seeds: Sequence[int], size: int, count: int, name: str, *counters: int) -> torch.Tensor:
    """`count` distinct indices below `size` a run, in ascending order: int64 tensor of shape [S, count]."""
    drawn = [np.sort(generator(seed, name, *counters).choice(size, count, replace=False)) for seed in seeds]
    return torch.from_numpy(np.stack(drawn))
