"""Plan and launch say which networks of a user the native kernels compute, and which layer keeps one in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from torch import nn

from clops_sweep import native
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.lowering.told import networks_told
from clops_sweep.testing import of_shape, tiny_config, tiny_frames

pytestmark = pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built")


def stack(channels: int, samples: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(channels, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (samples - 4), outputs))


def recurrent(channels: int, samples: int, outputs: int) -> nn.Module:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.GRU(channels, 6, batch_first=True), nn.Linear(6, outputs)

        def forward(self, frames):
            return self.head(self.layer(frames.transpose(1, 2))[0][:, -1])

    return Last()


def hooked(channels: int, samples: int, outputs: int) -> nn.Module:
    """A network whose first gradient a hook changes, which no trace of a pass shows."""
    module = stack(channels, samples, outputs)
    next(module.parameters()).register_hook(lambda gradient: 0.1 * gradient)
    return module


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with ExitStack() as contexts:
        for name, make in {"stack": stack, "recurrent": recurrent, "hooked": hooked}.items():
            contexts.enter_context(NETWORKS.temporarily(name, make))
        yield


def test_each_network_is_told_once_with_its_layer() -> None:
    frames = of_shape(tiny_frames("class_il", tasks=2), 3, 40)
    configs = [
        tiny_config("class_il", network=network, strategy=strategy)
        for network in ("stack", "recurrent", "small_cnn", "hooked")
        for strategy in ("er", "finetune")
    ]
    told = networks_told(configs, {config.data_key: frames for config in configs})
    assert told == [
        "network 'stack' on frames of 3 x 40: the native kernels compute it on a CPU",
        "network 'recurrent' on frames of 3 x 40: PyTorch computes it, because 'layer' (GRU) is recurrent",
        "network 'hooked' on frames of 3 x 40: PyTorch computes it, because the network (Sequential) differs from "
        "PyTorch in the gradient of '0.weight' in evaluation",
    ]
