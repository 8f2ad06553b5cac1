"""Passes: a network as a function under autograd, which a loss may call several times a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

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
        self._outputs = learner.outputs
        self._kind = learner.kind
        self._learner = learner
        self._keys_of: Callable[[int], torch.Tensor] | None = None
        self._keys: list[torch.Tensor] = []
        self._drawn: list[int] = []
        self._number = 0
        self._differentiates = False

    @contextmanager
    def epoch(self, keys_of: Callable[[int], torch.Tensor], seed: int) -> Iterator[None]:
        """Return a context for training passes, in which the global generators draw from a stream of the run.

        Args:
            keys_of: maps the number of a pass in its step to the keys of its dropout masks, int32 [2].
            seed: seed of the global generators.
        """
        self._keys_of = keys_of
        self._keys = []
        self._drawn = []
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
        """Return logits in training mode: with dropout, and batch statistics, which update the running statistics.

        The masks of the first pass of a step are those of `Learner.train_epoch`; every later pass has its own keys.

        Args:
            x: float32 [n, channels, samples].

        Returns:
            Logits, float32 [n, C]. Their gradient with respect to the parameters can be computed once.
        """
        if self._keys_of is None:
            raise UsageError("self.model is for losses; expected a call in loss() or direction()")
        if self._differentiates:
            raise UsageError(
                "self.model was called again while a gradient is computed, as torch.utils.checkpoint does, and would "
                "draw another dropout mask; call it in loss() alone"
            )
        x = self.checked(x)
        number = self._number
        self._number += 1
        if number == len(self._keys):
            self._keys.append(self._keys_of(number))
            self._drawn.append(0)
        if self._learner.augment is not None:
            x = self._learner.augment(x)
        first = self._drawn[number]
        self._drawn[number] = first + len(x)
        return self._train(x, self._keys[number], first, number)

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
    def _train(self, x: torch.Tensor, keys: torch.Tensor, first: int, number: int) -> torch.Tensor:
        """Return the logits of a training pass; the counters of its dropout masks are `first`, `first` + 1, ..."""

    @abstractmethod
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits in evaluation mode, float32 [n, C], of these parameters or others, [P], without a gradient."""

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return sum_i weights_i l_i: logits [n, c], targets [n, c], weights [n], l_i of `losses.instance_losses`."""
        instance_losses = losses.instance_losses(self._kind, logits, y)
        return (weights * instance_losses).sum()

    def gradient(self, loss: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of a loss with respect to the parameters, [P]; None if it does not depend on them."""
        with self.differentiating():
            (gradient,) = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        return gradient

    @contextmanager
    def differentiating(self) -> Iterator[None]:
        """Return a context for the gradient of a loss, in which no pass may begin.

        Raises:
            UsageError: a pass of the loss was differentiated before.
        """
        self._differentiates = True
        try:
            yield
        except RuntimeError as error:
            if "backward through the graph a second time" in str(error):
                raise differentiated_twice() from None
            raise
        finally:
            self._differentiates = False


def differentiated_twice() -> UsageError:
    """Return the error of a second gradient of a pass."""
    return UsageError(
        "a pass of self.model was differentiated twice, but its gradient is computed once: compute one gradient of the "
        "sum of the losses, or call self.model again, and detach what is kept from step to step"
    )


class Workspace:
    """Memory of the kernels for one pass at a time, from its forward half to its backward half."""

    def __init__(self) -> None:
        self._pass = 0
        self._is_done = False

    def begin(self) -> int:
        """Return the number of a pass that begins."""
        self._pass += 1
        self._is_done = False
        return self._pass

    def end(self, number: int) -> None:
        """End a pass, before its backward half.

        Raises:
            UsageError: it has ended, or another pass has begun since.
        """
        if number != self._pass:
            raise UsageError("a loss depends on a pass of an earlier step; detach what is kept from step to step")
        if self._is_done:
            raise differentiated_twice()
        self._is_done = True


class OpenPass(torch.autograd.Function):
    """Pass of native kernels with a forward and a backward half. Only the vector of parameters has a gradient."""

    @staticmethod
    def forward(ctx: Any, parameters: torch.Tensor, forward: Callable[[], torch.Tensor], backward: Any) -> torch.Tensor:
        """Return the logits, [n, C]."""
        ctx.parameters = parameters
        ctx.backward_half = backward
        return forward()

    @staticmethod
    def backward(ctx: Any, by_logits: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient with respect to the parameters, [P]."""
        gradient: torch.Tensor = ctx.backward_half(by_logits.detach())
        if torch.is_grad_enabled():  # with create_graph=True
            gradient = FirstDerivative.apply(gradient, by_logits, ctx.parameters)  # type: ignore[no-untyped-call]
        return gradient, None, None


class WeightedLoss(torch.autograd.Function):
    """Loss whose gradient with respect to the logits is computed in its forward pass.

    Targets and weights have no gradient.
    """

    @staticmethod
    def suits(logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> bool:
        """Return whether tensors are float32, and only the logits may depend on parameters."""
        if targets.requires_grad or weights.requires_grad:
            return False
        return logits.dtype == targets.dtype == weights.dtype == torch.float32

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, weighted_loss: Any
    ) -> torch.Tensor:
        """Return the loss.

        Args:
            ctx: keeps the gradient.
            logits: [n, C].
            targets: [n, C].
            weights: [n].
            weighted_loss: maps these to the loss and its gradient with respect to the logits.
        """
        ctx.logits = logits
        loss: torch.Tensor
        loss, ctx.by_logits = weighted_loss(logits, targets, weights)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient with respect to the logits."""
        by_logits: torch.Tensor = ctx.by_logits * upstream
        if torch.is_grad_enabled():
            by_logits = FirstDerivative.apply(by_logits, upstream, ctx.logits)  # type: ignore[no-untyped-call]
        return by_logits, None, None, None


class FirstDerivative(torch.autograd.Function):
    """A derivative by native kernels, which cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, derivative: torch.Tensor, *depends_on: torch.Tensor) -> torch.Tensor:
        """Return the derivative."""
        del ctx, depends_on
        return derivative.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Raise an error.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "a loss depends on a gradient (create_graph=True), and the native kernels compute no second derivatives; "
            "detach the gradient, or set CLOPS_NATIVE=off"
        )
