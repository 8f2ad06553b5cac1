"""Optimisers and schedules against `torch.optim`, alone and in whole runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.learning.learners.optimizers import make_optimizer, scheduled
from clops_sweep.testing import tiny_config, tiny_frames

REFERENCES: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("name", REFERENCES)
def test_steps_are_those_of_torch(name: str, weight_decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(50, generator=generator)
    theirs = values.clone().double().requires_grad_()
    reference = REFERENCES[name]([theirs], lr=0.01, weight_decay=weight_decay)
    ours = make_optimizer(name, values, 0.01, weight_decay)
    for step in range(20):
        if step == 10:
            ours.learning_rate = 0.003
            reference.param_groups[0]["lr"] = 0.003
        gradient = torch.randn(50, generator=generator)
        ours.step(gradient)
        theirs.grad = gradient.double()
        reference.step()
    torch.testing.assert_close(values.double(), theirs.detach(), rtol=1e-5, atol=1e-6)


def test_schedules_have_the_factors_of_their_formulas() -> None:
    root = 0.5**0.5  # cos(pi / 4)
    assert [scheduled("cosine", it, 4) for it in range(4)] == pytest.approx([1, (1 + root) / 2, 0.5, (1 - root) / 2])
    assert [scheduled("step", it, 8) for it in range(8)] == [1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01]


@pytest.mark.parametrize(
    "settings",
    [{"schedule": "cosine"}, {"optimizer": "adamw", "weight_decay": 0.1}, {"optimizer": "sgd", "learning_rate": 0.05}],
    ids=str,
)
def test_a_run_goes_on_within_a_task_as_if_never_interrupted(settings: dict[str, Any]) -> None:
    config, frames = tiny_config("class_il", epochs_per_task=3, **settings), tiny_frames("class_il")
    whole = ContinualRun(config, frames).run()
    begun = ContinualRun(config, frames)
    for _ in range(4):
        begun.advance()
    resumed = ContinualRun(config, frames)
    resumed.restore(begun.state())
    found = resumed.run()
    assert found.r_matrix.equals(whole.r_matrix)
    assert found.curves.equals(whole.curves)


def test_the_native_kernels_follow_a_schedule() -> None:
    """Kernels and modules agree up to rounding, and differ more from a constant rate."""
    frames = tiny_frames("class_il")
    configs = [tiny_config("class_il", epochs_per_task=3, schedule=it) for it in ("cosine", "constant")]
    native, constant = (ContinualRun(config, frames).run() for config in configs)
    module = ContinualRun(configs[0], frames)
    if not native.runs["backend"][0].startswith("native"):
        pytest.skip("the native kernels were not built")
    from clops_sweep.learning.learners import backend

    with pytest.MonkeyPatch.context() as context:
        context.setattr(backend.native, "chosen", lambda: None)
        module = ContinualRun(configs[0], frames)
    of_module = module.run()
    assert of_module.runs["backend"][0] == "torch-module"
    losses = [result.curves["loss"].to_numpy() for result in (native, of_module, constant)]
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-3)
    assert np.abs(losses[0] - losses[2]).max() > 1e-3
