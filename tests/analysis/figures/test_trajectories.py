"""Trajectories of beta as the store holds them."""

from __future__ import annotations

import pandas as pd
import pytest

from clops_sweep.analysis.figures.trajectories import beta_trajectories, draw_trajectories
from clops_sweep.errors import UsageError

INSTANCES = pd.DataFrame(
    {
        "task": ["0-1", "0-1", "0-1", "2-3"],
        "instance": [7, 3, 5, 9],
        "s": [1.9, 1.7, 1.8, 1.95],
        "beta_trajectory": [[1.0, 0.9], [0.9, 0.8], None, [1.0, 0.95]],
    }
)


def test_they_come_by_task_in_the_order_of_s() -> None:
    first, second = beta_trajectories(INSTANCES)
    assert (first.task, first.instances, first.s.tolist()) == ("0-1", (3, 7), [1.7, 1.9])
    assert first.beta.tolist() == [[0.9, 0.8], [1.0, 0.9]]
    assert (second.task, second.instances) == ("2-3", (9,))


def test_the_figure_draws_and_is_told_in_words() -> None:
    records = beta_trajectories(INSTANCES)
    panels = [axes for axes in draw_trajectories(records).axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["task 0-1", "task 2-3"]
    legend = draw_trajectories(records).legends[0]
    styles = {t.get_text(): h.get_linestyle() for t, h in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert styles == {"highest s": "-", "middle s": ":", "lowest s": "--"}


def test_a_run_without_any_is_refused() -> None:
    with pytest.raises(UsageError, match="recorded none"):
        beta_trajectories(INSTANCES.assign(beta_trajectory=None))
