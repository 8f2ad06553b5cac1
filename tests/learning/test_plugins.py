"""Return values and side effects of users' acquisition and storage functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, STORAGE_FUNCTIONS
from clops_sweep.learning.replay.storage import area
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference


@pytest.fixture
def frames() -> FrameSet:
    return tiny_frames("class_il")


def _one_nan(scores: torch.Tensor) -> torch.Tensor:
    scores[0] = torch.nan
    return scores


ACQUISITION = [
    (lambda context, rows: None, r"NoneType; expected a tensor of scores \[\d+\]"),
    (lambda context, rows: rows.numpy(), r"ndarray; expected a tensor of scores \[\d+\]"),
    (lambda context, rows: rows[None].double(), r"scores of shape \[1, (\d+)\]; expected \[\1\]"),
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


def test_an_acquisition_function_may_draw_from_a_global_generator(frames: FrameSet) -> None:
    with ACQUISITION_FUNCTIONS.temporarily("mine", lambda context, rows: torch.rand(rows.shape)):
        config = tiny_config("class_il", acquisition="mine")
        first = ContinualRun(config, frames).run()
        torch.rand(3)
        assert result_difference(first, ContinualRun(config, frames).run()) is None


def _spoils(*arguments: object) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)


def test_what_a_function_leaves_behind_changes_nothing_of_another_run(frames: FrameSet) -> None:
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
        of_mess, beside = ContinualRun(messy, frames), ContinualRun(base, frames)
        while not beside.finished:
            of_mess.advance()
            beside.advance()
        of_mess.result()
        result = beside.result()
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()) == before
    assert result_difference(alone, result) is None
