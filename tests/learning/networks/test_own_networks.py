"""Users' networks with any layers: every strategy trains them, and a run's numbers do not depend on other runs."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, NETWORKS
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.global_streams import GlobalStreams, seed_of
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.testing import of_shape, tiny_config, tiny_frames
from clops_sweep.testing.watch import difference, global_randomness, result_difference, saved_and_loaded
from tests.learning.kernels import BACKEND_OF_PROGRAMS
from tests.learning.methods import ANYWHERE

CPU = torch.device("cpu")
SHAPE = {"channels": 2, "samples": 80}


class Convolutional(nn.Module):
    """Batch norm over channels, and dropout."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv1d(channels, 6, 9, 4), nn.BatchNorm1d(6)
        self.dropout, self.head = nn.Dropout(0.25), nn.Linear(12, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        hidden = torch.relu(self.norm(self.convolution(frames)))
        return self.head(self.dropout(F.adaptive_max_pool1d(hidden, 2).flatten(1)))


class Recurrent(nn.Module):
    """Two layers of LSTM with dropout between them, group norm."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(channels, 4, 10, 10)
        self.lstm = nn.LSTM(4, 6, num_layers=2, dropout=0.2, batch_first=True)
        self.norm, self.head = nn.GroupNorm(2, 6), nn.Linear(6, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        hidden, _ = self.lstm(self.stem(frames).transpose(1, 2))
        return self.head(self.norm(hidden[:, -1]))


class Attending(nn.Module):
    """A transformer with dropout in its attention, a frozen layer, and noise from NumPy and Python."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(channels, 8, 10, 10).requires_grad_(False)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        hidden = self.attention(self.stem(frames).transpose(1, 2)).mean(1)
        if self.training:
            hidden = hidden * (1 + 0.1 * random.random()) + 0.1 * float(np.random.standard_normal())  # noqa: NPY002
        return self.head(hidden)


class OwnNorm(nn.Module):
    """Standardises by batch, and by a running mean in a buffer that it replaces each time."""

    seen: torch.Tensor

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(channels, 1))
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(channels * samples, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * frames.detach().mean((0, 2))[:, None]
        return self.head(self.dropout((frames - self.seen).flatten(1)))


def over_vectors(channels: int, samples: int, outputs: int) -> nn.Module:
    """Lazy layers, and batch norm over vectors, which needs two instances."""
    first = [nn.AvgPool1d(5), nn.Flatten(), nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU()]
    return nn.Sequential(*first, nn.Dropout(0.2), nn.LazyLinear(outputs))


KINDS = {
    "convolutional": Convolutional,
    "recurrent": Recurrent,
    "attending": Attending,
    "own_norm": OwnNorm,
    "over_vectors": over_vectors,
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    before = set(NETWORKS.added)
    for name, make in KINDS.items():
        NETWORKS.register(name, make)
    yield
    for name in NETWORKS.added.keys() - before:
        NETWORKS.forget(name)


@pytest.fixture(scope="module")
def frames() -> FrameSet:
    return of_shape(tiny_frames("class_il", tasks=2), **SHAPE)


COMBINATIONS = [(name, "bald_mcd") for name in ANYWHERE] + [("clops", name) for name in ACQUISITION_FUNCTIONS]


@pytest.mark.parametrize(("strategy", "acquisition"), dict.fromkeys(COMBINATIONS))
def test_every_strategy_and_acquisition_function(strategy: str, acquisition: str, frames: FrameSet) -> None:
    config = tiny_config("class_il", network="convolutional", strategy=strategy, acquisition=acquisition)
    with global_randomness(1, "the run"):
        result = ContinualRun(config, frames).run()
    assert result.r_matrix["auc"].between(0, 1).all()
    assert result.curves["loss"].notna().all()
    assert result.runs["backend"].tolist() == [BACKEND_OF_PROGRAMS]


@pytest.mark.parametrize("network", [name for name in KINDS if name != "convolutional"])
def test_any_layers_and_resumed(network: str, frames: FrameSet) -> None:
    """Bit for bit. The contract suite covers the convolutional network."""
    config = tiny_config("class_il", network=network)
    run, states = ContinualRun(config, frames), []
    with global_randomness(1, "the runs"):
        while not run.finished:
            states.append(saved_and_loaded(run.state()))
            run.advance()
    resumed = ContinualRun(config, frames)
    resumed.restore(states[3])
    assert result_difference(run.result(), resumed.run()) is None


def learner_of(network: str, frames: FrameSet, seed: int = 8) -> ModuleLearner:
    return ModuleLearner(seed, "binary", 1, 1e-2, FrameBank(frames, CPU), network)


def batch_of(frames: FrameSet, size: int = 7, first_draw: int = 14) -> Batch:
    stream = torch.Generator().manual_seed(size)
    rows = torch.randint(0, len(frames), (size,), generator=stream)
    weights = torch.rand(size, generator=stream)
    return Batch(rows, (rows % 2)[:, None].float(), weights, torch.arange(first_draw, first_draw + size))


def by_hand(learner: ModuleLearner, *, norm_in_training: bool) -> nn.Module:
    """Return a copy of the network, with dropout on."""
    module = copy.deepcopy(learner.module()).train()
    module.norm.train(norm_in_training)
    return module


def test_gradients_and_running_statistics_are_those_of_autograd(frames: FrameSet) -> None:
    learner, batch = learner_of("convolutional", frames), batch_of(frames)
    keys = streams.keys(8, "test")
    for track, memory in ((False, False), (False, True), (True, False)):
        module = by_hand(learner, norm_in_training=not memory)
        module.zero_grad()
        torch.manual_seed(seed_of((int(keys[0]), int(keys[1])), 14))
        logits = module(torch.from_numpy(frames.signal(batch.rows.numpy())))
        each = F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none")[:, 0]
        (batch.weights * each).sum().backward()
        before = {name: buffer.clone() for name, buffer in learner.state()["buffers"].items()}
        if memory:
            found = learner.memory_gradient(batch, keys)
        else:
            _, found = learner.gradient(batch, keys, track_statistics=track)
        expected = {name: parameter.grad for name, parameter in module.named_parameters()}
        torch.testing.assert_close(learner.parameters.like(found).views, expected)
        after = learner.state()["buffers"]
        if track:
            torch.testing.assert_close(after["norm.running_mean"], module.norm.running_mean)
        else:
            assert all(torch.equal(before[name], after[name]) for name in before)


def test_steps_are_those_of_a_bare_loop_with_pytorchs_adam(frames: FrameSet) -> None:
    learner = learner_of("recurrent", frames)
    module = copy.deepcopy(learner.module()).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for step in range(20):
        batch, keys = batch_of(frames, first_draw=8 * step), streams.keys(8, "test", step)
        optimizer.zero_grad()
        torch.manual_seed(seed_of((int(keys[0]), int(keys[1])), 8 * step))
        logits = module(torch.from_numpy(frames.signal(batch.rows.numpy())))
        each = F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none")[:, 0]
        (batch.weights * each).sum().backward()
        optimizer.step()
        found = learner.train_step(batch, keys)
        torch.testing.assert_close(found, each.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", list(KINDS))
def test_passes_with_dropout(network: str, frames: FrameSet) -> None:
    """Against a copy of the module with equal generators; passes leave no side effects."""
    learner, batch, keys = learner_of(network, frames), batch_of(frames), streams.keys(8, "test")
    learner.train_step(batch, keys)
    rows, before = torch.arange(10), saved_and_loaded(learner.state())
    noise = 0.1 * torch.randn(10, 2, 80, generator=torch.Generator().manual_seed(0))
    with global_randomness(2, "the passes"):
        found = learner.dropout_probabilities(rows, 5, keys, noise=noise)
        assert torch.equal(learner.dropout_probabilities(rows, 5, keys, noise=noise), found)
    assert difference(before, learner.state()) is None
    assert found.shape == (10, 5, 1)
    assert (found.std(1) > 1e-7).double().mean() > 0.8, "passes of one instance differ"
    module = copy.deepcopy(learner.module()).train()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | OwnNorm):
            layer.training = False
    generators = GlobalStreams(CPU)
    with generators.kept(), torch.no_grad():
        generators.seed(seed_of((int(keys[0]), int(keys[1])), 0))
        inputs = torch.from_numpy(frames.signal(rows.numpy())) + noise
        expected = torch.sigmoid(module(inputs.repeat_interleave(5, dim=0))).view(10, 5, 1)
    assert torch.equal(found, expected)


def test_initial_weights_follow_from_the_run_s_seed(frames: FrameSet) -> None:
    seed = int(streams.sequence(8, "initial parameters").generate_state(1, "uint64")[0])
    torch.manual_seed(seed)
    expected = Convolutional(2, 80, 1)
    torch.manual_seed(0)
    learner, other = learner_of("convolutional", frames), learner_of("convolutional", frames, 3)
    for name, parameter in expected.named_parameters():
        assert torch.equal(learner.parameters.views[name], parameter)
        assert not torch.equal(other.parameters.views[name], parameter) or name.startswith("norm")
    one, two = learner_of("attending", frames), learner_of("attending", frames)
    stems = [it.module().stem.weight for it in (one, two)]
    assert torch.equal(*stems), "what is frozen follows from the seed too"
    assert not any("stem" in name for name in one.parameters.views)


@pytest.mark.parametrize("network", ["resnet1d_wang", "inception_time", "small_cnn"])
def test_built_in_networks(network: str) -> None:
    frames = of_shape(tiny_frames("domain_il", tasks=2), 2, 48)
    config = tiny_config("domain_il", network=network, strategy="replay", epochs_per_task=1, domain="site")
    result = ContinualRun(config, frames).run()
    assert result.r_matrix["auc"].between(0, 1).all()
    channels, outputs = 2, 3
    shapes = {name: p.shape for name, p in NETWORKS[network](channels, 48, outputs).named_parameters()}
    assert sum(shape.numel() for shape in shapes.values()) == PARAMETERS[network](channels, outputs)


PARAMETERS = {
    "resnet1d_wang": lambda c, o: (
        c * 64 * 8 + 64 * 64 * 5 + 64 * 64 * 3 + 3 * 128 + c * 64 + 128  # kernels 8, 5, 3, their norms, the shortcut
        + 64 * 128 * 8 + 128 * 128 * 5 + 128 * 128 * 3 + 3 * 256 + 64 * 128 + 256
        + 128 * 128 * (8 + 5 + 3) + 3 * 256
        + 128 * o + o
    ),
    "small_cnn": lambda c, o: (c * 16 * 7 + 32 + 16 * 32 * 5 + 64 + 32 * 64 * 3 + 128 + 64 * o + o),
    "inception_time": lambda c, o: (
        c * 32 + 32 * 32 * (40 + 20 + 10) + c * 32 + 256  # bottleneck, three kernels, convolution after pooling, norm
        + 5 * (128 * 32 + 32 * 32 * (40 + 20 + 10) + 128 * 32 + 256)
        + c * 128 + 256 + 128 * 128 + 256
        + 128 * o + o
    ),
}  # fmt: skip
"""Counted from the papers' figures; convolutions before batch norm have no bias."""


@pytest.mark.parametrize(("dropped", "training"), [(True, True), (False, True), (True, False), (False, False)])
def test_gradient_of_any_loss(dropped: bool, training: bool, frames: FrameSet) -> None:
    """Against autograd through a float32 copy of each module, with the modes of its layers set by hand."""
    learner = ModuleLearner(3, "binary", 1, 1e-3, FrameBank(frames, CPU), "convolutional")
    rows, draws = torch.tensor([4, 5, 6, 7]), torch.arange(4) + 50
    keys = streams.keys(3, "x")
    module = copy.deepcopy(learner.module())
    before = saved_and_loaded(learner.state())

    def loss(logits: torch.Tensor) -> torch.Tensor:
        return logits.pow(3).mean()

    with global_randomness(5, "a gradient"):
        logits, gradient = learner.loss_gradient(
            rows, *((draws, keys) if dropped else (None, None)), loss, batch_statistics=training
        )
    assert (difference(before["buffers"], learner.state()["buffers"]) is None) != training
    views = learner.parameters.like(gradient).views
    module.norm.train(training)
    module.dropout.train(dropped)
    module.zero_grad(set_to_none=True)
    generators = GlobalStreams(CPU)
    with generators.kept():
        generators.seed(seed_of(tuple(keys.tolist()), 50))
        expected = module(learner.bank.gather(rows).view(4, 2, 80))
    loss(expected).backward()
    torch.testing.assert_close(logits, expected.detach())
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(views[name], parameter.grad, rtol=1e-4, atol=1e-7)
