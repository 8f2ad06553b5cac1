"""Contract suite of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError, warn_user
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.networks.module_probe import check_networks
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.shapes import of_shape
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import ContractViolation

_STRATEGIES = ("gem", "mir")
"""Strategies with further demands on a network: gradients on a memory (GEM), losses after a virtual step (MIR)."""


def check_network(network: Callable[[int, int, int], Any], *, channels: int = 3, samples: int = 400) -> None:
    """Check a network against its contract.

    First the checks of a launch: output shape, a gradient for each parameter, no state between calls, random numbers
    only from the global generators, and models that can be stored. Then complete runs of CLOPS with each kind of
    output, and of GEM and MIR with one, must pass `check_strategy`'s suite: all numbers are finite, and bit-equal if
    the run is repeated, trained beside another, or resumed from a checkpoint after each epoch. Outputs of a softmax
    are refused, because losses take logits; those of a log-softmax or a sigmoid give a warning.

    Args:
        network: a function of (channels, samples, outputs), or a class, that returns a `torch.nn.Module`.
        channels: number of channels of the frames.
        samples: samples per channel, at most 2,500.

    Raises:
        ContractViolation: the network breaks the contract; the message says how.
    """
    doubts = dict[str, None]()
    with NETWORKS.temporarily("network_under_test", network):
        for scenario in SCENARIO_KINDS:
            frames = of_shape(tiny_frames(scenario, tasks=2), channels, samples)
            for strategy in ("clops", *_STRATEGIES) if scenario == "class_il" else ("clops",):
                # Leads are channels of an instance here, so they cannot be the domains.
                settings = {"domain": "site"} if scenario == "domain_il" else {}
                config = tiny_config(scenario, strategy=strategy, network="network_under_test", **settings)
                doubts.update(dict.fromkeys(_check(config, frames)))
    for doubt in doubts:
        warn_user(doubt)


def _check(config: RunConfig, frames: FrameSet) -> list[str]:
    """Check a network in a run; return the sentences of `check_networks`."""
    try:
        doubts = check_networks([config], {config.data_key: frames}, keep_models=True)
        check_named_strategy(config, frames)
    except UsageError as error:
        raise ContractViolation(str(error)) from error
    return doubts
