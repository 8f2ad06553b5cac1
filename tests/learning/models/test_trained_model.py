"""Stored models reproduce the predictions of their runs, for any network and scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, network
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.models.trained_model import model_from
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.methods import SOME


class Beside(nn.Module):
    """A buffer that the state dict leaves out, running statistics of another, and a tensor of extra state."""

    shift: torch.Tensor
    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.randn(8), persistent=False)
        self.register_buffer("mean", torch.zeros(8), persistent=False)
        self.scale = torch.rand(8)

    def get_extra_state(self) -> torch.Tensor:
        return self.scale

    def set_extra_state(self, state: torch.Tensor) -> None:
        self.scale = state

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * hidden.detach().mean(0))
        return (hidden - self.mean + self.shift) * self.scale


@network("with_all_kinds_of_tensors")
def with_all_kinds_of_tensors(channels: int, samples: int, outputs: int) -> nn.Module:
    layers = nn.Flatten(), nn.Linear(channels * samples, 8), nn.ReLU(), Beside(), nn.Linear(8, outputs)
    return nn.Sequential(*layers)


@network("tied_network")
class Tied(nn.Module):
    """Two layers share their weights, one is frozen, and a buffer counts batches."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.norm, self.last = nn.BatchNorm1d(8), nn.Linear(8, outputs)
        self.steps = samples // 8 * 8

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x[:, 0, : self.steps].unflatten(1, (8, -1)).mean(2)
        return self.last(self.norm(self.frozen(self.second(self.first(hidden).relu()))))


def kept(which: Any = "all", *, tasks: int = 3, **settings: Any) -> tuple[FrameSet, RunResult, str]:
    config = tiny_config(**({"scenario": "class_il", "epochs_per_task": 2} | settings))
    frames = tiny_frames(config.scenario, tasks=tasks)
    result = ContinualRun(config, frames, keep_predictions=True, keep_models=which).run()
    return frames, result, config.run_id(frames.data_hash)


def predicted(content: bytes, frames: FrameSet, instances: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x = torch.from_numpy(frames.signal(instances)).view(len(instances), frames.channels, -1)
    with torch.no_grad():
        found: np.ndarray[Any, Any] = model_from(content)(x).numpy()
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scenario": "time_il", "strategy": "er"},
        {"scenario": "domain_il"},
        {"strategy": "multitask"},
        {"strategy": "joint"},
        {"network": "tied_network"},
        {"network": "with_all_kinds_of_tensors"},
        {"network": "with_all_kinds_of_tensors", "strategy": "er", "stream": "online"},
        {"network": "with_all_kinds_of_tensors", "epochs_per_task": 3, "early_stopping": 1},
        {"scenario": "time_il", "head": "cosine", "norm": "layer", "precision": "bfloat16"},
        *(
            pytest.param(
                {"scenario": "class_il_union", "strategy": name, "tasks": 2},
                marks=() if name in SOME else pytest.mark.nightly,
            )
            for name in STRATEGIES
        ),
        {"network": "small_cnn"},
        pytest.param(
            {"network": "resnet1d_wang", "epochs_per_task": 1, "tasks": 1}, marks=pytest.mark.nightly
        ),  # large
    ],
    ids=str,
)
def test_models_predict_what_their_runs_predicted(settings: dict[str, Any]) -> None:
    frames, result, _ = kept(**settings)
    models, rows = result.models, result.predictions
    assert set(models) == set(rows["trained_on"])
    for tasks, content in models.items():
        there = rows[rows["trained_on"] == tasks]
        stored = there[[name for name in rows if name.startswith("probability_")]].to_numpy()
        np.testing.assert_allclose(predicted(content, frames, there["instance"].to_numpy()), stored, rtol=0, atol=1e-5)


@pytest.mark.parametrize("which", ["last", "all"])
def test_resumed_runs_keep_the_same_bytes(which: Any) -> None:
    config, frames = tiny_config("class_il", epochs_per_task=2), tiny_frames("class_il")
    whole = ContinualRun(config, frames, keep_models=which).run()
    begun = ContinualRun(config, frames, keep_models=which)
    for _ in range(3):
        begun.advance()
    resumed = ContinualRun(config, frames, keep_models=which)
    resumed.restore(begun.state())
    assert resumed.run().models == whole.models
    plain = ContinualRun(config, frames)
    plain.advance()
    with pytest.raises(KeyError):
        ContinualRun(config, frames, keep_models=which).restore(plain.state())
