"""NativePasses: passes of the paper's network by the native kernels, each with a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from clops_sweep.errors import UsageError
from clops_sweep.learning.arrays import Array, array_of, optional_array
from clops_sweep.learning.learners.kernel_learner import KernelLearner
from clops_sweep.learning.learners.passes import OpenPass, Passes, WeightedLoss, Workspace


class NativePasses(Passes):
    """Passes by kernels that read the given frames without a copy.

    Args:
        learner: the network.
        core_over: returns kernels over the network.
    """

    def __init__(self, learner: KernelLearner, core_over: Callable[..., Any]) -> None:
        super().__init__(learner)
        self._trained = learner
        self._core_over = core_over
        self._size = len(learner.parameters.flat)
        self._workspaces: list[_Workspace] = []

    def checked(self, x: object) -> torch.Tensor:
        """As `Passes.checked`; the kernels compute no gradient with respect to the frames."""
        frames = super().checked(x)
        if frames.requires_grad:
            raise UsageError(
                "self.model got frames that require a gradient, which the native kernels do not compute; detach them, "
                "use another network, or set CLOPS_NATIVE=off"
            )
        return frames

    def _workspace(self, number: int) -> _Workspace:
        while number >= len(self._workspaces):
            self._workspaces.append(_Workspace(self._core_over()))
        return self._workspaces[number]

    def _train(self, x: torch.Tensor, keys: torch.Tensor, first: int, number: int) -> torch.Tensor:
        workspace = self._workspace(number)
        pass_number = workspace.begin()

        def forward() -> torch.Tensor:
            count = len(x)
            rows = np.arange(count)
            draws = np.arange(first, first + count)
            logits = torch.empty(count, self._outputs)
            workspace.core.forward(
                rows,
                draws,
                keys.numpy(),
                running=False,
                track=True,
                logits=logits.numpy(),
                frames=_frames(x),
            )
            return logits

        def backward(by_logits: torch.Tensor) -> torch.Tensor:
            workspace.end(pass_number)
            gradient = torch.empty(self._size)
            workspace.core.backward(array_of(by_logits), gradient.numpy())
            return gradient

        logits: torch.Tensor = OpenPass.apply(self.parameters, forward, backward)  # type: ignore[no-untyped-call]
        return logits

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As `Passes.predict`."""
        x = super().checked(x).detach()
        if parameters is not None:
            parameters = parameters.detach()
        count = len(x)
        logits = torch.empty(count, 1, self._outputs)
        self._workspace(0).core.predict(
            np.arange(count),
            noise=None,
            parameters=optional_array(parameters),
            probabilities=False,
            samples=1,
            keys=None,
            result=logits.numpy(),
            frames=_frames(x),
        )
        return logits.squeeze(1)

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """As `Passes.criterion`, by the kernels, as in `train_epoch`."""
        if not WeightedLoss.suits(logits, y, weights):
            return super().criterion(logits, y, weights)
        weighted_loss = self._trained.weighted_loss
        loss: torch.Tensor = WeightedLoss.apply(logits, y, weights, weighted_loss)  # type: ignore[no-untyped-call]
        return loss


def _frames(x: torch.Tensor) -> Array:
    """Return frames [n, 1, samples] as the kernels take them, [n, samples]."""
    return array_of(x.flatten(1))


class _Workspace(Workspace):
    """Kernels over the network with memory of their own."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.core = core
