"""Passes: a network as a function under autograd, which a loss may call several times a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.autograd.function import once_differentiable

from clops_sweep.data.scenarios import LossKind
from clops_sweep.errors import UsageError
from clops_sweep.learning import losses
from clops_sweep.learning.augmentation.augmenter import Augmenter
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.parameters import Parameters


class Trained(Protocol):
    """What passes need of a learner."""

    kind: LossKind
    outputs: int
    bank: FrameBank
    parameters: Parameters
    augment: Augmenter | None


class Passes(ABC):
    """Passes of a network, and the gradient of a loss on their results.

    Args:
        learner: the network.

    Attributes:
        parameters: float32 [P], the network's own memory, as a leaf of autograd.
    """

    def __init__(self, learner: Trained) -> None:
        self.parameters = learner.parameters.flat.detach().requires_grad_()
        self.generators = GlobalStreams(learner.bank.device)
        self.shape = (1, *learner.bank.shape)[-2:]
        self._outputs, self._kind, self._learner = learner.outputs, learner.kind, learner
        self._keys_of: Callable[[int], torch.Tensor] | None = None
        self._keys: list[torch.Tensor] = []
        self._drawn: list[int] = []
        self._number = 0

    @contextmanager
    def epoch(self, keys_of: Callable[[int], torch.Tensor], seed: int) -> Iterator[None]:
        """Return a context for training passes, in which the global generators draw from a stream of the run.

        Args:
            keys_of: maps the number of a pass in its step to the keys of its dropout masks, int32 [2].
            seed: seed of the global generators.
        """
        self._keys_of, self._keys, self._drawn = keys_of, [], []
        try:
            with self.generators.kept(), torch.enable_grad():
                self.generators.seed(seed)
                yield
        finally:
            self._keys_of = None

    def begin_step(self) -> None:
        """Begin a step: the next pass is its first."""
        self._number = 0

    def train(self, x: torch.Tensor) -> torch.Tensor:
        """Run a pass in training mode: dropout is on, and batch statistics are used and update the running statistics.

        The masks of the first pass of a step are those of `Learner.train_epoch`; every later pass has its own keys.

        Args:
            x: float32 [n, channels, samples].

        Returns:
            Logits, float32 [n, C]. Their gradient with respect to the parameters can be computed once.
        """
        if self._keys_of is None:
            raise UsageError("self.model is for losses; expected a call in loss() or direction()")
        x = self.checked(x)
        number, self._number = self._number, self._number + 1
        if number == len(self._keys):
            self._keys.append(self._keys_of(number))
            self._drawn.append(0)
        if self._learner.augment is not None:
            x = self._learner.augment(x)
        first = self._drawn[number]
        self._drawn[number] += len(x)
        return self._train(x, self._keys[number], torch.arange(first, first + len(x), device=x.device), number)

    def checked(self, x: object) -> torch.Tensor:
        """Return frames in the form that the passes need.

        Raises:
            UsageError: the frames have another type or shape.
        """
        expected = f"expected float32 frames [n, {self.shape[0]}, {self.shape[1]}]"
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
            raise UsageError(f"self.model got {getattr(x, 'dtype', type(x).__name__)}; {expected}")
        if x.shape[1:] != self.shape or not len(x):
            raise UsageError(f"self.model got a tensor {list(x.shape)}; {expected}")
        return x

    @abstractmethod
    def _train(self, x: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, number: int) -> torch.Tensor: ...

    @abstractmethod
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits in evaluation mode, float32 [n, C], of these parameters or others, [P], without a gradient."""

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return sum_i weights_i l_i: logits [n, c], targets [n, c], weights [n], l_i of `losses.instance_losses`."""
        return (weights * losses.instance_losses(self._kind, logits, y)).sum()

    def gradient(self, loss: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of a loss with respect to the parameters, [P]; None if it does not depend on them."""
        (found,) = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        return found


class OpenPass(torch.autograd.Function):
    """Pass of native kernels with a forward and a backward half. Only the vector of parameters has a gradient."""

    @staticmethod
    def forward(ctx: Any, parameters: torch.Tensor, forward: Callable[[], torch.Tensor], backward: Any) -> torch.Tensor:
        """Return the logits, [n, C]."""
        del parameters
        ctx.backward_half = backward
        return forward()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_logits: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient with respect to the parameters, [P]."""
        return ctx.backward_half(by_logits), None, None


class WeightedLoss(torch.autograd.Function):
    """Loss whose gradient with respect to the logits is computed in its forward pass."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, forward: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    ) -> torch.Tensor:
        """Return the loss."""
        loss, ctx.by_logits = forward(logits)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient with respect to the logits."""
        return ctx.by_logits * upstream, None
