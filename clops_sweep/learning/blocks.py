"""The convolutions and poolings of a training block and their gradients, for S networks at once.

A convolution of S networks is one batched matrix product, whatever S is, where a grouped convolution is many small
ones. Its output is laid out for the pooling that follows: first what the pool compares first, then what it compares
that with, then what is left over, so that nothing after it has to step over every other number.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

KERNEL, STRIDE = 7, 3


def columns_of(hidden: torch.Tensor) -> torch.Tensor:
    """What each output of a convolution with kernel 7 and stride 3 looks at: x[s, c, b, 3 l + k].

    Args:
        hidden: x, [S, C, B, L], which gives n = floor((L - 7) / 3) + 1 positions l.

    Returns:
        [S, C * 7, B * n]: for every b the even l but an unpaired last one, for every b the odd l, for every b what is
        left. A convolution is its product with the weights, [S, O, C * 7].
    """
    runs, channels, batch, length = hidden.shape
    positions = (length - KERNEL) // STRIDE + 1
    windows = hidden.unfold(3, KERNEL, STRIDE).permute(0, 1, 4, 2, 3)
    columns = hidden.new_empty(runs, channels, KERNEL, batch * positions)
    for part, chosen in _parts(batch, positions):
        columns[..., part].view(runs, channels, KERNEL, batch, -1).copy_(windows[..., chosen])
    return columns.flatten(1, 2)


def sum_of_columns(by_column: torch.Tensor, batch: int, length: int) -> torch.Tensor:
    """The gradient by x, [S, C, B, L], from that by its columns: each x takes the sum over the columns it is in.

    Input 6 j + i belongs to the even position 2 j for i < 6, to the odd one for i >= 3, and to their predecessors for
    what is left of seven taps: in steps of two strides there is nothing within a part that overlaps.
    """
    runs, rows, _ = by_column.shape
    positions, width = (length - KERNEL) // STRIDE + 1, 2 * STRIDE
    steps = max((positions + 1) // 2 + 1, -(-length // width))
    total = by_column.new_zeros(runs, rows // KERNEL, batch, steps, width)
    for part, chosen in _parts(batch, positions):
        taps = by_column[..., part].view(runs, rows // KERNEL, KERNEL, batch, -1).permute(0, 1, 3, 4, 2)
        step, start = divmod(STRIDE * chosen.start, width)  # where the first tap of the part's first position falls
        inside, count = width - start, taps.shape[3]
        total[:, :, :, step : step + count, start:] += taps[..., :inside]
        total[:, :, :, step + 1 : step + 1 + count, : KERNEL - inside] += taps[..., inside:]
    return total.flatten(3)[..., :length]


def _parts(batch: int, positions: int) -> Iterator[tuple[slice, slice]]:
    """Where the parts of an output lie, and which positions l they hold."""
    pairs = positions // 2
    paired = batch * pairs
    yield slice(0, paired), slice(0, 2 * pairs, 2)
    yield slice(paired, 2 * paired), slice(1, 2 * pairs, 2)
    if positions % 2:
        yield slice(2 * paired, None), slice(2 * pairs, None)


def pool_relu_dropout(hidden: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """y[..., l] = m[..., l] max(0, x[..., 2 l], x[..., 2 l + 1]); a last x without a partner is left out.

    Args:
        hidden: x, [S, C, B * n], laid out as the columns are.
        mask: m, [S, C, B, floor(n / 2)], nowhere negative.

    Returns:
        y, in the shape of the mask, and 1.0 where the first of two was not the smaller, as the gradient wants it.
    """
    paired = mask.shape[2] * mask.shape[3]
    first, second = hidden[..., :paired], hidden[..., paired : 2 * paired]
    result = torch.maximum(first, second).clamp_min_(0).view(mask.shape).mul_(mask)
    # Numbers, as products with truth values are not vectorised.
    return result, torch.ge(first, second, out=torch.empty_like(first))


def pool_relu_dropout_gradient(
    gradient: torch.Tensor, result: torch.Tensor, is_first: torch.Tensor, mask: torch.Tensor, size: int
) -> torch.Tensor:
    """The gradient by x, [S, C, size], from that by y; of two equal inputs the first takes it, as in PyTorch's pool."""
    passed: torch.Tensor = torch.ops.aten.threshold_backward(gradient, result, 0).mul_(mask).view(is_first.shape)
    paired = is_first.shape[2]
    by_input = passed.new_empty(*is_first.shape[:2], size)
    torch.mul(passed, is_first, out=by_input[..., :paired])
    torch.sub(passed, by_input[..., :paired], out=by_input[..., paired : 2 * paired])
    by_input[..., 2 * paired :].zero_()
    return by_input
