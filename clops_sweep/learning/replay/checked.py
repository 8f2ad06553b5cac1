"""Scores of acquisition and storage functions, with checks of users' functions."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, STORAGE_FUNCTIONS, Registry
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.replay.acquisition import AcquisitionContext


def acquisition_scores(config: RunConfig, context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """Return the scores of stored instances by the config's acquisition function, [m].

    Args:
        config: name and options of the function.
        context: arguments of the function.
        rows: int64 [m].

    Raises:
        ValueError: the function does not return scores.
    """
    options = config.options_of("acquisition")
    return _scores(ACQUISITION_FUNCTIONS, config.acquisition, list(rows.shape), context, rows, **options)


def storage_scores(config: RunConfig, trajectories: torch.Tensor) -> torch.Tensor:
    """Return s of each instance by the config's storage function, float64 [n].

    Args:
        config: name and options of the function.
        trajectories: trajectories of beta, float32 [tau, n].

    Raises:
        ValueError: the function does not return scores.
    """
    shape = [trajectories.shape[1]]
    options = config.options_of("storage_function")
    given = trajectories.clone()  # a copy: the function may change the trajectories, which are recorded later
    return _scores(STORAGE_FUNCTIONS, config.storage_function, shape, given, **options).to(torch.float64)


def _scores(registry: Registry, name: str, shape: list[int], *given: Any, **options: Any) -> torch.Tensor:
    with torch_state_kept():
        scores: Any = registry[name](*given, **options)
    function_returned = f"{registry.kind.partition('_')[0]} function {name!r} returned"
    if not isinstance(scores, torch.Tensor):
        raise ValueError(f"{function_returned} {type(scores).__name__}; expected a tensor of scores {shape}")
    if list(scores.shape) != shape:
        raise ValueError(f"{function_returned} scores of shape {list(scores.shape)}; expected {shape}")
    if scores.is_complex() or scores.dtype == torch.bool:
        raise ValueError(f"{function_returned} {scores.dtype}; expected scores that are real numbers")
    checked: torch.Tensor = scores.detach().to(given[-1].device)
    if name in registry.added and (missing := int(checked.isnan().sum())):
        raise ValueError(f"{function_returned} NaN for {missing} of {checked.numel()} instances; expected numbers")
    return checked
