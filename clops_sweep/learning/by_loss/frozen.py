"""Frozen: a copy of a network that is not trained, stored in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clops_sweep.learning.by_loss.batch import Steps
from clops_sweep.learning.learners.learner import Learner


class Frozen:
    """A frozen copy of a network: maps frames, float32 [n, channels, samples], to logits, float32 [n, C].

    In evaluation mode, without gradient. Created by `Strategy.frozen`.
    """

    __slots__ = ("_learner", "_passes")  # no attributes beside them

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._passes = learner.passes()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of frames."""
        return self._passes.predict(x)

    @property
    def parameters(self) -> torch.Tensor:
        """Float32 [P]."""
        return self._learner.parameters.flat

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return self._learner.state()

    @classmethod
    def restored(cls, state: Mapping[str, Any], steps: Steps) -> Frozen:
        """Restore a frozen network from `state`."""
        learner = steps.training.learner.copy()
        learner.restore(dict(state))
        return cls(learner)
