"""RunNetworks: predictions and gradients of the networks of S runs, without training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from torch import nn

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.augmentation.augmenter import Augmenter
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.parameters import Parameters

Loss = Callable[..., torch.Tensor]
"""Maps logits, float32 [s, B, C], and the other tensors given for these s runs to the loss of each or their sum."""


class RunNetworks(ABC):
    """Networks of S runs. The numbers of a run do not depend on the other runs.

    Attributes:
        seeds: one seed per run.
        kind: kind of output.
        outputs: C.
        bank: the frames of each row.
        parameters: parameters of all networks.
        backend: name of the backend, as recorded with every run.
        augment: augmentation of the frames in training passes, if given.
    """

    backend: str = "torch"
    augment: Augmenter | None = None

    def __init__(
        self, seeds: Sequence[int], kind: LossKind, outputs: int, bank: FrameBank, parameters: Parameters
    ) -> None:
        self.seeds = tuple(seeds)
        self.kind = kind
        self.outputs = outputs
        self.bank = bank
        self.parameters = parameters
        self._gradient = parameters.like(torch.zeros_like(parameters.flat))

    @abstractmethod
    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and gradient of a batch in training mode, with batch statistics and dropout.

        Args:
            batch: the instances and their weights.
            dropout_keys: int32 [S, 2].
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            Unweighted losses l_i, float32 [S, B], and the gradient of sum_i weights_i l_i, laid out like
            `parameters.flat`; the next gradient overwrites it.
        """

    def memory_gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """Return the gradient of sum_i weights_i l_i with batch norm in evaluation mode; otherwise as `gradient`."""
        return self.gradient(batch, dropout_keys, batch_statistics=False)[1]

    @abstractmethod
    def backpropagate(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        by_logits: Callable[..., torch.Tensor],
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradient of a loss, given its gradient with respect to the logits; see also `loss_gradient`.

        Args:
            rows: int64 [S, B].
            draws: int64 [B], counters of the dropout masks.
            dropout_keys: int32 [S, 2]; None for a pass without dropout, which needs no draws.
            by_logits: maps logits, float32 [s, B, C], which it must not write to, and the tensors `given` for the same
                s runs to the gradient of the loss with respect to the logits; see `loss_gradient`.
            given: [S, ...], further arguments of `by_logits`.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            The logits, and the gradient, laid out like `parameters.flat`; the next gradient overwrites it.
        """

    def loss_gradient(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        loss: Loss,
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradient of any loss that is a function of the logits.

        Example::

            def loss(logits, targets, stored):  # cross-entropy, and a tenth of the squared distance to other logits
                apart = binary_cross_entropy_with_logits(logits, targets, reduction="none").mean((1, 2))
                return apart + 0.1 * (logits - stored).square().mean((1, 2))

            logits, gradient = learner.loss_gradient(rows, draws, keys, loss, targets, stored)
            learner.apply(gradient)

        Args:
            rows: int64 [S, B].
            draws: int64 [B], counters of the dropout masks.
            dropout_keys: int32 [S, 2]; None for a pass without dropout, which needs no draws.
            loss: maps logits, float32 [s, B, C], and the tensors `given` for the same s runs to the loss of each run,
                [s], or to their sum. On a CPU it is called once per run, so that no run's numbers depend on other runs,
                and on a GPU once for all runs. It must therefore take everything that belongs to runs from its
                arguments.
            given: [S, ...], further arguments of the loss: targets, weights, logits of other networks.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            The logits, and the gradient, laid out like `parameters.flat`; the next gradient overwrites it.
        """
        return self.backpropagate(
            rows,
            draws,
            dropout_keys,
            partial(_by_logits, loss),
            *given,
            batch_statistics=batch_statistics,
            track_statistics=track_statistics,
        )

    def instance_gradients(self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield the gradient of the loss l_i of each instance, in evaluation mode.

        Example::

            fisher = sum(g.square() for g in learner.instance_gradients(rows, loss, targets)) / rows.shape[1]

        Args:
            rows: int64 [S, m].
            loss: maps logits, float32 [s, m, C], and the tensors `given` for the same s runs, as in `loss_gradient`, to
                the l_i, [s, m], or to their sum; l_i may depend only on the logits of i.
            given: [S, ...], further arguments of the loss.

        Yields:
            m times a gradient, laid out like `parameters.flat`; the next overwrites it.
        """
        by_logits = self._instances_by_logits(rows, loss, given)
        for place in range(rows.shape[1]):
            own = slice(place, place + 1)
            _, gradient = self.backpropagate(
                rows[:, own], None, None, lambda logits, by: by, by_logits[:, own], batch_statistics=False
            )
            yield gradient

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """Return the mean, over instances, of the squares or absolute values of the gradients of their losses.

        Args:
            rows: int64 [S, m].
            loss: as in `instance_gradients`.
            given: [S, ...], further arguments of the loss.
            of_each: function applied to every entry of a gradient.

        Returns:
            The mean, laid out like `parameters.flat`.
        """
        made, total = {"square": torch.square, "abs": torch.abs}[of_each], torch.zeros_like(self.parameters.flat)
        for gradient in self.instance_gradients(rows, loss, *given):
            total.add_(made(gradient))
        return total.div_(rows.shape[1])

    def _instances_by_logits(self, rows: torch.Tensor, loss: Loss, given: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the gradient of each instance's loss with respect to its logits, in evaluation mode: [S, m, C]."""
        return self._by_runs(partial(_by_logits, loss))(self.logits(rows), *given)

    def _by_runs(self, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Return the same function of logits and further tensors; on a CPU it is applied run by run.

        On a CPU the rounding of an element depends on its index in a tensor.
        """

        def of_each(*values: torch.Tensor) -> torch.Tensor:
            shares = zip(*(of_all.split(1) for of_all in values), strict=True)
            return torch.cat([function(*(of_run.clone() for of_run in share)) for share in shares])

        return function if self.parameters.runs == 1 or self.bank.device.type != "cpu" else of_each

    @abstractmethod
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return logits in evaluation mode, without dropout. Row sets may differ between runs.

        Args:
            rows: int64 [S, m].
            noise: float32 [S, m, ...], of the shape of the instances, added to the frames.
            shift: laid out like `parameters.flat`, added to the parameters for this call only.

        Returns:
            float32 [S, m, C].
        """

    @abstractmethod
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return T predictions of each instance, with dropout and batch norm in evaluation mode.

        Leaves parameters, running statistics, optimiser and every other random stream untouched.

        Args:
            rows: int64 [S, m].
            samples: T.
            dropout_keys: int32 [S, 2]; the masks are a function of the keys and the instance's index.
            noise: float32 [S, m, ...], of the shape of the instances, added to the frames, the same for all T.

        Returns:
            float32 [S, m, T, C].
        """

    @abstractmethod
    def module(self, run: int) -> nn.Module:
        """Return the network of a run as a module in evaluation mode, on the device of the bank. Do not modify it."""

    @abstractmethod
    def weights(self, run: int) -> dict[str, torch.Tensor]:
        """Return the state dict of a run's `nn.Module`, copied to the CPU."""

    def losses(self, rows: torch.Tensor, targets: torch.Tensor, *, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Return losses l_i in evaluation mode, float32 [S, m]; rows and shift as in `logits`, targets [S, m, C]."""
        return losses.instance_losses(self.kind, self.logits(rows, shift=shift), targets)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Return predictions in evaluation mode, float32 [S, m, C]; arguments as in `logits`."""
        return losses.probabilities(self.kind, self.logits(rows, noise=noise))


def _by_logits(loss: Loss, logits: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a loss with respect to the logits, [S, B, C]."""
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf, *given).sum(), leaf)
    return gradient
