from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from clops_sweep import native
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.networks.network import parameter_shapes
from clops_sweep.learning.parameters import Parameters
from tests.learning.layer_masks import layer_masks

COUNT = 300
OUTPUTS: dict[LossKind, int] = {"binary": 1, "softmax": 4, "multilabel": 9}

Double = dict[str, torch.Tensor]


def frame_set(stored: np.ndarray, gain: np.ndarray | None = None, offset: np.ndarray | None = None) -> FrameSet:
    n = len(stored)
    stored.flags.writeable = False  # as a mapped file or Ray's object store hands it out
    return FrameSet(
        name="synthetic",
        frames=stored,
        gain=np.ones(n, np.float32) if gain is None else gain,
        offset=np.zeros(n, np.float32) if offset is None else offset,
        unit="mV",
        patients=np.arange(n, dtype=np.int32),
        patient_names=tuple(map(str, range(n))),
        labels=np.arange(n) % 2,
        classes=("a", "b"),
        split=np.zeros(n, np.int8),
        leads=np.zeros(n, np.int16),
        lead_names=("II",),
        times=None,
        data_hash="test",
    )


def smooth(generator: np.random.Generator, count: int) -> np.ndarray:
    """Frames with some structure: noise over oscillations and an offset."""
    time = np.linspace(0, 1, 2500, dtype=np.float32)
    waves = np.sin(2 * np.pi * generator.uniform(2, 40, (count, 1)) * time)
    return (waves + 0.3 * generator.standard_normal((count, 2500)) + generator.normal(size=(count, 1))).astype(
        np.float32
    )


@pytest.fixture(scope="session")
def bank() -> FrameBank:
    return FrameBank(frame_set(smooth(np.random.default_rng(1), COUNT)), torch.device("cpu"))


@pytest.fixture(params=native.available() or ["none"])
def variant(request: pytest.FixtureRequest) -> str:
    if request.param == "none":
        pytest.skip("the native extension is not built: pip install needs a C++ compiler")
    return str(request.param)


@pytest.fixture
def learner(bank: FrameBank, variant: str) -> Callable[..., NativeLearner]:
    def make(kind: LossKind = "binary", seed: int = 0, on: FrameBank = bank) -> NativeLearner:
        return NativeLearner(seed, kind, OUTPUTS[kind], 1e-3, on, variant)

    return make


@pytest.fixture
def as_module() -> Callable[[NativeLearner], ModuleLearner]:
    """The same network as a PyTorch module, in the state of the native one; its optimiser is new."""

    def make(learner: NativeLearner) -> ModuleLearner:
        found = ModuleLearner(learner.seed, learner.kind, learner.outputs, 1e-3, learner.bank, PAPER_NETWORK)
        for name, view in learner.parameters.views.items():
            found.parameters.views[name].copy_(view)
        for block in range(3):
            for name, values in (("mean", learner.statistics[block]), ("var", learner.statistics[3 + block])):
                found.state()["buffers"][f"norm{block + 1}.running_{name}"].copy_(values)
        return found

    return make


@pytest.fixture
def batch() -> Callable[..., tuple[Batch, torch.Tensor]]:
    """A random batch and the keys of its dropout masks."""

    def make(kind: LossKind, size: int, seed: int = 0) -> tuple[Batch, torch.Tensor]:
        generator = np.random.default_rng([seed, size])
        outputs = OUTPUTS[kind]
        targets = generator.integers(0, 2, (size, outputs))
        if kind == "softmax":
            targets = np.eye(outputs)[generator.integers(0, outputs, size)]
        content = Batch(
            rows=torch.from_numpy(generator.integers(0, COUNT, size)),
            targets=torch.from_numpy(targets.astype(np.float32)),
            weights=torch.from_numpy(generator.uniform(0.1, 1, size).astype(np.float32)),
            draws=torch.arange(7, 7 + size),
        )
        return content, torch.from_numpy(generator.integers(-(2**31), 2**31, 2).astype(np.int32))

    return make


@dataclass
class Reference:
    """One network in float64, straight from its definition; dropout masks are given."""

    parameters: Double
    means: list[torch.Tensor]
    variances: list[torch.Tensor]
    kind: LossKind

    @classmethod
    def of(cls, learner: NativeLearner) -> Reference:
        def double(values: torch.Tensor) -> torch.Tensor:
            return values.detach().clone().double()

        parameters = {name: double(view) for name, view in learner.parameters.views.items()}
        statistics = [double(values) for values in learner.statistics]
        return cls(parameters, statistics[:3], statistics[3:], learner.kind)

    def logits(self, frames: torch.Tensor, masks: list[torch.Tensor], training: bool) -> torch.Tensor:
        hidden, p = frames.double()[:, None], self.parameters
        for block, (mean, variance, mask) in enumerate(zip(self.means, self.variances, masks, strict=True), start=1):
            bias = p[f"conv{block}.bias"].detach() if training else p[f"conv{block}.bias"]
            hidden = F.conv1d(hidden, p[f"conv{block}.weight"], bias, stride=3)
            norm = p[f"norm{block}.weight"], p[f"norm{block}.bias"]
            hidden = F.batch_norm(hidden, mean, variance, *norm, training=training)
            hidden = F.max_pool1d(F.relu(hidden), 2) * mask.double()
        hidden = F.relu(F.linear(hidden.flatten(1), p["linear1.weight"], p["linear1.bias"]))
        return F.linear(hidden, p["linear2.weight"], p["linear2.bias"])

    def gradient(
        self,
        frames: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor,
        masks: list[torch.Tensor],
        training: bool,
    ) -> tuple[torch.Tensor, Double]:
        leaves = {name: value.requires_grad_() for name, value in self.parameters.items()}
        instance_losses = losses.instance_losses(self.kind, self.logits(frames, masks, training), targets.double())
        gradients = torch.autograd.grad(
            (weights.double() * instance_losses).sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
        )
        return instance_losses.detach(), dict(zip(leaves, gradients, strict=True))


@pytest.fixture
def reference() -> type[Reference]:
    return Reference


@pytest.fixture
def masks_of() -> Callable[..., list[torch.Tensor]]:
    def make(keys: torch.Tensor, draws: torch.Tensor) -> list[torch.Tensor]:
        return list(layer_masks(keys, draws))

    return make


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """|found - expected| / |expected|, Euclidean."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@pytest.fixture(scope="session")
def error() -> Callable[[torch.Tensor, torch.Tensor], float]:
    return relative


@pytest.fixture(scope="session")
def views() -> Callable[..., dict[str, torch.Tensor]]:
    """A flat vector by parameter."""

    def split(flat: torch.Tensor, kind: LossKind) -> dict[str, torch.Tensor]:
        return Parameters.over(flat, parameter_shapes(OUTPUTS[kind])).views

    return split
