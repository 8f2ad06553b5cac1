"""RunNetworks: the networks of S runs, for readers that do not train them: predictions and gradients."""

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
"""From logits, float32 [s, B, C], and what else was given for these s runs, to the loss of each or their sum."""


class RunNetworks(ABC):
    """The networks of S runs. A run's numbers do not depend on what it is computed with.

    Attributes:
        seeds: one a run.
        kind: kind of output.
        outputs: C.
        bank: where rows become frames.
        parameters: of all networks.
        backend: what computes, as recorded with every run.
        augment: changes the frames of training passes, if given.
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
        """Loss and gradient of a batch in training mode: batch statistics, dropout on.

        Args:
            batch: the instances and their weights.
            dropout_keys: int32 [S, 2].
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether the running statistics take in this batch.

        Returns:
            Unweighted losses l_i, float32 [S, B], and the gradient of sum_i weights_i l_i, laid out like
            `parameters.flat`; the next gradient overwrites it.
        """

    def memory_gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """The gradient of sum_i weights_i l_i with dropout on and batch norm in evaluation mode; else as `gradient`."""
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
        """The gradient of a loss that says itself what its gradient by the logits is; `loss_gradient` finds that out.

        Args:
            rows: int64 [S, B].
            draws: int64 [B], counters of the dropout masks.
            dropout_keys: int32 [S, 2]; None for a pass without dropout, which needs no draws.
            by_logits: from logits, float32 [s, B, C], and what else was given for the same s runs to the gradient of
                the loss by the logits, which may not be written to; see `loss_gradient`.
            given: [S, ...], what it needs beside the logits.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether these take in the batch's.

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
        """The gradient of any loss that is written on logits.

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
            loss: from logits, float32 [s, B, C], and what else was given for the same s runs to the loss of each run,
                [s], or to their sum. On a CPU it is called for one run after another, so that no run's numbers depend
                on what it is stacked with, on a GPU for all at once: so it takes all that belongs to runs from its
                arguments, and nothing from elsewhere.
            given: [S, ...], what the loss needs beside the logits: targets, weights, logits of other networks.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether these take in the batch's.

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
        """The gradient of each instance's own loss l_i, one after the other, in evaluation mode.

        Example::

            fisher = sum(g.square() for g in learner.instance_gradients(rows, loss, targets)) / rows.shape[1]

        Args:
            rows: int64 [S, m].
            loss: from logits, float32 [s, m, C], and what else was given for the same s runs, as in `loss_gradient`, to
                the l_i, [s, m], or to their sum; l_i may depend on the logits of i alone.
            given: [S, ...], what the loss needs beside the logits.

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
        """The mean over some instances of the squares, or absolute values, of the gradient of each one's own loss.

        Args:
            rows: int64 [S, m].
            loss: as of `instance_gradients`.
            given: [S, ...], what the loss needs beside the logits.
            of_each: what is made of every entry of a gradient.

        Returns:
            Laid out like `parameters.flat`.
        """
        made, total = {"square": torch.square, "abs": torch.abs}[of_each], torch.zeros_like(self.parameters.flat)
        for gradient in self.instance_gradients(rows, loss, *given):
            total.add_(made(gradient))
        return total.div_(rows.shape[1])

    def _instances_by_logits(self, rows: torch.Tensor, loss: Loss, given: Sequence[torch.Tensor]) -> torch.Tensor:
        """The gradient of each instance's own loss by its logits, in evaluation mode: [S, m, C]."""
        return self._by_runs(partial(_by_logits, loss))(self.logits(rows), *given)

    def _by_runs(self, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """The same function of logits and what belongs to them, on a CPU of one run's after another's.

        There the rounding of an element depends on where in a tensor it is.
        """

        def of_each(*values: torch.Tensor) -> torch.Tensor:
            shares = zip(*(of_all.split(1) for of_all in values), strict=True)
            return torch.cat([function(*(of_run.clone() for of_run in share)) for share in shares])

        return function if self.parameters.runs == 1 or self.bank.device.type != "cpu" else of_each

    @abstractmethod
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Evaluation mode, no dropout. Row sets may differ between runs.

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
        """T predictions of each instance with dropout on and batch norm in evaluation mode.

        Leaves parameters, running statistics, optimiser and every other random stream untouched.

        Args:
            rows: int64 [S, m].
            samples: T.
            dropout_keys: int32 [S, 2]; what is dropped follows from them and from the instance's position.
            noise: float32 [S, m, ...], of the shape of the instances, added to the frames, the same for all T.

        Returns:
            float32 [S, m, T, C].
        """

    @abstractmethod
    def module(self, run: int) -> nn.Module:
        """The network of a run as a module in evaluation mode, on the device of the bank; not to be changed."""

    @abstractmethod
    def weights(self, run: int) -> dict[str, torch.Tensor]:
        """The state dict of the network of a run, as its `nn.Module` has it: copies on the CPU."""

    def losses(self, rows: torch.Tensor, targets: torch.Tensor, *, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Losses l_i in evaluation mode, float32 [S, m]; arguments as in `logits`, targets float32 [S, m, C]."""
        return losses.instance_losses(self.kind, self.logits(rows, shift=shift), targets)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Predictions in evaluation mode, float32 [S, m, C]; arguments as in `logits`."""
        return losses.probabilities(self.kind, self.logits(rows, noise=noise))


def _by_logits(loss: Loss, logits: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
    """The gradient of a loss by the logits, [S, B, C]."""
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf, *given).sum(), leaf)
    return gradient
