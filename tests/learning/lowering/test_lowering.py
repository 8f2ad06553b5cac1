"""A lowered network computes what its module computes, and every other network stays with PyTorch, with a reason."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from clops_sweep.learning.lowering.derivations import derived
from clops_sweep.learning.lowering.lower import NotLowered, lowered
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.inception_time import InceptionTime
from clops_sweep.learning.networks.resnet1d_wang import ResNet1dWang
from clops_sweep.learning.networks.run_module import Mode, RunModule, replace_norm
from clops_sweep.learning.networks.shallow import mlp
from clops_sweep.learning.networks.small_cnn import SmallCNN
from tests.helpers.at_night import mostly_at_night
from tests.learning.lowering.interpreter import Interpreter
from tests.learning.lowering.networks import LOWERED, OUTPUTS, STAYING, Make, plain

SHAPE = (3, 40)
MODES: tuple[Mode, ...] = ("training", "training without dropout", "sampling", "evaluation")


def _small_cnn_with(norm: str) -> nn.Module:
    module = SmallCNN(*SHAPE, OUTPUTS)
    replace_norm("small_cnn", module, norm)
    return module


BUILT_IN: dict[str, Make] = {
    "small_cnn": lambda: SmallCNN(*SHAPE, OUTPUTS),
    "small_cnn with layer norm": lambda: _small_cnn_with("layer"),
    "small_cnn with group norm": lambda: _small_cnn_with("group"),
    "small_cnn without norm": lambda: _small_cnn_with("none"),
    "resnet1d_wang": lambda: ResNet1dWang(*SHAPE, OUTPUTS),
    "inception_time": lambda: InceptionTime(*SHAPE, OUTPUTS),
    "mlp": lambda: mlp(*SHAPE, OUTPUTS, mlp_width=16),
}


class Recorded(TorchDispatchMode):
    """Context that keeps the masks of dropout as they are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if str(function).startswith("aten.bernoulli_."):
            self.masks.append(result / (args[1] if len(args) > 1 else 0.5))
        return result


def run_of(module: nn.Module) -> RunModule:
    statistics = [name for name, part in module.named_modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    return RunModule(module, OUTPUTS, statistics)


def made(make: Make) -> nn.Module:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same' with even kernel")
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        warnings.filterwarnings("ignore", r"`torch\.(jit|nn\.utils\.weight_norm)")
        return make()


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*LOWERED, *BUILT_IN])
@pytest.mark.parametrize("batch", mostly_at_night([2, 5], lambda batch: batch == 5))
def test_a_program_computes_what_its_module_computes(name: str, mode: Mode, batch: int) -> None:
    module = made((LOWERED | BUILT_IN)[name])
    program = lowered(run_of(module), *SHAPE)
    assert isinstance(program, Program), program
    module.double()
    buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
    parameters = {
        key: value.detach().clone().requires_grad_(value.requires_grad) for key, value in module.named_parameters()
    }
    frames = torch.randn(batch, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = torch.randn(batch, OUTPUTS, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    run = run_of(module)
    run.set(mode)
    with Recorded() as recorded:
        logits = module(frames.clone())
    (logits * weights).sum().backward()

    drops = mode in ("training", "sampling")
    interpreter = Interpreter(
        program,
        {**parameters, **derived(program, parameters, buffers)},
        buffers,
        batch_statistics=mode.startswith("training"),
        masks=recorded.masks if drops else None,
    )
    found = interpreter(frames)
    (found * weights).sum().backward()
    torch.testing.assert_close(found, logits)
    for key, parameter in module.named_parameters():
        torch.testing.assert_close(parameters[key].grad, parameter.grad, msg=key)
    after = dict(module.named_buffers())
    for key in program.buffers:
        torch.testing.assert_close(buffers[key], after[key], msg=key)
    counted = [key for key in after if key.endswith("num_batches_tracked")]
    assert sorted(program.counters) == sorted(counted)
    assert len(recorded.masks) == (len(program.units()) if drops else 0)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("name", STAYING)
def test_a_network_that_no_program_computes_stays_with_pytorch(name: str) -> None:
    make, layer, reason = STAYING[name]
    random.seed(0)  # one that goes one way of two by chance goes the first
    found = lowered(run_of(made(make)), *SHAPE)
    assert isinstance(found, NotLowered), found
    assert layer in found.layer, found
    assert reason in found.reason, found


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_lowering_leaves_a_module_as_it_was() -> None:
    module = made(plain)
    before = copy.deepcopy(module.state_dict())
    state = torch.get_rng_state()
    assert isinstance(lowered(run_of(module), *SHAPE), Program)
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(state, torch.get_rng_state())
    with Recorded() as recorded:
        module.train()(torch.randn(2, *SHAPE))
    assert len(recorded.masks) == 2  # drawn again, and no hook is left behind


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_layers_are_given_to_the_kernels_as_plain_values() -> None:
    module = made(plain)
    program = lowered(run_of(module), *SHAPE)
    assert isinstance(program, Program)
    offsets = {name: 32 * number for number, (name, _) in enumerate(module.named_parameters())}
    first, second, *_ = program.as_dicts(offsets)
    assert first == {
        "kind": "convolution",
        "inputs": (0,),
        "weight": 0,
        "bias": 32,
        "outputs": 8,
        "kernel": (1, 5),
        "stride": (1, 2),
        "padding": (0, 0, 2, 2),
        "dilation": (1, 2),
        "groups": 1,
        "output": 1,
    }
    assert (second["mean"], second["variance"]) == (0, 1)
    assert program.outputs == OUTPUTS
