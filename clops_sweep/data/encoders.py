"""What the cache of features asks of encoders, which need PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class Computing:
    """Features, or adapted signals, that are about to be computed.

    Attributes:
        shape: of those of an instance, (F,) or (tokens, F), or (channels, samples).
        device: that computes them.
        batches: float32 [m, *shape], in the order of the instances.
        count: of the batches.
    """

    shape: tuple[int, ...]
    device: str
    batches: Iterator[NDArray[np.float32]]
    count: int


class Encoders(Protocol):
    """Encoders by name."""

    def identity(self, encoder: str) -> str:
        """SHA-256 of an encoder's code, weights and declaration.

        Raises:
            UsageError: it has no code or weights here.
        """

    def people(self, encoder: str) -> frozenset[str]:
        """The people that it has seen in pretraining, by `leaks.person_hash`, as far as a stored run says so."""

    def check(self, encoder: str, frames: FrameSet) -> None:
        """See whether it can be used on some frames.

        Raises:
            UsageError: the frames can neither be taken as they are nor adapted, or it was trained on their people.
        """

    def compute(self, encoder: str, frames: FrameSet) -> Computing:
        """Begin to compute its features of all instances.

        Raises:
            UsageError: it cannot be made, or is not fit to be an encoder.
        """

    def adapt(self, encoder: str, frames: FrameSet) -> Computing:
        """Begin to adapt all instances to the signals that it takes.

        Raises:
            UsageError: they do not fit.
        """

    def module(self, encoder: str) -> Callable[[], Any]:
        """What makes its `torch.nn.Module` in any process on a machine that has its weights.

        Raises:
            UsageError: it has no code or weights here.
        """
