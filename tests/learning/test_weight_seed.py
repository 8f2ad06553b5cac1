"""Initial weights from their own seed, everything else from the run's seed, on every kind of learner."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, RunConfig, native
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

KINDS = ("paper", *native.available()[:1], "module", "stacked")
BACKENDS = {"paper": "torch-module", "module": "torch", "stacked": "torch-stacked"}


def small(channels: int, samples: int, outputs: int) -> nn.Module:
    body = (nn.Conv1d(channels, 4, 9, stride=9), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.2))
    return nn.Sequential(*body, nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(16, outputs))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Select the kind of learner that computes runs."""
    kind = str(request.param)
    if kind not in ("module", "stacked"):
        monkeypatch.setenv(native.ENVIRONMENT, "off" if kind == "paper" else kind)
    if kind == "stacked":
        monkeypatch.setattr("clops_sweep.learning.run.make_learner", partial(make_learner, together=True))
    with NETWORKS.temporarily("small", small):
        yield kind


def config_of(kind: str, **settings: object) -> RunConfig:
    network = {"network": "small"} if kind in ("module", "stacked") else {}
    return tiny_config("class_il", epochs_per_task=2, **network, **settings)


def parameters(run: ContinualRun) -> torch.Tensor:
    return run._training.learner.parameters.flat


def apart(one: RunResult, other: RunResult) -> str | None:
    return result_difference(one, other, ("run_id",))


@pytest.fixture(scope="module")
def frames() -> FrameSet:
    return tiny_frames("class_il", tasks=2)


def test_nothing_but_the_initial_weights_comes_from_it(kind: str, frames: FrameSet) -> None:
    """A run of seed 3 with the initial weights of seed 5 is the same run."""
    run = ContinualRun(config_of(kind, seed=3, weight_seed=5), frames)
    assert run._training.learner.backend == BACKENDS.get(kind, f"native-{kind}")
    other, given = ContinualRun(config_of(kind, seed=3), frames), ContinualRun(config_of(kind, seed=5), frames)
    assert torch.equal(parameters(run), parameters(given))
    assert not torch.equal(parameters(run), parameters(other))
    parameters(other).copy_(parameters(given))
    assert apart(run.run(), other.run()) is None
