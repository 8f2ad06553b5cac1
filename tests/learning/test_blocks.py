"""Convolution by columns and pooling against PyTorch's own, and their gradients against autograd's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning import blocks

LENGTHS = st.integers(10, 60)


def places(positions: int) -> list[int]:
    """The positions of one instance in the order of the columns."""
    pairs = positions // 2
    return [*range(0, 2 * pairs, 2), *range(1, 2 * pairs, 2), *range(2 * pairs, positions)]


def in_order(values: torch.Tensor) -> torch.Tensor:
    """[S, C, B, n] to [S, C, B n]: part by part, instance by instance."""
    positions = values.shape[3]
    pairs = positions // 2
    order = places(positions)
    parts = [order[:pairs], order[pairs : 2 * pairs], order[2 * pairs :]]
    return torch.cat([values[..., part].flatten(2) for part in parts], dim=2)


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), LENGTHS, st.integers(0, 10**6))
def test_convolution_and_its_gradients(runs: int, channels: int, batch: int, length: int, seed: int) -> None:
    stream = torch.Generator().manual_seed(seed)
    hidden = torch.randn(runs, channels, batch, length, generator=stream, dtype=torch.float64)
    weight = torch.randn(runs, 2, channels, 7, generator=stream, dtype=torch.float64)
    columns = blocks.columns_of(hidden)
    theirs = torch.stack([F.conv1d(hidden[s].transpose(0, 1), weight[s], stride=3) for s in range(runs)])
    torch.testing.assert_close(torch.bmm(weight.flatten(2), columns), in_order(theirs.transpose(1, 2)))
    # The gradient of a linear map is its adjoint: <A x, y> = <x, A' y> for all x and y.
    other = torch.randn(columns.shape, generator=stream, dtype=torch.float64)
    back = blocks.sum_of_columns(other, batch, length)
    assert back.shape == hidden.shape
    assert float((columns * other).sum()) == pytest.approx(float((hidden * back).sum()), rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(2, 41), st.integers(0, 10**6))
def test_pool_relu_dropout_and_its_gradient(runs: int, batch: int, positions: int, seed: int) -> None:
    stream = torch.Generator().manual_seed(seed)
    # Small integers: pairs that are equal, and zeros.
    plain = torch.randint(-2, 3, (runs, 2, batch, positions), generator=stream).double().requires_grad_()
    mask = (torch.rand(runs, 2, batch, positions // 2, generator=stream) > 0.3).double() / 0.7
    expected = F.relu(F.max_pool1d(plain.flatten(0, 2)[:, None], 2)).view(mask.shape) * mask
    outer = torch.randn(mask.shape, generator=stream, dtype=torch.float64)
    (by_plain,) = torch.autograd.grad(expected, plain, outer)
    hidden = in_order(plain.detach())
    result, is_first = blocks.pool_relu_dropout(hidden, mask)
    assert torch.equal(result, expected.detach())
    by_hidden = blocks.pool_relu_dropout_gradient(outer, result, is_first, mask, hidden.shape[2])
    torch.testing.assert_close(by_hidden, in_order(by_plain))
