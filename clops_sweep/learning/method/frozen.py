"""Frozen: a copy of a network that is not trained, stored in checkpoints."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.passes import Passes


class Frozen:
    """A frozen copy of a network: maps frames, float32 [n, channels, samples], to logits, float32 [n, C].

    In evaluation mode, without gradient. Created by `Strategy.frozen`.
    """

    __slots__ = ("_learner", "_passes", "_state")  # no attributes beside them

    def __init__(self, learner: Learner) -> None:
        self._hold(learner)

    def _hold(self, learner: Learner) -> None:
        self._learner: Learner | None = learner
        self._passes: Passes | None = learner.passes()
        self._state: dict[str, Any] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of frames."""
        assert self._passes is not None, "a frozen network of a checkpoint belongs to no run yet"
        return self._passes.predict(x)

    @property
    def parameters(self) -> torch.Tensor:
        """Float32 [P]."""
        assert self._learner is not None
        return self._learner.parameters.flat

    def join(self, learner: Learner) -> None:
        """Become part of a run, given its learner, after a checkpoint was loaded."""
        if self._learner is None:
            copy = learner.copy()
            copy.restore(self._state)
            self._hold(copy)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        return self._state if self._learner is None else self._learner.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set what a checkpoint holds; `join` completes it."""
        self._learner = self._passes = None
        self._state = state
