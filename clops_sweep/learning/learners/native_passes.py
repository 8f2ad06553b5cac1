"""NativePasses: passes of the paper's network by the native kernels, each with a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.errors import UsageError
from clops_sweep.learning.learners.kernel_learner import KernelLearner
from clops_sweep.learning.learners.passes import OpenPass, Passes, WeightedLoss


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

    def _train(self, x: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, number: int) -> torch.Tensor:
        workspace = self._workspace(number)
        workspace.uses += 1
        use = workspace.uses

        def forward() -> torch.Tensor:
            logits = torch.empty(len(x), self._outputs)
            workspace.core.forward(
                np.arange(len(x)),
                draws.numpy(),
                keys.numpy(),
                running=False,
                track=True,
                logits=logits.numpy(),
                frames=_frames(x),
            )
            return logits

        def backward(by_logits: torch.Tensor) -> torch.Tensor:
            if use != workspace.uses:
                raise UsageError("a loss depends on a pass of an earlier step; detach what is kept from step to step")
            workspace.uses += 1  # only one backward pass is possible
            gradient = torch.empty(len(self.parameters))
            workspace.core.backward(by_logits.contiguous().numpy(), gradient.numpy())
            return gradient

        logits: torch.Tensor = OpenPass.apply(self.parameters, forward, backward)  # type: ignore[no-untyped-call]
        return logits

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As `Passes.predict`."""
        x = super().checked(x).detach()
        logits = torch.empty(len(x), 1, self._outputs)
        self._workspace(0).core.predict(
            np.arange(len(x)),
            noise=None,
            parameters=None if parameters is None else parameters.detach().contiguous().numpy(),
            probabilities=False,
            samples=1,
            keys=None,
            result=logits.numpy(),
            frames=_frames(x),
        )
        return logits.squeeze(1)

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """As `Passes.criterion`, by the kernels, as in `train_epoch`."""

        def forward(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            losses, by_logits = self._trained.weighted_losses(logits, y, weights)
            return torch.dot(losses, weights), by_logits

        loss: torch.Tensor = WeightedLoss.apply(logits, forward)  # type: ignore[no-untyped-call]
        return loss


def _frames(x: torch.Tensor) -> NDArray[np.generic]:
    """Return frames [n, 1, samples] as the kernels take them, [n, samples]."""
    frames: NDArray[np.generic] = x.contiguous().view(len(x), -1).numpy()
    return frames


class _Workspace:
    """Kernels over the network, and their memory between the forward and the backward half of a pass."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.uses = 0
