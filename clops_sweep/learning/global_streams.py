"""Seeding of the global random generators, from which layers of modules draw.

Draws of any layer (dropout, attention, an LSTM, a custom one) from PyTorch, NumPy or Python then depend only on the
run's seed and the position in the run. Afterwards the generators are restored.
"""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_WORD = (1 << 64) - 1

PROCESS_WIDE = threading.RLock()
"""Held while process-wide state is changed, so that runs in several threads of one process take turns."""


def seed_of(keys: tuple[int, int], counter: int) -> int:
    """Return a seed of 64 bits: draw number `counter` of SplitMix64 (Steele, Lea and Flood, 2014) from stream keys.

    Args:
        keys: two keys of 32 bits, from `streams.keys`.
        counter: from 0.
    """
    first, second = keys
    word = ((first & 0xFFFFFFFF) << 32) | (second & 0xFFFFFFFF)
    word = (word + (counter + 1) * 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _WORD
    return word ^ word >> 31


class GlobalStreams:
    """The global generators used on a device.

    Args:
        device: the device of the modules.
    """

    def __init__(self, device: torch.device) -> None:
        self._gpus = [device] if device.type == "cuda" else []
        self._kept = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Restore the generators after the block; nested blocks cost nothing."""
        if self._kept:
            yield
            return
        with PROCESS_WIDE, torch.random.fork_rng(self._gpus, device_type="cuda"):
            numpys, pythons = np.random.get_state(), random.getstate()  # noqa: NPY002
            self._kept = True
            try:
                yield
            finally:
                self._kept = False
                np.random.set_state(numpys)  # noqa: NPY002
                random.setstate(pythons)

    def state(self) -> bytes:
        """Return the state of all generators, for comparisons."""
        of_torch = [torch.get_rng_state().numpy(), *(torch.cuda.get_rng_state(gpu).numpy() for gpu in self._gpus)]
        return pickle.dumps((random.getstate(), np.random.get_state(), of_torch))  # noqa: NPY002

    def seed(self, seed: int) -> None:
        """Seed all generators; only within `kept`."""
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        for gpu in self._gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
