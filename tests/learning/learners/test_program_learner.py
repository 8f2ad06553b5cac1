"""Epochs of a lowered network in one call, against its single steps and against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from clops_sweep import native
from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.batches import Batch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.learners.program_learner import ProgramLearner
from clops_sweep.testing import of_shape, tiny_frames
from clops_sweep.testing.watch import difference

pytestmark = pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built")

CHANNELS, SAMPLES = 2, 80
KINDS: dict[LossKind, int] = {"binary": 1, "softmax": 3, "multilabel": 3}


class Blocks(nn.Sequential):
    """Two blocks with batch norm and dropout, of two channels."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        del samples
        first = [nn.Conv1d(channels, 6, 9, 4), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.25)]
        second = [nn.Conv1d(6, 5, 3, padding=1), nn.ELU(), nn.AdaptiveAvgPool1d(2), nn.Flatten()]
        super().__init__(*first, *second, nn.Linear(10, outputs))


class OfFeatures(nn.Sequential):
    """Batch norm over features, which needs two instances."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        hidden = [nn.Linear(channels * samples, 7, bias=False), nn.BatchNorm1d(7), nn.Tanh()]
        super().__init__(nn.Flatten(), *hidden, nn.Linear(7, outputs))


MODULES = {"two_blocks": Blocks, "of_features": OfFeatures}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    for name, make in MODULES.items():
        NETWORKS.register(name, make)
    yield
    for name in MODULES:
        NETWORKS.forget(name)


@pytest.fixture(scope="module")
def bank() -> FrameBank:
    """Frames of two channels, stored as int16 with a gain and an offset."""
    return FrameBank(of_shape(tiny_frames("class_il"), CHANNELS, SAMPLES), torch.device("cpu"))


@pytest.fixture(params=sorted(MODULES))
def make(request: pytest.FixtureRequest, bank: FrameBank) -> Callable[..., ProgramLearner]:
    def learner(kind: LossKind = "softmax") -> ProgramLearner:
        found = make_learner(0, kind, KINDS[kind], 1e-3, bank, request.param)
        assert isinstance(found, ProgramLearner)
        return found

    return learner


def instances(learner: Learner, count: int, stream: np.random.Generator, weighted: bool = False) -> Instances:
    """Return random instances, with random weights if wanted."""
    rows = torch.from_numpy(stream.integers(0, 10, count))
    targets = torch.eye(max(2, learner.outputs))[torch.from_numpy(stream.integers(0, 2, count))]
    weights = torch.from_numpy(stream.uniform(0.5, 2, count).astype(np.float32))
    return Instances(rows, targets[:, : learner.outputs]).weighted(weights if weighted else None)


def keys_of(stream: np.random.Generator, *shape: int) -> torch.Tensor:
    """Return random keys of dropout masks."""
    return torch.from_numpy(stream.integers(-(2**31), 2**31, shape).astype(np.int32))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(KINDS)),
    task_size=st.integers(2, 40),
    replayed=st.integers(0, 20),
    batch_size=st.integers(2, 20),
    weighted=st.booleans(),
    with_beta=st.booleans(),
    penalised=st.sampled_from(["not", "by importance", "by importance, with a path"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_epoch_is_its_steps(
    make: Callable[..., ProgramLearner],
    kind: LossKind,
    task_size: int,
    replayed: int,
    batch_size: int,
    weighted: bool,
    with_beta: bool,
    penalised: str,
    seed: int,
) -> None:
    """Bit for bit, except for beta, whose gradient PyTorch computes in another order."""
    whole, steps = make(kind), make(kind)
    stream = np.random.default_rng(seed)
    task = instances(whole, task_size, stream, weighted)
    replay = None
    if replayed:
        replay = Replay(instances(whole, replayed, stream), torch.full((replayed,), 0.7))
    order = torch.from_numpy(stream.permutation(task_size + replayed))
    keys = keys_of(stream, 2)
    importance, centre, path = torch.from_numpy(stream.standard_normal((3, len(whole.parameters.flat)))).float()
    betas = []
    paths = []
    for learner, kind_of_epoch in ((whole, type(whole)), (steps, Learner)):
        beta = TaskInstanceParameters(task_size, 10.0, 1e-2, learner.bank.device) if with_beta else None
        own_path = path.clone() if "path" in penalised else None
        penalty = None if penalised == "not" else Penalty(importance.square(), centre, own_path)
        kind_of_epoch.train_epoch(learner, task, replay, order, batch_size, keys, beta, penalty)
        betas.append(beta)
        paths.append(own_path)
    assert difference(whole.state(), steps.state()) is None
    assert difference(paths[0], paths[1]) is None
    assert whole.optimizer.steps > 0
    if betas[0] is not None and betas[1] is not None:
        torch.testing.assert_close(betas[0].values, betas[1].values, rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", ["by logits", "by logits with a table", "along"])
def test_steps_without_a_return_are_those_one_by_one(form: str, make: Callable[..., ProgramLearner]) -> None:
    """Bit for bit: parameters, moments, statistics, and the table."""
    trained = [make(), make()]
    tables = [torch.ones(50, 3), torch.ones(50, 3)]
    for learner, kind, values in zip(trained, (type(trained[0]), Learner), tables, strict=True):
        stream = np.random.default_rng(3)
        order = torch.from_numpy(stream.permutation(75))
        epoch = learner.begin_epoch(instances(learner, 75, stream), None, order, 20, keys_of(stream, 2))
        epoch.keep_memory("five", instances(learner, 20, stream), keys_of(stream, 4, 2))
        for name in (READ, WRITTEN):
            places = [stream.permutation(50)[:20] for _ in range(4)]
            epoch.keep(name, torch.from_numpy(np.stack(places)))
        epoch.keep(PULL, torch.from_numpy(stream.random((4, 20), dtype=np.float32)))
        if form == "along":
            kind.train_along(learner, epoch, ["five"], _between)
        else:
            table = LogitTable(values, epoch) if "table" in form else None
            kind.train_by_logits(learner, epoch, torch.sub, lambda batch: (batch.targets,), table)
    assert difference(trained[0].state(), trained[1].state()) is None
    assert trained[0].optimizer.steps == 4
    assert torch.equal(*tables)


def _between(gradient: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    return gradient + 0.5 * memory[0].float()


def test_an_epoch_is_that_of_pytorch_up_to_rounding(bank: FrameBank) -> None:
    """A network without dropout, whose masks differ from those of PyTorch."""
    learners: list[Any] = [
        make_learner(0, "softmax", 3, 1e-3, bank, "of_features"),
        ModuleLearner(0, "softmax", 3, 1e-3, bank, "of_features"),
    ]
    assert [learner.backend.split("-")[0] for learner in learners] == ["native", "torch"]
    for learner in learners:
        stream = np.random.default_rng(0)
        task = instances(learner, 41, stream)
        learner.train_epoch(task, None, torch.arange(41), 8, keys_of(stream, 2))
    state, expected = learners[0].state(), learners[1].state()
    torch.testing.assert_close(state["parameters"], expected["parameters"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["buffers"], expected["buffers"], rtol=1e-4, atol=1e-5)


def test_a_gradient_between_the_halves_of_a_pass_is_refused(make: Callable[..., ProgramLearner]) -> None:
    """Both need the same memory for what lies between frames and logits."""
    learner = make()
    keys = torch.tensor([1, 2], dtype=torch.int32)
    rows = torch.arange(4)
    batch = Batch(rows, torch.eye(3)[rows % 3], torch.ones(4), rows)

    def by_logits(logits: torch.Tensor) -> torch.Tensor:
        learner.gradient(batch, keys)
        return logits

    with pytest.raises(ValueError, match="a pass backward follows one forward"):
        learner.backpropagate(rows, rows, keys, by_logits)


def test_augmented_frames_of_several_channels(
    make: Callable[..., ProgramLearner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An augmentation that changes nothing changes no number, in steps and in epochs."""
    states = []
    for augment in (None, torch.clone):
        learner = make()
        monkeypatch.setattr(learner, "augment", augment)
        task = instances(learner, 30, np.random.default_rng(5))
        learner.train_epoch(task, None, torch.arange(30), 8, torch.tensor([1, 2], dtype=torch.int32))
        states.append(learner.state())
    assert difference(*states) is None
