"""An independent network of the paper's architecture, learners in mid-training, and cached whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun
from clops_sweep.data.scenarios import Scenario, build_scenario
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.kernels import KERNELS


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class GivenDropout(nn.Module):
    """Dropout with a given mask; without a mask, evaluation."""

    mask: torch.Tensor | None = None

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden if self.mask is None else hidden * self.mask


NAMES = {0: "conv1", 1: "norm1", 5: "conv2", 6: "norm2", 10: "conv3", 11: "norm3", 16: "linear1", 18: "linear2"}


class PaperNetwork(nn.Sequential):
    """The network of the paper's appendix: three times Conv, BatchNorm, ReLU, MaxPool(2), Dropout, then the linear
    layers."""

    def __init__(self, outputs: int) -> None:
        layers: list[nn.Module] = []
        for inputs, channels in ((1, 4), (4, 16), (16, 32)):
            layers += [
                nn.Conv1d(inputs, channels, kernel_size=7, stride=3),
                nn.BatchNorm1d(channels),
                nn.ReLU(),
                nn.MaxPool1d(2),
                GivenDropout(),
            ]
        layers += [nn.Flatten(), nn.Linear(320, 100), nn.ReLU(), nn.Linear(100, outputs)]
        super().__init__(*layers)

    @classmethod
    def of(cls, learner: Learner) -> PaperNetwork:
        """Return a float64 copy of a learner's network, with its running statistics."""
        network = cls(learner.outputs).double().take(learner.parameters.views)
        for place, (mean, variance) in zip((1, 6, 11), running_statistics(learner), strict=True):
            network[place].running_mean.copy_(mean)
            network[place].running_var.copy_(variance)
        return network.eval()

    @torch.no_grad()
    def take(self, parameters: dict[str, torch.Tensor]) -> PaperNetwork:
        """Set the parameters."""
        places = {name: place for place, name in NAMES.items()}
        for name, value in parameters.items():
            layer, _, kind = name.partition(".")
            getattr(self[places[layer]], kind).copy_(value)
        return self

    def masked(self, masks: tuple[torch.Tensor, ...] | None) -> PaperNetwork:
        """Set the masks [B, channels, length], or disable dropout."""
        for number, place in enumerate((4, 9, 14)):
            self[place].mask = None if masks is None else masks[number].double()
        return self

    def norms_in_training(self, training: bool) -> PaperNetwork:
        """Choose between batch statistics and running statistics."""
        for place in (1, 6, 11):
            self[place].train(training)
        return self

    def flat_gradient(self) -> dict[str, torch.Tensor]:
        return {
            f"{NAMES[int(place)]}.{kind}": value.grad
            for name, value in self.named_parameters()
            for place, _, kind in [name.partition(".")]
            if value.grad is not None
        }


def running_statistics(learner: Learner) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return mean and variance of each of the three blocks of a learner's network."""
    if isinstance(learner, NativeLearner):
        return list(zip(learner.statistics[:3], learner.statistics[3:], strict=True))
    buffers = learner.state()["buffers"]
    return [(buffers[f"norm{block}.running_mean"], buffers[f"norm{block}.running_var"]) for block in (1, 2, 3)]


@pytest.fixture(scope="session")
def paper_network() -> type[PaperNetwork]:
    return PaperNetwork


def float_loss(kind: str, logits: list[float], targets: list[float]) -> float:
    """Return the loss of one instance in Python floats, from the definition."""
    if kind == "softmax":
        top = max(logits)
        total = sum(math.exp(z - top) for z in logits)
        return -sum(y * (z - top - math.log(total)) for y, z in zip(targets, logits, strict=True))
    losses = []
    for y, z in zip(targets, logits, strict=True):
        p = 1 / (1 + math.exp(-z))
        losses.append(-(y * math.log(p) + (1 - y) * math.log(1 - p)))
    return sum(losses) / len(losses)


class Trained:
    """A learner after two epochs on the first task of a tiny scenario."""

    def __init__(self, kind: str, seed: int, backend: str) -> None:
        self.config = tiny_config(kind)
        self.frames = tiny_frames(kind)
        self.scenario: Scenario = build_scenario(self.frames, self.config.scenario, self.config.task_order)
        self.seed = seed
        bank = FrameBank(self.frames, torch.device("cpu"))
        common = (seed, self.scenario.kind, self.scenario.outputs, self.config.learning_rate, bank)
        self.learner: Learner = (
            ModuleLearner(*common, PAPER_NETWORK) if backend == "torch" else NativeLearner(*common, backend)
        )
        self.tasks = [
            Instances(torch.from_numpy(task.train.rows), torch.from_numpy(task.train.targets))
            for task in self.scenario.tasks
        ]
        for epoch in range(2):
            order = streams.permutation(seed, len(self.tasks[0].rows), "test order", epoch)
            self.learner.train_epoch(self.tasks[0], None, order, 8, streams.keys(seed, "test dropout", epoch))

    def signal(self, rows: torch.Tensor) -> torch.Tensor:
        """Return frames [n, 1, 2500] in float64, directly from the frame set."""
        return torch.from_numpy(self.frames.signal(rows.numpy())).double()[:, None]


@pytest.fixture(params=["torch", *KERNELS])
def trained(request: pytest.FixtureRequest) -> Callable[..., Trained]:
    def make(kind: str = "class_il", seed: int = 3) -> Trained:
        return Trained(kind, seed, request.param)

    return make


Run = Callable[..., RunResult]


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a finished run on tiny frames by its settings, cached for the session."""
    known: dict[Any, RunResult] = {}

    def make(kind: str = "class_il", *, tasks: int = 3, **settings: Any) -> RunResult:
        key = (kind, tasks, tuple(sorted(settings.items())))
        if key not in known:
            known[key] = ContinualRun(tiny_config(kind, **settings), tiny_frames(kind, tasks=tasks)).run()
        return known[key]

    return make
