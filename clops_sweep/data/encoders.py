"""Interface of encoders and stored models for what needs no PyTorch itself, such as the cache of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet, StartModel
from clops_sweep.data.scenarios.leaks import Seen


@dataclass(frozen=True)
class Computing:
    """Features, or adapted signals, that are about to be computed.

    Attributes:
        shape: shape of the features of an instance, (F,) or (tokens, F), or of its signals, (channels, samples).
        device: the device that computes them.
        batches: float32 [m, *shape], in the order of the instances.
        count: number of batches.
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

    def seen(self, encoder: str) -> Seen:
        """Return what the encoder, and those that it was trained on, have seen, as stored runs record it."""

    def is_fitted(self, encoder: str) -> bool:
        """Return whether the encoder is fitted to the training signals of each split."""

    def check(self, encoder: str, frames: FrameSet) -> None:
        """Check that an encoder can be used on some frames.

        Raises:
            UsageError: the frames do not fit and cannot be adapted, or it was trained on their people.
        """

    def compute(self, encoder: str, frames: FrameSet, *, adapted: bool = False) -> Computing:
        """Start to compute the features of all instances, or with `adapted` the signals that the encoder takes.

        Raises:
            UsageError: the signals do not fit, or the module cannot be created or is not a valid encoder.
        """

    def features(self, encoder: str, frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the features of a few instances, [m, *shape].

        Raises:
            UsageError: the signals do not fit, or the module cannot be created or fails.
        """

    def module(self, encoder: str) -> Callable[[], Any]:
        """Return a function that creates the `torch.nn.Module` in any process on a machine with the weights.

        Raises:
            UsageError: the code or weights are missing.
        """

    def model_hash(self, run: str) -> str:
        """SHA-256 of the last model of a stored run, given as ``run:RUN_ID``.

        Raises:
            UsageError: the model is not stored.
        """

    def start_model(self, run: str, frames: FrameSet) -> StartModel:
        """Return the last model of a stored run, given as ``run:RUN_ID``, as the start of runs on some frames.

        Raises:
            UsageError: the model is not stored.
        """

    def predicted(
        self, run_id: str, frames: FrameSet, instances: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the logits and the probabilities of some instances by the last model of a stored run, [m, outputs].

        Raises:
            UsageError: the model is not stored, cannot be made here, or does not take such frames.
        """
