"""Training passes in bfloat16: the passes concerned, their parameters, repeated and resumed runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, network
from clops_sweep.testing import tiny_config, tiny_frames

SEEN: list[tuple[bool, torch.dtype]] = []


@network("seen_precision")
def seen_precision(channels: int, samples: int, outputs: int) -> nn.Module:
    class Seen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.requires_grad or not torch.is_grad_enabled():
                SEEN.append((torch.is_grad_enabled(), x.dtype))
            return x

    return nn.Sequential(nn.Conv1d(channels, 4, 25, 25), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(),
                         nn.Linear(4 * (samples // 25), outputs), Seen())  # fmt: skip


def test_passes_with_a_gradient_are_in_bfloat16_and_no_others() -> None:
    config = tiny_config("class_il", network="seen_precision", strategy="finetune", precision="bfloat16")
    run = ContinualRun(config, tiny_frames("class_il"))
    SEEN.clear()
    run.advance()
    assert set(SEEN) == {(True, torch.bfloat16), (False, torch.float32)}
    assert run.learner.parameters.flat.dtype == torch.float32


@pytest.mark.parametrize("settings", [{"network": "seen_precision"}, {}, {"strategy": "agem"}], ids=str)
def test_a_run_goes_on_as_if_never_interrupted(settings: dict[str, Any]) -> None:
    config, frames = tiny_config("class_il", precision="bfloat16", **settings), tiny_frames("class_il")
    begun = ContinualRun(config, frames)
    for _ in range(3):
        begun.advance()
    resumed = ContinualRun(config, frames)
    resumed.restore(begun.state())
    found, expected = resumed.run(), begun.run()
    assert found.curves.equals(expected.curves)
    assert found.runs["backend"][0] in ("torch", "torch-module")
    plain = ContinualRun(config.replace(precision="float32"), frames).run()
    apart = np.abs(plain.curves["loss"] - found.curves["loss"]).max()
    assert 0 < apart < 0.05
