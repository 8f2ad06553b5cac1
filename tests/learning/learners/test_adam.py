"""Adam against torch.optim.Adam."""

from __future__ import annotations

import pytest
import torch

from clops_sweep.learning.learners.optimizers import Adam


@pytest.mark.parametrize("learning_rate", [1e-4, 1e-3, 0.1])
@pytest.mark.parametrize("size", [1, 7, 1001])
def test_every_step_is_that_of_torch_optim(learning_rate: float, size: int) -> None:
    stream = torch.Generator().manual_seed(size)
    start = torch.randn(size, generator=stream)
    ours, theirs = start.clone(), start.clone().requires_grad_()
    optimizer, reference = Adam(ours, learning_rate), torch.optim.Adam([theirs], lr=learning_rate, foreach=False)
    for step in range(60):
        gradient = torch.randn(size, generator=stream) * 10.0 ** (step % 7 - 4)
        if step % 5 == 0:
            gradient.zero_()  # an instance outside the batch
        optimizer.step(gradient)
        theirs.grad = gradient.clone()
        reference.step()
        assert torch.equal(ours, theirs.detach())


def test_a_restored_optimiser_goes_on_as_the_other() -> None:
    values = torch.ones(5)
    optimizer = Adam(values, 0.01)
    gradients = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    for gradient in gradients[:3]:
        optimizer.step(gradient)
    copied = values.clone()
    other = Adam(copied, 0.01)
    other.restore(optimizer.state())
    for gradient in gradients[3:]:
        optimizer.step(gradient)
        other.step(gradient)
    assert torch.equal(values, copied)
    assert other.steps == 6
