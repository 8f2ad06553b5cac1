"""Augmenter: an augmentation with a random stream of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import AUGMENTATIONS
from clops_sweep.learning import streams


class Augmenter:
    """Augments the frames of training passes, with the stream "augmentation" of the run.

    Args:
        name: name of the augmentation.
        seed: seed of the run.
        options: options of the augmentation.
    """

    def __init__(self, name: str, seed: int, options: Mapping[str, Any]) -> None:
        self._name, self._function, self._options = name, AUGMENTATIONS[name], options
        self._seed = seed
        self.begin_epoch(0, 0)

    def begin_epoch(self, task: int, epoch: int) -> None:
        """Start the stream of an epoch."""
        self._generator = streams.generator(self._seed, "augmentation", task, epoch)

    def __call__(self, frames: torch.Tensor) -> torch.Tensor:
        """Return augmented frames, float32 [n, channels, samples], without modifying the given ones.

        Raises:
            UsageError: the function returns anything else.
        """
        augmented: Any = self._function(frames, self._generator, **self._options)
        is_tensor = isinstance(augmented, torch.Tensor)
        if not is_tensor or augmented.shape != frames.shape or augmented.dtype != frames.dtype:
            shape = f" {list(augmented.shape)} of {augmented.dtype}" if is_tensor else ""
            raise UsageError(
                f"augment = {self._name!r}: returned {type(augmented).__name__}{shape}; expected frames "
                f"{list(frames.shape)} of {frames.dtype}"
            )
        detached: torch.Tensor = augmented.detach()
        return detached
