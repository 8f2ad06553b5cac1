"""Runs of a user's network computed at once, as on a GPU: each has the same numbers as alone."""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.stacked_learner import StackedLearner, can_be_stacked
from clops_sweep.learning.networks.dropout import CountedDropout
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import of_shape, tiny_config, tiny_frames
from clops_sweep.testing.watch import difference, global_randomness, result_difference, saved_and_loaded

CPU = torch.device("cpu")
SEEDS = (3, 8)


class Plain(nn.Module):
    """A frozen layer, convolution, batch norm; dropout of channels and of units."""

    def __init__(self, channels: int, samples: int, outputs: int, p: float = 0.25) -> None:
        super().__init__()
        self.stem = nn.Conv1d(channels, channels, 1).requires_grad_(False)
        self.convolution, self.norm = nn.Conv1d(channels, 6, 9, 4, bias=False), nn.BatchNorm1d(6)
        self.of_channels, self.of_units = nn.Dropout1d(p), nn.Dropout(p)
        self.head = nn.Linear(12, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        hidden = self.of_channels(torch.relu(self.norm(self.convolution(self.stem(frames)))))
        return self.head(self.of_units(F.adaptive_max_pool1d(hidden, 2).flatten(1)))


no_dropout = partial(Plain, p=0.0)


class OwnNorm(nn.Module):
    """Standardises by a running mean, in a buffer that it replaces each time; writes to its input."""

    seen: torch.Tensor

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(channels, 1))
        self.head = nn.Linear(channels * samples, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * frames.detach().mean((0, 2))[:, None]
        return self.head(F.dropout(frames.sub_(self.seen).flatten(1), 0.2, self.training))


class Odd(nn.Module):
    """Does something that runs would share, or that cannot be computed at once."""

    def __init__(self, channels: int, samples: int, outputs: int, *, how: str) -> None:
        super().__init__()
        self.how, self.head, self.own = how, nn.Linear(channels * samples, outputs), torch.rand(1).item()
        self.norm = nn.BatchNorm1d(channels, momentum=None if how == "momentum" else 0.1)
        if how == "recurrent":
            self.extra = nn.GRU(samples, samples, batch_first=True)
        elif how == "attention":
            self.extra = nn.TransformerEncoderLayer(samples, 1, 4, batch_first=True)

    def forward(self, frames: torch.Tensor) -> Any:
        hidden = self.norm(frames)
        match self.how:
            case "attribute":
                hidden = hidden * self.own
            case "control flow":
                hidden = hidden if self.head.weight.sum() > 0 else 2 * hidden
            case "numpy" if self.training:
                hidden = hidden + np.random.standard_normal()  # noqa: NPY002
            case "python" if self.training:
                hidden = hidden * (1 + 0.001 * random.random())
            case "noise" if self.training:
                hidden = hidden + torch.randn_like(hidden)
            case "time first":
                hidden = F.dropout(hidden.transpose(0, 1), 0.1, self.training).transpose(0, 1)
            case "attention":
                hidden = self.extra(hidden)
            case "recurrent":
                hidden = self.extra(hidden)[0]
        return self.head(hidden.flatten(1))


HOWS = {
    "nothing": None,
    "attribute": "it gives other logits in training",
    "control flow": "data-dependent control flow",
    "numpy": "it gives other logits in training",
    "python": "it gives other logits in training",
    "noise": "it raises RuntimeError: vmap: called random operation",
    "time first": "whose first axis is not that of instances",
    "attention": "it raises RuntimeError: vmap: called random operation",
    "recurrent": "Batching rule not implemented",
    "momentum": "it raises",
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with ExitStack() as stack:
        for name, make in {"plain": Plain, "no_dropout": no_dropout, "own_norm": OwnNorm, "odd": Odd}.items():
            stack.enter_context(NETWORKS.temporarily(name, make))
        yield


@pytest.fixture(scope="module")
def frames() -> FrameSet:
    return of_shape(tiny_frames("class_il", tasks=2), 2, 80)


@pytest.mark.parametrize("how", list(HOWS))
def test_what_can_be_stacked_is_found_out_by_trying(how: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="clops_sweep")
    with global_randomness(1, "the trial"):
        found = can_be_stacked("odd", (3, 8), 2, {"how": how}, CPU)
    assert found == (HOWS[how] is None)
    assert (HOWS[how] or "") in caplog.text
    assert ("runs of network 'odd' are computed one after the other; stacked, " in caplog.text) != found


WORD = 0xFFFFFFFF


def hashed(counters: NDArray[np.uint64], first: Any, second: Any) -> NDArray[np.uint64]:
    """Return Wellons' finaliser with a second key, in 64-bit arithmetic."""
    word = (counters + first) & WORD
    word = ((word ^ word >> 16) * 0x7FEB352D & WORD) ^ second
    word = (word ^ word >> 15) * 0x846CA68B & WORD
    return word ^ word >> 16


def masks_by_hand(keys: torch.Tensor, draws: list[int], layers: list[tuple[int, float]]) -> list[torch.Tensor]:
    """Return one run's mask [B, units] of each dropout layer of an instance, given units and p."""
    first, second = (np.uint64(int(key) & WORD) for key in keys)
    rows = [np.array([2 * draw + place for draw in draws], np.uint64) for place in (0, 1)]
    own = [hashed(row, first, second)[:, None] for row in rows]
    start, masks = 0, []
    for units, p in layers:
        words = hashed(np.arange(start, start + units, dtype=np.uint64), *own)
        signed = words.astype(np.uint32).view(np.int32).astype(np.int64)
        masks.append(torch.from_numpy(np.where(signed + 2**31 < round(p * 2**32), 0.0, 1 / (1 - p))))
        start += units
    return masks


def test_masks() -> None:
    keys, draws = streams.keys((5,), "test")[0], torch.arange(300) + 40
    hidden, inplace = torch.ones(300, 4, 50), torch.ones(300, 50)
    with CountedDropout(keys, draws):
        of_units, of_channels = F.dropout(hidden, 0.3), F.dropout1d(hidden, 0.5)
        again = F.dropout(inplace, 0.3, True, True)
        assert F.dropout(hidden, 0.3, training=False) is hidden
        assert not F.dropout(hidden, 1.0).any()
    expected = masks_by_hand(keys, draws.tolist(), [(200, 0.3), (4, 0.5), (50, 0.3)])
    torch.testing.assert_close(of_units, expected[0].float().view(300, 4, 50))
    torch.testing.assert_close(of_channels, expected[1].float()[..., None].expand(-1, -1, 50))
    torch.testing.assert_close(again, expected[2].float())
    assert again is inplace
    deviation = (0.3 * 0.7 / of_units.numel()) ** 0.5
    assert abs((of_units == 0).double().mean() - 0.3) < 4 * deviation
    assert abs((of_channels[..., 0] == 0).double().mean() - 0.5) < 4 * (0.25 / 1200) ** 0.5
    both = ((of_units[:, 0] == 0) & (again == 0)).double().mean()
    assert abs(both - 0.09) < 4 * (0.09 * 0.91 / again.numel()) ** 0.5, "layers drop units independently"
    with CountedDropout(keys, draws[7:9]):
        assert torch.equal(F.dropout(hidden[:2], 0.3), of_units[7:9]), "whatever batch an instance is in"


def learner_of(network: str, frames: FrameSet, seeds: tuple[int, ...] = SEEDS) -> StackedLearner:
    return StackedLearner(seeds, "binary", 1, 1e-2, FrameBank(frames, CPU), network)


def batch_of(frames: FrameSet, step: int, runs: int = 2) -> Batch:
    stream = torch.Generator().manual_seed(step)
    rows = torch.randint(0, len(frames), (runs, 7), generator=stream)
    weights = torch.rand(runs, 7, generator=stream)
    return Batch(rows, (rows % 2)[:, :, None].float(), weights, torch.arange(7) + 7 * step)


class Given(nn.Module):
    """Dropout with a given mask."""

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * self.mask


def by_hand(learner: StackedLearner, run: int, draws: list[int], keys: torch.Tensor, *, training: bool) -> nn.Module:
    """Return a copy of one of the networks in float64, with dropout on."""
    module = copy.deepcopy(learner._modules[run].module).double()
    of_channels, of_units = masks_by_hand(keys[run], draws, [(6, 0.25), (12, 0.25)])
    module.of_channels, module.of_units = Given(of_channels[..., None]), Given(of_units)
    module.norm.train(training)
    module.zero_grad()
    return module


def signal(frames: FrameSet, rows: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(frames.signal(rows.numpy())).double()


@pytest.mark.parametrize(("memory", "track"), [(False, True), (False, False), (True, True)])
def test_gradients_and_running_statistics_are_those_of_autograd(memory: bool, track: bool, frames: FrameSet) -> None:
    learner, keys = learner_of("plain", frames), streams.keys(SEEDS, "test")
    learner.train_step(batch_of(frames, 1), keys)
    batch, norms, before = batch_of(frames, 4), [], saved_and_loaded(learner.state())
    modules = [by_hand(learner, run, batch.draws.tolist(), keys, training=not memory) for run in (0, 1)]
    expected = []
    for run, module in enumerate(modules):
        logits = module(signal(frames, batch.rows[run]))
        each = F.binary_cross_entropy_with_logits(logits, batch.targets[run].double(), reduction="none")[:, 0]
        (batch.weights[run] * each).sum().backward()
        expected.append(each.detach().float())
        norms.append(module.norm)
    if memory:
        gradient = learner.memory_gradient(batch, keys)
    else:
        found, gradient = learner.gradient(batch, keys, track_statistics=track)
        torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-6)
    views = learner.parameters.like(gradient).views
    for run, module in enumerate(modules):
        for name, view in views.items():
            torch.testing.assert_close(view[run], module.get_parameter(name).grad.float(), rtol=1e-4, atol=1e-6)
        buffers = learner._modules[run].buffers
        if track and not memory:
            torch.testing.assert_close(buffers["norm.running_mean"], module.norm.running_mean.float())
            torch.testing.assert_close(buffers["norm.running_var"], module.norm.running_var.float())
            assert buffers["norm.num_batches_tracked"] == 2
        else:
            assert difference(before["buffers"][run], buffers) is None


@pytest.mark.parametrize(("dropped", "training"), [(True, True), (False, True), (True, False), (False, False)])
def test_gradient_of_any_loss(dropped: bool, training: bool, frames: FrameSet) -> None:
    learner, keys, batch = learner_of("plain", frames), streams.keys(SEEDS, "test"), batch_of(frames, 9)
    draws = batch.draws.tolist()
    modules = [by_hand(learner, run, draws, keys, training=training) for run in (0, 1)]

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (logits - targets).pow(4).mean((1, 2))

    given = (batch.draws, keys) if dropped else (None, None)
    with global_randomness(5, "a gradient"):
        logits, gradient = learner.loss_gradient(batch.rows, *given, loss, batch.targets, batch_statistics=training)
    for run, module in enumerate(modules):
        if not dropped:
            module.of_channels, module.of_units = nn.Identity(), nn.Identity()
        expected = module(signal(frames, batch.rows[run]))
        loss(expected[None], batch.targets[run : run + 1]).sum().backward()
        torch.testing.assert_close(logits[run], expected.detach().float(), rtol=1e-4, atol=1e-6)
        for name, view in learner.parameters.like(gradient).views.items():
            torch.testing.assert_close(view[run], module.get_parameter(name).grad.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("network", ["plain", "own_norm"])
def test_a_learner_with_other_runs_beside_it(network: str, frames: FrameSet) -> None:
    """Also excerpts, checkpoints, and a restart."""
    learner, alone = learner_of(network, frames), learner_of(network, frames, SEEDS[1:])
    start = saved_and_loaded(learner.state())
    for step in range(5):
        batch, keys = batch_of(frames, step), streams.keys(SEEDS, "test", step)
        own = Batch(batch.rows[1:], batch.targets[1:], batch.weights[1:], batch.draws)
        for each, of_each, of_keys in ((learner, batch, keys), (alone, own, keys[1:])):
            each.train_step(of_each, of_keys)
    for part in (alone, learner.excerpt([1])):
        torch.testing.assert_close(learner.logits(batch.rows)[1:], part.logits(own.rows), rtol=1e-4, atol=1e-5)
        passes = [
            each.dropout_probabilities(*of)
            for each, of in ((learner, (batch.rows, 3, keys)), (part, (own.rows, 3, keys[1:])))
        ]
        torch.testing.assert_close(passes[0][1:], passes[1], rtol=1e-4, atol=1e-5)
    one_by_one = ModuleLearner(SEEDS, "binary", 1, 1e-2, learner.bank, network)
    one_by_one.restore(saved_and_loaded(learner.state()))
    torch.testing.assert_close(one_by_one.logits(batch.rows), learner.logits(batch.rows))
    learner.begin_anew(0)
    assert difference(start, learner.state()) is None
    learner.restore(saved_and_loaded(one_by_one.state()))
    assert difference(learner.state(), one_by_one.state()) is None


def runs_at_once(configs: list[RunConfig], frames: FrameSet, monkeypatch: pytest.MonkeyPatch) -> ContinualRun:
    with monkeypatch.context() as patched:
        patched.setattr("clops_sweep.learning.run.make_learner", partial(make_learner, together=True))
        return ContinualRun(configs, frames)


def assert_near(found: RunResult, expected: RunResult) -> None:
    np.testing.assert_allclose(found.r_matrix["auc"], expected.r_matrix["auc"], atol=1e-3)
    np.testing.assert_allclose(found.curves["loss"], expected.curves["loss"], rtol=1e-3)


@pytest.mark.parametrize("strategy", ["clops", "gem", "mir", "er"])
def test_whole_runs(strategy: str, frames: FrameSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, one after another, alone and resumed."""
    config = tiny_config("class_il", strategy=strategy, network="plain", epochs_per_task=2)
    configs = [config, config.replace(seed=4), config.replace(seed=9)]
    run, states = runs_at_once(configs, frames, monkeypatch), []
    with global_randomness(1, "the runs"):
        while not run.finished:
            states.append(saved_and_loaded(run.state()))
            run.advance()
    together = run.result()
    assert set(together.runs["backend"]) == {"torch-stacked"}
    alone = runs_at_once(configs[1:2], frames, monkeypatch).run()
    assert_near(together.of(configs[1].run_id(frames.data_hash)), alone)
    resumed = runs_at_once(configs, frames, monkeypatch)
    resumed.restore(states[3])
    assert result_difference(together, resumed.run()) is None
    without = [each.replace(network="no_dropout", acquisition="entropy") for each in configs[:2]]
    assert_near(runs_at_once(without, frames, monkeypatch).run(), ContinualRun(without, frames).run())
