"""Projections of many runs at once against the solver that takes one after another."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning.projection import project, project_singly
from clops_sweep.learning.projection_on_device import project_together


@settings(max_examples=120)
@given(st.integers(0, 10**6), st.integers(1, 11), st.integers(1, 4), st.sampled_from([1e-4, 1.0, 1e4]), st.booleans())
def test_the_same_gradients_as_one_after_another(seed: int, past: int, runs: int, scale: float, alike: bool) -> None:
    stream = np.random.default_rng(seed)
    memory = stream.standard_normal((runs, past, 40))
    if alike:  # tasks that nearly agree: a badly conditioned programme
        memory = memory[:, :1] + 0.05 * memory
    gradients = scale * (stream.standard_normal((runs, 40)) - memory.sum(1) * stream.random())
    together = project_together(torch.from_numpy(gradients), torch.from_numpy(scale * memory))
    for run in range(runs):
        alone = project(gradients[run], scale * memory[run])
        assert (bool(together.violated[run]), bool(together.solved[run])) == (alone.violated, alone.solved)
        tolerance = 1e-6 * max(np.abs(alone.gradient).max(), 1e-12)
        np.testing.assert_allclose(together.gradients[run].numpy(), alone.gradient, rtol=1e-5, atol=tolerance)


def test_what_is_not_finite_is_a_failure_of_its_own_run_alone() -> None:
    stream = np.random.default_rng(0)
    gradients = torch.from_numpy(stream.standard_normal((3, 6)))
    memory = -gradients[:, None] + 0.1 * torch.from_numpy(stream.standard_normal((3, 2, 6)))
    memory[1, 0, 0] = torch.nan
    found, singly = project_together(gradients, memory), project_singly(gradients, memory)
    assert found.solved.tolist() == singly.solved.tolist() == [True, False, True]
    assert found.violated.tolist() == singly.violated.tolist() == [True, True, True]
    torch.testing.assert_close(found.gradients, singly.gradients)
    assert torch.equal(found.gradients[1], gradients[1])


@pytest.mark.parametrize("project_runs", [project_together, project_singly])
def test_where_nothing_objects_nothing_changes(project_runs: object) -> None:
    gradients = torch.randn(2, 9, generator=torch.Generator().manual_seed(0))
    memory = gradients[:, None].repeat(1, 3, 1)
    found = project_runs(gradients, memory)  # type: ignore[operator]
    assert torch.equal(found.gradients, gradients)
    assert not found.violated.any()
    assert found.solved.all()
