"""Scores of acquisition and storage functions that users have written, looked at before anything follows from them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, STORAGE_FUNCTIONS
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.replay.acquisition import AcquisitionContext


class BadScores(ValueError):
    """A function has returned what is no scores.

    Attributes:
        runs: positions in the lockstep of the runs that it scored for.
    """

    def __init__(self, message: str, runs: Sequence[int]) -> None:
        super().__init__(message, runs)
        self.message = message
        self.runs = tuple(runs)

    def __str__(self) -> str:
        return self.message


def acquisition_scores(
    config: RunConfig, context: AcquisitionContext, rows: torch.Tensor, runs: Sequence[int]
) -> torch.Tensor:
    """What an acquisition function says of stored instances.

    Args:
        config: names the function, and has its options.
        context: what it may look at.
        rows: int64 [S, m].
        runs: positions in the lockstep of the S runs.

    Returns:
        Scores [S, m].

    Raises:
        BadScores: they are none.
    """
    name, options = config.acquisition, config.options_of("acquisition")
    function = ACQUISITION_FUNCTIONS[name]
    if name not in ACQUISITION_FUNCTIONS.added:
        scores: torch.Tensor = function(context, rows, **options)
        return scores
    shape, device = tuple(rows.shape), rows.device
    with torch_state_kept():
        returned = function(context, rows, **options)
    return _checked(returned, f"acquisition function {name!r}", f"[S, m] = {list(shape)}", shape, device, runs, None)


def storage_scores(config: RunConfig, trajectories: torch.Tensor, runs: Sequence[int]) -> torch.Tensor:
    """What a storage function makes of beta's trajectories.

    Args:
        config: names the function, and has its options.
        trajectories: float32 [S, tau, n].
        runs: which of the S runs it scores for; what it says of the others is not made use of.

    Returns:
        s, [S, n].

    Raises:
        BadScores: it is none.
    """
    name, options = config.storage_function, config.options_of("storage_function")
    function = STORAGE_FUNCTIONS[name]
    if name not in STORAGE_FUNCTIONS.added:
        scores: torch.Tensor = function(trajectories, **options)
        return scores
    shape, device = (trajectories.shape[0], trajectories.shape[2]), trajectories.device
    with torch_state_kept():
        returned = function(
            trajectories.clone(), **options
        )  # others look at them afterwards, and they are written down
    what = f"storage function {name!r}"
    return _checked(returned, what, f"[S, n] = {list(shape)}", shape, device, runs, list(runs)).to(torch.float64)


def _checked(
    returned: object,
    what: str,
    expected: str,
    shape: tuple[int, ...],
    device: torch.device,
    runs: Sequence[int],
    used: list[int] | None,
) -> torch.Tensor:
    """What a function has returned, if it is numbers of the expected shape.

    Args:
        returned: what it is.
        what: names the function.
        expected: names the shape.
        shape: of scores.
        device: where they are needed.
        runs: at whose fault it is if they are none.
        used: the rows that are made use of; None for all.
    """
    if not isinstance(returned, torch.Tensor):
        raise BadScores(f"{what} returned {type(returned).__name__}; expected a tensor of scores {expected}", runs)
    if returned.layout != torch.strided or returned.is_quantized or returned.is_meta:
        raise BadScores(f"{what} returned a sparse, quantized or meta tensor; expected a dense one {expected}", runs)
    if tuple(returned.shape) != shape:
        raise BadScores(f"{what} returned scores of shape {list(returned.shape)}; expected {expected}", runs)
    if returned.is_complex() or returned.dtype == torch.bool:
        raise BadScores(f"{what} returned {returned.dtype}; expected scores that are real numbers", runs)
    scores = returned.detach().to(device)
    missing = (scores if used is None else scores[used]).isnan()
    if missing.any():
        raise BadScores(
            f"{what} returned NaN for {int(missing.sum())} of {missing.numel()} instances; expected numbers", runs
        )
    return scores
