"""NativePasses: passes of the paper's network by the native kernels, each with a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from clops_sweep.errors import UsageError
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.learners.passes import OpenPass, Passes, WeightedLoss
from clops_sweep.learning.learners.run_networks import RunNetworks

_AT_A_TIME = 512
"""Frames that are predicted at a time."""


class NativePasses(Passes):
    """Passes whose frames are copied to where kernels find them.

    Args:
        networks: of a single run.
        core_over: from frames, [n, samples], and a vector for gradients to kernels on the network.
    """

    def __init__(self, networks: RunNetworks, core_over: Callable[..., Any]) -> None:
        super().__init__(networks)
        self._core_over = core_over
        self._generators = GlobalStreams(networks.bank.device)
        self._workspaces: dict[int, _Workspace] = {}

    @property
    def generators(self) -> GlobalStreams:
        """As of `Passes`."""
        return self._generators

    def checked(self, x: object) -> torch.Tensor:
        """As of `Passes`; the kernels know no gradient by the frames."""
        frames = super().checked(x)
        if frames.requires_grad:
            raise UsageError(
                "self.model got frames that require a gradient, which the native kernels do not compute; detach them, "
                "use another network, or set CLOPS_NATIVE=off"
            )
        return frames

    def _workspace(self, number: int, count: int) -> _Workspace:
        found = self._workspaces.get(number)
        if found is None or len(found.rows) < count:
            found = self._workspaces[number] = _Workspace(self._core_over, count, self.shape[1], self.parameters)
        return found

    def _train(self, x: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, number: int) -> torch.Tensor:
        workspace, count, outputs = self._workspace(number, len(x)), len(x), self._outputs
        workspace.frames[:count] = x.view(count, -1)
        workspace.uses += 1
        use = workspace.uses

        def forward() -> torch.Tensor:
            logits = torch.empty(1, count, outputs)
            workspace.core.forward(
                workspace.rows[None, :count].numpy(), draws.numpy(), keys.numpy(), False, True, logits.numpy()
            )
            return logits[0]

        def backward(by_logits: torch.Tensor) -> torch.Tensor:
            if use != workspace.uses:
                raise UsageError("a loss depends on a pass of an earlier step; detach what is kept from step to step")
            workspace.uses += 1  # there is one pass backward
            workspace.core.backward(by_logits[None].contiguous().numpy())
            return workspace.gradient.clone()

        found: torch.Tensor = OpenPass.apply(self.parameters, forward, backward)  # type: ignore[no-untyped-call]
        return found

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As of `Passes`."""
        x = super().checked(x)
        workspace, found = self._workspace(-1, min(len(x), _AT_A_TIME)), torch.empty(len(x), self._outputs)
        others = None if parameters is None else parameters.detach().contiguous().numpy()
        for frames, logits in zip(x.split(_AT_A_TIME), found.split(_AT_A_TIME), strict=True):
            count = len(frames)
            workspace.frames[:count] = frames.reshape(count, -1)
            rows = workspace.rows[None, :count].numpy()
            workspace.core.predict(rows, None, others, False, 1, None, logits[None, :, None].numpy())
        return found

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """As of `Passes`, by the kernels, as in `train_epoch`."""
        by_logits, each = torch.empty(logits.shape), torch.empty(len(logits))
        given = (values.detach().contiguous().numpy() for values in (logits, y, weights))
        self._workspace(-1, 1).core.loss_by_logits(*given, each.numpy(), by_logits.numpy())
        found: torch.Tensor = WeightedLoss.apply(  # type: ignore[no-untyped-call]
            logits, torch.dot(each, weights), by_logits
        )
        return found


class _Workspace:
    """Kernels over the network, frames of their own, and what they keep between the halves of a pass."""

    def __init__(self, core_over: Callable[..., Any], count: int, samples: int, parameters: torch.Tensor) -> None:
        self.frames = torch.empty(count, samples)
        self.rows = torch.arange(count)
        self.gradient = torch.empty_like(parameters.detach())
        self.core = core_over(self.frames, gradient=self.gradient)
        self.uses = 0
