"""Frozen: a copy of a network that is no longer trained, as part of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clops_sweep.learning.by_loss.batch import Steps
from clops_sweep.learning.learners.learner import Learner


class Frozen:
    """The network as it was: called with frames, float32 [n, channels, samples], it returns logits, float32 [n, C].

    In evaluation mode, without a gradient. `Strategy.frozen` makes one.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._passes = learner.passes()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of frames."""
        return self._passes.predict(x)

    @property
    def parameters(self) -> torch.Tensor:
        """Float32 [P]."""
        return self._learner.parameters.flat

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""
        return self._learner.state()

    @classmethod
    def restored(cls, state: Mapping[str, Any], steps: Steps) -> Frozen:
        """A frozen network from what `state` returned."""
        learner = steps.training.learner.copy()
        learner.restore(dict(state))
        return cls(learner)
