"""Blurry boundaries: which training instances move to a neighbouring task."""

from __future__ import annotations

import numpy as np
import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.scenarios import Scenario, build_scenario
from clops_sweep.testing import tiny_config, tiny_frames


def moves(plain: Scenario, blurred: Scenario) -> np.ndarray:
    """Return how many training instances of task i are in task j, [N, N]."""
    home = {row: place for place, task in enumerate(plain.tasks) for row in task.train.rows.tolist()}
    found = np.zeros((len(plain.tasks), len(plain.tasks)), int)
    for place, task in enumerate(blurred.tasks):
        assert (np.diff(task.train.rows) > 0).all()
        for row in task.train.rows.tolist():
            found[home[row], place] += 1
    return found


@pytest.mark.parametrize(("share", "leave"), [(0.25, 3), (0.5, 6), (0.99, 11)])
@pytest.mark.parametrize("order", ["sequential", (2, 0, 1)])
def test_a_share_goes_in_turn_to_the_tasks_before_and_after(share: float, leave: int, order: object) -> None:
    frames = tiny_frames("time_il")  # 12 training instances per term
    plain, blurred = (build_scenario(frames, "time_il", order, blurry=it, blur_seed=3) for it in (0.0, share))  # type: ignore[arg-type]
    stay, half = 12 - leave, leave // 2
    assert moves(plain, blurred).tolist() == [[stay, leave, 0], [leave - half, stay, half], [0, leave, stay]]
    targets = dict(zip(np.concatenate([task.train.rows for task in plain.tasks]).tolist(),
                       np.concatenate([task.train.targets for task in plain.tasks]), strict=True))  # fmt: skip
    for before, after in zip(plain.tasks, blurred.tasks, strict=True):
        for split in ("validation", "test"):
            np.testing.assert_array_equal(getattr(before, split).rows, getattr(after, split).rows)
        np.testing.assert_array_equal(after.train.targets, [targets[row] for row in after.train.rows.tolist()])


def test_the_split_seed_decides_what_moves() -> None:
    frames = tiny_frames("time_il")

    def rows(config_seed: int, split_seed: int) -> list[int]:
        config = tiny_config("time_il", blurry=0.5, seed=config_seed, split_seed=split_seed, strategy="finetune")
        return ContinualRun(config, frames).scenario.tasks[0].train.rows.tolist()

    assert rows(0, 1) == rows(5, 1)
    assert rows(0, 1) != rows(0, 2)
