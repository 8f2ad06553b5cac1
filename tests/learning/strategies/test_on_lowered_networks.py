"""Every strategy gives the same numbers on the native kernels of a lowered network and in PyTorch.

Both draw the same dropout masks here. So runs differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, native
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, NETWORKS, STORAGE_FUNCTIONS, STRATEGIES
from clops_sweep.learning.learners import backend
from clops_sweep.learning.learners.lowered_learner import LoweredLearner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.lowering.lower import lowered
from clops_sweep.learning.lowering.masks import CountedMasks
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.run_module import Mode, RunModule, made
from clops_sweep.testing import check_acquisition_function, check_network, of_shape, tiny_config, tiny_frames
from clops_sweep.testing.strategy_contract import check_named_strategy
from tests.learning.methods import one_kind

pytestmark = pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built")

CHANNELS, SAMPLES = 3, 60
IN_CORE = ("clops", "ewc", "gem", "derpp", "flip_penalty")
"""Strategies with beta, gradients of instances and a penalty, memory gradients, a table of logits, and a loss."""


class OfPlanes(nn.Module):
    """Convolutions over time and over channels, and two kinds of dropout."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        del samples
        self.time = nn.Conv2d(1, 4, (1, 9), stride=(1, 3), bias=False)
        self.norm1 = nn.BatchNorm2d(4)
        self.space = nn.Conv2d(4, 8, (channels, 1), groups=4, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.whole_maps = nn.Dropout2d(0.2)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(16, outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        hidden = torch.tanh(self.norm1(self.time(frames[:, None])))
        hidden = self.whole_maps(nn.functional.elu(self.norm2(self.space(hidden))))
        hidden = nn.functional.adaptive_avg_pool2d(hidden, (1, 2))
        logits: torch.Tensor = self.head(self.dropout(hidden.flatten(1)))
        return logits


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with NETWORKS.temporarily("of_planes", OfPlanes):
        yield


class WithCountedMasks(ModuleLearner):
    """PyTorch with the dropout masks of the kernels."""

    def _pass(
        self,
        frames: torch.Tensor,
        mode: Mode,
        keys: torch.Tensor | None = None,
        draws: torch.Tensor | None = None,
        place: int | None = None,
        number: int = 0,
    ) -> torch.Tensor:
        if keys is None or draws is None:
            return super()._pass(frames, mode, keys, draws, place, number)
        with CountedMasks(self._program, keys, draws):
            return self._module.logits(frames, mode)

    @cached_property
    def _program(self) -> Program:
        make = NETWORKS[self._network]
        module = made(self._network, make, self.seed, self._shape, self.outputs, self._options)
        program = lowered(RunModule(module, self.outputs, self._probed.statistics), *self._shape)
        assert isinstance(program, Program)
        return program


def mostly_at_night(name: str) -> Any:
    return pytest.param(name, marks=() if name in IN_CORE else pytest.mark.nightly)


def frames_of(config: RunConfig) -> FrameSet:
    """Return frames of three channels, stored as int16 with a gain and an offset."""
    return of_shape(tiny_frames(config.scenario, tasks=2), CHANNELS, SAMPLES)


def config_of(network: str, strategy: str, **settings: Any) -> RunConfig:
    scenario = settings.pop("scenario", one_kind(strategy))
    if scenario == "domain_il":
        settings["domain"] = "site"  # leads are channels of an instance here
    return tiny_config(scenario, network=network, strategy=strategy, **settings)


def check_both(monkeypatch: pytest.MonkeyPatch, config: RunConfig) -> None:
    """Check that a run on the kernels and one in PyTorch store and replay the same, and end with the same logits."""
    frames = frames_of(config)
    by_kernels = ContinualRun(config, frames)
    result = by_kernels.run()
    assert isinstance(by_kernels.learner, LoweredLearner)
    with monkeypatch.context() as context:
        context.setenv(native.ENVIRONMENT, "off")
        context.setattr(backend, "ModuleLearner", WithCountedMasks)
        by_pytorch = ContinualRun(config, frames)
        expected = by_pytorch.run()
    assert isinstance(by_pytorch.learner, WithCountedMasks)
    for column in ("stored", "times_replayed"):
        np.testing.assert_array_equal(result.instances[column], expected.instances[column])
    np.testing.assert_allclose(result.curves["loss"], expected.curves["loss"], rtol=1e-4, atol=1e-5)
    rows = torch.arange(len(frames))
    found = by_kernels.learner.logits(rows)
    wanted = by_pytorch.learner.logits(rows)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=2e-5 * float(wanted.abs().max()))


@pytest.mark.parametrize("strategy", [mostly_at_night(name) for name in STRATEGIES])
def test_a_strategy_has_the_numbers_of_pytorch(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_both(monkeypatch, config_of("of_planes", strategy))


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "ts_acl"])
def test_a_strategy_has_the_numbers_of_pytorch_on_small_cnn(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except `ts_acl`, whose head reads the padded maps of `small_cnn`, which PyTorch computes."""
    check_both(monkeypatch, config_of("small_cnn", strategy))


@pytest.mark.nightly
@pytest.mark.parametrize("acquisition", ACQUISITION_FUNCTIONS)
def test_an_acquisition_function_has_the_numbers_of_pytorch(acquisition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_both(monkeypatch, config_of("of_planes", "clops", acquisition=acquisition))


VARIATIONS: dict[str, dict[str, Any]] = {
    "layer norm": {"norm": "layer"},
    "group norm": {"norm": "group"},
    "no norm": {"norm": "none"},
    "sgd": {"optimizer": "sgd"},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "one sigmoid per class": {"head": "per_class", "scenario": "class_il_union"},
    "a softmax": {"scenario": "time_il"},
    "several sigmoids": {"scenario": "domain_il"},
    "weights of classes": {"class_weights": "balanced"},
    "jitter": {"augment": "jitter"},
    "dropped channels": {"augment": "lead_dropout"},
    "warped time": {"augment": "time_warp"},
    "z-scores": {"normalize": "zscore"},
    "early stopping": {"early_stopping": 1, "epochs_per_task": 4},
    "a schedule": {"schedule": "cosine"},
    "a large memory": {"replay_ratio": 3},
}


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["er", "clops", "flip_penalty"])
@pytest.mark.parametrize("variation", VARIATIONS)
def test_variations_have_the_numbers_of_pytorch(variation: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_both(monkeypatch, config_of("of_planes", strategy, **VARIATIONS[variation]))


OWN_SIZE = ("er", "er_ace", "aser", "derpp", "agem", "gdumb", "icarl")
"""Strategies with a memory of their own size."""

TRAINED_ONCE = ("gdumb", "ncm", "slda", "ranpac", "acil", "ts_acl")
"""Strategies that train on a memory, or on a task in one epoch alone."""


@pytest.mark.nightly
@pytest.mark.parametrize(("network", "kernels"), [("small_cnn", None), ("of_planes", None), ("of_planes", "off")])
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in ("ranpac", "ts_acl")])
def test_contract_suite_of_strategies(
    strategy: str, network: str, kernels: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among other things, a run that is resumed behind any epoch ends with the same bits.

    The projections of `ranpac` and `ts_acl` are chosen by their names, which the suite changes.
    """
    if kernels is not None:
        monkeypatch.setenv(native.ENVIRONMENT, kernels)
    config = config_of(network, strategy)
    check_named_strategy(
        config,
        frames_of(config),
        stores="anything" if strategy in OWN_SIZE else "a share",
        trains_on="anything" if strategy in TRAINED_ONCE else "the task",
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    "settings",
    [{"acquisition": name} for name in ACQUISITION_FUNCTIONS]
    + [{"storage_function": name} for name in STORAGE_FUNCTIONS],
    ids=str,
)
def test_contract_suite_of_functions(settings: dict[str, str]) -> None:
    config = config_of("of_planes", "clops", **settings)
    check_named_strategy(config, frames_of(config))


@pytest.mark.nightly
@pytest.mark.parametrize("kernels", [None, "off"])
@pytest.mark.parametrize("network", ["small_cnn", "of_planes"])
def test_contract_suite_of_networks(network: str, kernels: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels is not None:
        monkeypatch.setenv(native.ENVIRONMENT, kernels)
    check_network(NETWORKS[network], channels=CHANNELS, samples=SAMPLES)


@pytest.mark.nightly
@pytest.mark.parametrize("acquisition", ACQUISITION_FUNCTIONS)
def test_acquisition_functions_leave_a_lowered_network_as_it_is(acquisition: str) -> None:
    check_acquisition_function(ACQUISITION_FUNCTIONS[acquisition], network="small_cnn")
