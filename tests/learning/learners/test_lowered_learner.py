"""A learner with a lowered network has the numbers of one with the module, up to rounding, and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import native
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.lowered_learner import LoweredLearner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.program_learner import ProgramLearner
from clops_sweep.learning.lowering.lower import lowered
from clops_sweep.learning.lowering.masks import CountedMasks
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.run_module import RunModule
from clops_sweep.testing import of_shape, tiny_frames
from tests.learning.lowering.networks import OUTPUTS, EEGNet, parametrized, plain, residual

pytestmark = [
    pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
]

MODULES: dict[str, Callable[[], nn.Module]] = {
    "plain_stack": plain,
    "residual_blocks": residual,
    "usual_eegnet": lambda: EEGNet(3, 40),
    "parametrized": parametrized,
}
KEYS = torch.tensor([5, -9], dtype=torch.int32)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    def maker(make: Callable[[], nn.Module]) -> Callable[..., nn.Module]:
        return lambda channels, samples, outputs: make()

    for name, make in MODULES.items():
        NETWORKS.register(name, maker(make))
    yield
    for name in MODULES:
        NETWORKS.forget(name)


@pytest.fixture(scope="module")
def frames() -> FrameSet:
    return of_shape(tiny_frames("class_il", tasks=2), 3, 40)


class Pair:
    """Learners with the same parameters, one lowered and one with the module."""

    def __init__(self, network: str, frames: FrameSet) -> None:
        common = (3, "softmax", OUTPUTS, 1e-3, FrameBank(frames, torch.device("cpu")), network)
        found = make_learner(*common)
        assert isinstance(found, LoweredLearner)
        self.lowered: LoweredLearner = found
        self.module = ModuleLearner(*common)
        shape = found.bank.shape
        self.statistics = probed(network, NETWORKS[network], (shape[0], shape[1]), OUTPUTS, {}).statistics
        count = 11
        stream = torch.Generator().manual_seed(1)
        targets = torch.eye(OUTPUTS)[torch.randint(OUTPUTS, (count,), generator=stream)]
        weights = torch.rand(count, generator=stream)
        self.batch = Batch(torch.arange(count), targets, weights, torch.arange(40, 40 + count))
        for learner in (self.lowered, self.module):  # away from initial values
            for _ in range(3):
                self.lowered.apply(self.lowered.gradient(self.batch, KEYS)[1])
            learner.restore(self.lowered.state())

    def masked(self, draws: torch.Tensor) -> CountedMasks:
        run = RunModule(self.module.copy().module(), OUTPUTS, self.statistics)
        program = lowered(run, 3, 40)
        assert isinstance(program, Program)
        return CountedMasks(program, KEYS, draws)

    def close(self, found: torch.Tensor, expected: torch.Tensor) -> None:
        scale = float(expected.abs().max())
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-4 * scale + 1e-7)

    def buffers_close(self) -> None:
        others = self.module.state()["buffers"]
        for name, buffer in self.lowered.state()["buffers"].items():
            torch.testing.assert_close(buffer, others[name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.fixture(params=MODULES)
def pair(request: pytest.FixtureRequest, frames: FrameSet) -> Pair:
    return Pair(request.param, frames)


@pytest.mark.parametrize("batch_statistics", [True, False])
@pytest.mark.parametrize("track_statistics", [True, False])
def test_gradients_are_those_of_the_module_with_the_same_masks(
    pair: Pair, batch_statistics: bool, track_statistics: bool
) -> None:
    settings = {"batch_statistics": batch_statistics, "track_statistics": track_statistics}
    with pair.masked(pair.batch.draws):
        expected_losses, expected = pair.module.gradient(pair.batch, KEYS, **settings)
    found_losses, found = pair.lowered.gradient(pair.batch, KEYS, **settings)
    pair.close(found_losses, expected_losses)
    pair.close(found, expected)
    pair.buffers_close()


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("batch_statistics", [True, False])
def test_gradients_of_any_loss_are_those_of_the_module(pair: Pair, dropped: bool, batch_statistics: bool) -> None:
    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (logits - targets).abs().pow(1.5).sum()

    rows, draws = pair.batch.rows, pair.batch.draws
    arguments = (draws, KEYS) if dropped else (None, None)
    with pair.masked(draws):
        logits, gradient = pair.module.loss_gradient(
            rows, *arguments, loss, pair.batch.targets, batch_statistics=batch_statistics
        )
        expected_logits, expected = logits.clone(), gradient.clone()
    found_logits, found = pair.lowered.loss_gradient(
        rows, *arguments, loss, pair.batch.targets, batch_statistics=batch_statistics
    )
    pair.close(found_logits, expected_logits)
    pair.close(found, expected)
    pair.buffers_close()


def test_predictions_are_those_of_the_module(pair: Pair) -> None:
    rows = torch.arange(21)
    shift = 0.01 * torch.randn(pair.module.parameters.flat.shape, generator=torch.Generator().manual_seed(2))
    noise = 0.1 * torch.randn(21, 3, 40, generator=torch.Generator().manual_seed(3))
    before = pair.lowered.parameters.flat.clone()
    for settings in ({}, {"shift": shift}, {"noise": noise}):
        pair.close(pair.lowered.logits(rows, **settings), pair.module.logits(rows, **settings))
    assert torch.equal(before, pair.lowered.parameters.flat)


def test_monte_carlo_passes_are_those_of_the_module_with_the_same_masks(pair: Pair) -> None:
    rows, samples = torch.arange(19), 4
    with pair.masked(torch.arange(19 * samples)):
        expected = pair.module.dropout_probabilities(rows, samples, KEYS)
    pair.close(pair.lowered.dropout_probabilities(rows, samples, KEYS), expected)
    part = pair.lowered.dropout_probabilities(rows[:5], samples, KEYS)
    assert torch.equal(part, pair.lowered.dropout_probabilities(rows, samples, KEYS)[:5])


@pytest.mark.parametrize("of_each", ["square", "abs"])
def test_means_of_instance_gradients_are_those_of_the_module(pair: Pair, of_each: Any) -> None:
    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return losses.instance_losses("softmax", logits, targets)

    arguments = pair.batch.rows, loss, pair.batch.targets
    expected = pair.module.mean_of_instance_gradients(*arguments, of_each=of_each)
    pair.close(pair.lowered.mean_of_instance_gradients(*arguments, of_each=of_each), expected)


def test_a_loss_under_autograd_has_the_gradient_of_the_learner(pair: Pair) -> None:
    learner, batch = pair.lowered, pair.batch
    state = {name: value.clone() for name, value in learner.state()["buffers"].items()}
    expected = learner.gradient(batch, KEYS)[1].clone()
    for name, buffer in learner.state()["buffers"].items():
        buffer.copy_(state[name])
    passes = learner.passes()
    with passes.epoch(lambda number: KEYS, 0):
        passes.begin_step()
        passes.train(learner.bank.gather(torch.arange(40) % 11))  # the batch's masks begin at instance 40
        passes.begin_step()
        logits = passes.train(learner.bank.gather(batch.rows))
        learner.logits(batch.rows)  # between the halves of a pass
        passes.predict(learner.bank.gather(batch.rows))
        found = passes.gradient(passes.criterion(logits, batch.targets, batch.weights))
    assert found is not None
    assert torch.equal(found, expected)


def test_a_loss_may_have_several_passes_and_depend_on_frames_and_parameters(pair: Pair) -> None:
    learner = pair.lowered
    frames = learner.bank.gather(pair.batch.rows)
    passes = learner.passes()
    with passes.epoch(lambda number: KEYS + number, 0):
        passes.begin_step()
        first, second = passes.train(frames[:4]), passes.train(frames[4:])
        loss = first.square().mean() + second.square().mean() + passes.parameters.square().sum()
        together = passes.gradient(loss)
        passes.begin_step()
        with_gradient = frames.clone().requires_grad_()
        logits = passes.train(with_gradient)
        passes.gradient(logits.square().mean())
    assert together is not None
    assert together.abs().sum() > 0
    assert with_gradient.grad is not None
    assert with_gradient.grad.abs().sum() > 0


def test_a_pass_of_an_earlier_step_is_refused(pair: Pair) -> None:
    frames = pair.lowered.bank.gather(pair.batch.rows)
    passes = pair.lowered.passes()
    with passes.epoch(lambda number: KEYS, 0):
        passes.begin_step()
        kept = passes.train(frames)
        passes.begin_step()
        passes.train(frames)
        with pytest.raises(UsageError, match="earlier step"):
            passes.gradient(kept.sum())


def test_state_copies_and_new_beginnings(pair: Pair) -> None:
    learner, rows = pair.lowered, torch.arange(9)
    copied = learner.copy()
    assert isinstance(copied, LoweredLearner)
    assert torch.equal(copied.logits(rows), learner.logits(rows))
    pair.module.restore(learner.state())  # a checkpoint of either goes on as the other
    pair.close(pair.module.logits(rows), learner.logits(rows))
    assert learner.weights().keys() == pair.module.weights().keys()
    learner.begin_anew(0)
    pair.module.begin_anew(0)
    assert torch.equal(learner.parameters.flat, pair.module.parameters.flat)
    pair.close(learner.logits(rows), pair.module.logits(rows))
    pair.buffers_close()


def test_steps_repeat_bit_for_bit(frames: FrameSet) -> None:
    results = []
    for _ in range(2):
        pair = Pair("plain_stack", frames)
        learner = pair.lowered
        results.append((learner.parameters.flat.clone(), learner.dropout_probabilities(torch.arange(30), 3, KEYS)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def test_a_network_with_other_layers_for_another_seed_stays_with_pytorch(frames: FrameSet) -> None:
    def by_chance(channels: int, samples: int, outputs: int) -> nn.Module:
        middle = nn.ReLU() if torch.rand(()) < 0.5 else nn.Tanh()
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 8), middle, nn.Linear(8, outputs))

    bank = FrameBank(frames, torch.device("cpu"))
    with NETWORKS.temporarily("by_chance", by_chance):
        kinds = set()
        for seed in range(12):
            learner = make_learner(seed, "softmax", OUTPUTS, 1e-3, bank, "by_chance")
            kinds.add(type(learner))
            frames_of_all = bank.gather(torch.arange(8))
            with torch.no_grad():
                expected = learner.module()(frames_of_all)
            np.testing.assert_allclose(learner.logits(torch.arange(8)), expected, rtol=1e-3, atol=1e-4)
    assert kinds == {ProgramLearner, ModuleLearner}


def test_pytorch_computes_where_it_was_chosen(frames: FrameSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    learner = make_learner(0, "softmax", OUTPUTS, 1e-3, FrameBank(frames, torch.device("cpu")), "plain_stack")
    assert type(learner) is ModuleLearner
    assert learner.backend == "torch"
