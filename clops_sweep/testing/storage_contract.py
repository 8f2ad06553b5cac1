"""Contract suite of storage functions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from clops_sweep.experiment.plugins.registry import STORAGE_FUNCTIONS
from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning.networks.module_probe import same_bits
from clops_sweep.learning.replay.storage import select
from clops_sweep.testing.defaults import with_defaults
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import global_randomness, require

StorageFunction = Callable[[torch.Tensor], torch.Tensor]

_SHAPES = ((1, 1), (2, 5), (20, 37), (40, 100))
_FRACTIONS = (0.01, 0.29, 0.5, 1.0)


def check_storage_function(function: StorageFunction) -> None:
    """Check a storage function against its contract.

    For trajectories of beta of several shapes [tau, n]:

    - s is float64 [n], finite, and equal in a second call.
    - The trajectories are not modified.
    - s of an instance depends only on its own trajectory, not on its position or on other instances.
    - Exactly max(1, floor(b n)) distinct instances are stored.

    Then complete runs of CLOPS with the function must pass `check_strategy`'s suite with each kind of output.

    Args:
        function: from trajectories [tau, n] to s.

    Raises:
        ContractViolation: the function breaks the contract; the message says how.
    """
    generator = torch.Generator().manual_seed(5)
    for shape in _SHAPES:
        trajectories = 1 - 0.1 * torch.rand(shape, generator=generator).cumsum(0) / shape[0]
        scores = with_defaults(STORAGE_FUNCTIONS, function)
        _check_values(scores, trajectories, torch.randperm(shape[1], generator=generator))
    with STORAGE_FUNCTIONS.temporarily("function_under_test", function):
        for scenario in SCENARIO_KINDS:
            check_named_strategy(
                tiny_config(scenario, storage_function="function_under_test"), tiny_frames(scenario, tasks=2)
            )


def _check_values(function: StorageFunction, trajectories: torch.Tensor, permutation: torch.Tensor) -> None:
    instances = trajectories.shape[1]
    of = f"for trajectories of shape {list(trajectories.shape)}"
    before = trajectories.clone()
    with global_randomness(1, "the storage function"):
        s = function(trajectories)
    require(isinstance(s, torch.Tensor), f"s is a tensor, not a {type(s).__name__}")
    require(s.shape == (instances,), f"s has the shape {list(s.shape)} {of}")
    require(s.dtype == torch.float64, f"s is {s.dtype}, not torch.float64")
    require(s.isfinite().all(), f"s is not finite {of}")
    require(same_bits(trajectories, before), "the storage function modified the trajectories")
    require(same_bits(function(trajectories), s), "s differs in a second call")
    require(
        torch.allclose(function(trajectories[:, permutation]), s[permutation], rtol=1e-12),
        "s of an instance depends on its position among the others",
    )
    for fraction in _FRACTIONS:
        count = count_of(fraction, instances)
        for order in ("top", "bottom"):
            stored = select(order, s, count, 0, 0).tolist()
            require(
                len(set(stored)) == count and set(stored) <= set(range(instances)),
                f"{len(set(stored))} distinct instances stored instead of {count} {of}",
            )
