"""Return values and side effects of users' acquisition and storage functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, STORAGE_FUNCTIONS
from clops_sweep.learning.process_state import ProcessState
from clops_sweep.learning.replay.storage import area
from clops_sweep.testing import tiny_config, tiny_frames


@pytest.fixture
def frames() -> FrameSet:
    return tiny_frames("class_il")


def _one_nan(scores: torch.Tensor) -> torch.Tensor:
    scores[:, 0] = torch.nan
    return scores


ACQUISITION = [
    (lambda context, rows: None, r"NoneType; expected a tensor of scores \[1, \d+\]"),
    (lambda context, rows: rows.numpy(), r"ndarray; expected a tensor of scores \[1, \d+\]"),
    (lambda context, rows: rows[0].double(), r"scores of shape \[(\d+)\]; expected \[1, \1\]"),
    (lambda context, rows: rows == 0, "torch.bool; expected scores that are real numbers"),
    (lambda context, rows: _one_nan(rows.double()), r"NaN for 1 of \d+ instances; expected numbers"),
]


@pytest.mark.parametrize(("function", "sentence"), ACQUISITION)
def test_an_acquisition_function_that_returns_no_scores_is_named(
    function: Callable[..., Any], sentence: str, frames: FrameSet
) -> None:
    with ACQUISITION_FUNCTIONS.temporarily("mine", function):
        run = ContinualRun(tiny_config("class_il", acquisition="mine"), frames)
        with pytest.raises(ValueError, match=rf"^acquisition function 'mine' returned {sentence}$"):
            run.run()


STORAGE = [
    (lambda trajectories: 3, r"int; expected a tensor of scores \[1, \d+\]"),
    (lambda trajectories: trajectories, r"scores of shape \[1, \d+, (\d+)\]; expected \[1, \1\]"),
    (lambda trajectories: area(trajectories).to(torch.complex64), "torch.complex64; expected scores that are real .*"),
    (lambda trajectories: _one_nan(area(trajectories)), r"NaN for 1 of \d+ instances; expected numbers"),
]


@pytest.mark.parametrize(("function", "sentence"), STORAGE)
def test_a_storage_function_that_returns_no_scores_is_named(
    function: Callable[..., Any], sentence: str, frames: FrameSet
) -> None:
    with STORAGE_FUNCTIONS.temporarily("mine", function):
        run = ContinualRun(tiny_config("class_il", storage_function="mine"), frames)
        with pytest.raises(ValueError, match=rf"^storage function 'mine' returned {sentence}$"):
            run.run()


def test_scores_of_any_type_of_number_rank_alike(frames: FrameSet) -> None:
    results = []
    for function in (
        lambda context, rows: rows.double(),
        lambda context, rows: rows,
        lambda context, rows: rows.float().requires_grad_(),
    ):
        with ACQUISITION_FUNCTIONS.temporarily("mine", function):
            results.append(ContinualRun(tiny_config("class_il", acquisition="mine"), frames).run())
    for result in results[1:]:
        assert result.curves.equals(results[0].curves)


def _spoils(*arguments: object) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)


def test_what_a_function_leaves_behind_changes_nothing_of_other_runs_in_lockstep(frames: FrameSet) -> None:
    def leaves_a_mess(context: Any, rows: torch.Tensor) -> torch.Tensor:
        _spoils()
        return rows.double()

    def changes_what_it_is_given(trajectories: torch.Tensor) -> torch.Tensor:
        _spoils()
        return area(trajectories.mul_(-3))

    base = tiny_config("class_il")
    alone = ContinualRun(base, frames).run()
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    with (
        ACQUISITION_FUNCTIONS.temporarily("mess", leaves_a_mess),
        STORAGE_FUNCTIONS.temporarily("changes", changes_what_it_is_given),
    ):
        messy = base.replace(acquisition="mess", storage_function="changes", seed=5)
        run = ContinualRun([messy, base], frames)
        together = run.run()
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()) == before
    own = base.run_id(frames.data_hash)
    for name in ("r_matrix", "curves", "instances"):
        found = getattr(together, name)
        found = found[found["run_id"] == own].reset_index(drop=True)
        assert found.astype(str).equals(getattr(alone, name).reset_index(drop=True).astype(str))


def test_what_numbers_depend_on_is_put_back() -> None:
    torch.manual_seed(3)
    saved = ProcessState()

    def state() -> list[Any]:
        return [
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.backends.cudnn.benchmark,
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # type: ignore[index]  # noqa: NPY002
            np.geterr(),
        ]

    before = state()
    try:
        _spoils()
        torch.set_num_threads(before[3] + 1)
        torch.set_default_device("meta")
        torch.set_float32_matmul_precision("medium")
        torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
        torch.manual_seed(8)
        random.seed(8)
        np.random.seed(8)  # noqa: NPY002
        np.seterr(all="raise")
    finally:
        saved.restore()
    for found, expected in zip(state(), before, strict=True):
        assert found == expected
