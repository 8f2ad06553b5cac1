"""What every network must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.networks.module_probe import check_networks
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.shapes import of_shape
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import ContractViolation

_STRATEGIES = ("gem", "mir")
"""Those that ask a network for what CLOPS does not: gradients on a memory, losses after a virtual step."""


def check_network(network: Callable[[int, int, int], Any], *, channels: int = 3, samples: int = 400) -> None:
    """Runs the contract suite of networks on one of them.

    What a launch tries before it starts: shapes, gradients by every parameter, nothing kept between calls, nothing
    drawn but from the global generators. Then whole runs of CLOPS with Monte-Carlo dropout in each scenario kind, and
    of GEM and MIR in one, pass the suite of strategies: all numbers finite, and bit for bit the same when repeated,
    stacked with others, and resumed from a checkpoint after each epoch.

    Args:
        network: a function (channels, samples, outputs), or a class, that makes a `torch.nn.Module`.
        channels: of the frames that it is tried on.
        samples: of these, 2,500 at most.

    Raises:
        ContractViolation: with a sentence that says what is wrong.
    """
    with NETWORKS.temporarily("network_under_test", network):
        for scenario in SCENARIO_KINDS:
            frames = of_shape(tiny_frames(scenario, tasks=2), channels, samples)
            for strategy in ("clops", *_STRATEGIES) if scenario == "class_il" else ("clops",):
                settings = {"domain": "site"} if scenario == "domain_il" else {}  # all channels belong to one instance
                _check(tiny_config(scenario, strategy=strategy, network="network_under_test", **settings), frames)


def _check(config: RunConfig, frames: FrameSet) -> None:
    try:
        check_networks([config], {config.data_key: frames})
        check_named_strategy(config, frames)
    except UsageError as error:
        raise ContractViolation(str(error)) from error
