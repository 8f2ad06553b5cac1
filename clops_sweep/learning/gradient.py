"""The network in training, forwards and backwards, for S runs at once.

Written out rather than left to autograd: of the time that a step of so small a network takes, autograd's bookkeeping is
a third, and on a GPU each of its small extra kernels is a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from clops_sweep.learning.blocks import (
    columns_of,
    pool_relu_dropout,
    pool_relu_dropout_gradient,
    sum_of_columns,
)
from clops_sweep.learning.network import CHANNELS, EPSILON, MOMENTUM, Masks, RunningStatistics

Views = Mapping[str, torch.Tensor]
"""Parameters of S networks, or gradients by them, by name: each [S, ...]."""


@dataclass(frozen=True)
class _BlockTrace:
    """What a block leaves for its gradient; `saved` is batch norm's mean and inverse deviation."""

    shape: torch.Size
    columns: torch.Tensor
    convolved: torch.Tensor
    saved: tuple[torch.Tensor, torch.Tensor]
    is_first: torch.Tensor
    mask: torch.Tensor
    result: torch.Tensor


@dataclass(frozen=True)
class Trace:
    """A pass through the networks with dropout, from which gradients can be had.

    Attributes:
        logits: [S, B, C].
    """

    logits: torch.Tensor
    views: Views
    statistics: RunningStatistics | None
    batch_statistics: bool
    blocks: Sequence[_BlockTrace]
    features: torch.Tensor
    inner: torch.Tensor

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        views: Views,
        statistics: RunningStatistics | None,
        frames: torch.Tensor,
        masks: Masks,
        *,
        batch_statistics: bool,
    ) -> Trace:
        """Runs the networks.

        Args:
            views: parameters.
            statistics: running statistics. With batch statistics they are updated in place with momentum 0.1, if
                given; without, batch norm is in evaluation mode and uses them.
            frames: [B, S, 2500].
            masks: as `dropout.masks` makes them.
            batch_statistics: whether batch norm is in training mode.
        """
        hidden = frames.transpose(0, 1)[:, None]
        blocks = []
        for number in (1, 2, 3):
            blocks.append(_block(number, hidden, views, statistics, masks, batch_statistics))
            hidden = blocks[-1].result
        features = hidden.transpose(1, 2).flatten(2)
        inner = torch.baddbmm(views["linear1.bias"][:, None], features, views["linear1.weight"].transpose(1, 2)).relu_()
        logits = torch.baddbmm(views["linear2.bias"][:, None], inner, views["linear2.weight"].transpose(1, 2))
        return cls(logits, views, statistics, batch_statistics, blocks, features, inner)

    @torch.no_grad()
    def gradient(self, by_logits: torch.Tensor, into: Views) -> None:
        """Writes the gradient by every parameter, given that by the logits, [S, B, C]."""
        views = self.views
        torch.bmm(by_logits.transpose(1, 2), self.inner, out=into["linear2.weight"])
        torch.sum(by_logits, 1, out=into["linear2.bias"])
        by_inner = torch.bmm(by_logits, views["linear2.weight"])
        by_inner = torch.ops.aten.threshold_backward(by_inner, self.inner, 0)
        torch.bmm(by_inner.transpose(1, 2), self.features, out=into["linear1.weight"])
        torch.sum(by_inner, 1, out=into["linear1.bias"])
        by_features = torch.bmm(by_inner, views["linear1.weight"])
        gradient = by_features.unflatten(2, (CHANNELS[3], -1)).transpose(1, 2)
        for number in (3, 2, 1):
            block = self.blocks[number - 1]
            by_convolved = self._block_gradient(number, gradient, into)
            if number > 1:
                weight = views[f"conv{number}.weight"].flatten(2)
                by_column = torch.bmm(weight.transpose(1, 2), by_convolved)
                gradient = sum_of_columns(by_column, block.shape[2], block.shape[3])

    def _block_gradient(self, number: int, gradient: torch.Tensor, into: Views) -> torch.Tensor:
        """Writes the gradient by a block's parameters, and returns that by its convolution's output."""
        block, views = self.blocks[number - 1], self.views
        channels = block.convolved.shape[0] * block.convolved.shape[1]
        gradient = pool_relu_dropout_gradient(
            gradient, block.result, block.is_first, block.mask, block.convolved.shape[2]
        )
        means, variances = _of_block(self.statistics, number)
        by_channel, by_gain, by_shift = torch.ops.aten.native_batch_norm_backward(
            gradient.view(1, channels, -1),
            block.convolved.view(1, channels, -1),
            views[f"norm{number}.weight"].reshape(-1),
            means,
            variances,
            *block.saved,
            self.batch_statistics,
            EPSILON,
            [True, True, True],
        )
        by_convolved: torch.Tensor = by_channel.view(block.convolved.shape)
        into[f"norm{number}.weight"].copy_(by_gain.view(into[f"norm{number}.weight"].shape))
        into[f"norm{number}.bias"].copy_(by_shift.view(into[f"norm{number}.bias"].shape))
        torch.bmm(by_convolved, block.columns.transpose(1, 2), out=into[f"conv{number}.weight"].flatten(2))
        if self.batch_statistics:
            # Batch statistics take a bias out again. Computed, its gradient would be rounding noise, which Adam blows
            # up to full steps.
            into[f"conv{number}.bias"].zero_()
        else:
            torch.sum(by_convolved, 2, out=into[f"conv{number}.bias"])
        return by_convolved


def _block(
    number: int,
    hidden: torch.Tensor,
    views: Views,
    statistics: RunningStatistics | None,
    masks: Masks,
    batch_statistics: bool,
) -> _BlockTrace:
    columns = columns_of(hidden)
    weight, bias = views[f"conv{number}.weight"], views[f"conv{number}.bias"]
    convolved = torch.bmm(weight.flatten(2), columns)
    means, variances = _of_block(statistics, number)
    if not batch_statistics:
        convolved += bias[:, :, None]
    elif means is not None:
        # The bias, which batch statistics take out again, is left out from the start. The running means have it in
        # them, and take up their share of it before they decay.
        means.add_(bias.flatten(), alpha=MOMENTUM / (1 - MOMENTUM))
    normalized, *saved = torch.native_batch_norm(
        convolved.flatten(0, 1)[None],  # S * C channels, for which a batch is one long instance
        views[f"norm{number}.weight"].reshape(-1),
        views[f"norm{number}.bias"].reshape(-1),
        means,
        variances,
        batch_statistics,
        MOMENTUM,
        EPSILON,
    )
    mask, channels = masks[number - 1], CHANNELS[number]
    mask = mask.view(len(mask), -1, channels, mask.shape[2]).permute(1, 2, 0, 3)
    result, is_first = pool_relu_dropout(normalized.view(convolved.shape), mask)
    return _BlockTrace(hidden.shape, columns, convolved, (saved[0], saved[1]), is_first, mask, result)


def _of_block(statistics: RunningStatistics | None, number: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    if statistics is None:
        return None, None
    return statistics.means[number - 1], statistics.variances[number - 1]
