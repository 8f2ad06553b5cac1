"""beta: its gradient against finite differences of the loss, and its Adam steps."""

from __future__ import annotations

import pytest
import torch

from clops_sweep.learning.batches import EpochBatch
from clops_sweep.learning.learners.beta import TaskInstanceParameters

PENALTY = 10.0


def objective(beta: torch.Tensor, current: list[int], losses: list[float], replayed: list[float]) -> float:
    """Return mean_I(beta l) + lambda mean_I((beta - 1)^2) + mean_J(l), without the term of an empty set."""
    total = 0.0
    if current:
        total += sum(float(beta[i]) * loss for i, loss in zip(current, losses, strict=True)) / len(current)
        total += PENALTY * sum((float(beta[i]) - 1) ** 2 for i in current) / len(current)
    if replayed:
        total += sum(replayed) / len(replayed)
    return total


def batch_of(positions: torch.Tensor, current: torch.Tensor) -> EpochBatch:
    count = current.sum().float().expand(current.shape)
    positions = torch.where(current, positions, 0)
    nothing = torch.zeros(positions.shape)
    draws = torch.arange(len(current))
    ones = torch.ones(positions.shape)
    return EpochBatch(positions, nothing[..., None], nothing, draws, positions, current, count, ones, 0)


@pytest.mark.parametrize("current_count", [0, 1, 3, 8])
def test_gradient_by_finite_differences_of_the_loss(current_count: int) -> None:
    stream = torch.Generator().manual_seed(current_count)
    parameters = TaskInstanceParameters(9, PENALTY, 1e-4, torch.device("cpu"))
    parameters.values = (1 + 0.1 * torch.randn(9, generator=stream)).double()
    positions = torch.randperm(9, generator=stream)[:8]
    current = torch.tensor([place < current_count for place in range(8)])
    losses = torch.rand(8, generator=stream).double()
    found = parameters.gradient(batch_of(positions, current), losses)

    inside, outside = losses[:current_count].tolist(), losses[current_count:].tolist()
    chosen = positions[:current_count].tolist()
    for instance in range(9):
        step = torch.zeros(9, dtype=torch.float64)
        step[instance] = 1e-6
        beta = parameters.values
        slope = (
            objective(beta + step, chosen, inside, outside) - objective(beta - step, chosen, inside, outside)
        ) / 2e-6
        assert float(found[instance]) == pytest.approx(slope, abs=1e-8)
        if instance in chosen:
            loss = inside[chosen.index(instance)]
            formula = (loss + 2 * PENALTY * (float(beta[instance]) - 1)) / current_count
            assert float(found[instance]) == pytest.approx(formula, abs=1e-12)
        else:
            assert found[instance] == 0


def test_the_vector_takes_adam_steps_as_torch_would() -> None:
    ours = TaskInstanceParameters(6, PENALTY, 1e-2, torch.device("cpu"))
    theirs = torch.ones(6, requires_grad=True)
    optimizer = torch.optim.Adam([theirs], lr=1e-2)
    stream = torch.Generator().manual_seed(0)
    for _ in range(25):
        positions = torch.randperm(6, generator=stream)[:4]
        losses = torch.rand(4, generator=stream)
        optimizer.zero_grad()
        beta = theirs[positions]
        ((beta * losses).mean() + PENALTY * (beta - 1).square().mean()).backward()
        optimizer.step()
        ours.step(batch_of(positions, torch.ones(4, dtype=torch.bool)), losses)
        ours.record()
        torch.testing.assert_close(ours.values, theirs.detach(), rtol=0, atol=1e-6)
    assert ours.trajectories().shape == (25, 6)
    assert torch.equal(ours.trajectories()[-1], ours.values)
    assert (ours.values < 1).all()
