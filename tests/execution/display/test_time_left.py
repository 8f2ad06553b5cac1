"""Remaining time of a sweep, from the mean seconds of its finished runs."""

from __future__ import annotations

from clops_sweep import RunConfig
from clops_sweep.execution.display.display_lines import time_left
from clops_sweep.execution.display.time_left import TimeLeft

GEM, FINE = (RunConfig(strategy=strategy) for strategy in ("gem", "finetune"))


def test_each_kind_of_run_takes_its_own_mean_and_workers_share_the_rest() -> None:
    left = TimeLeft([GEM, GEM, GEM, FINE, FINE, FINE])
    assert left.seconds(1) is None, "no run has finished"
    left.ended([GEM], 90.0)
    assert left.seconds(1) == 5 * 90, "the mean of all kinds, until a run of this kind has finished"
    left.ended([FINE, FINE], 10.0)
    assert left.seconds(1) == 2 * 90 + 10
    assert left.seconds(2) == (2 * 90 + 10) / 2
    left.ended([GEM], 110.0)
    assert left.seconds(1) == 100 + 10


def test_runs_of_a_search_count_whatever_it_requests() -> None:
    left = TimeLeft([FINE] * 4)
    left.ended([FINE.replace(epochs_per_task=7)], 5.0)
    left.ended([None, None])  # pruned
    assert left.seconds(1) == 5
    left.ended([None, None])
    assert left.seconds(1) == 0


def test_a_time_that_has_passed_is_not_a_second() -> None:
    assert time_left(-45.0) == "longer than expected"
    assert time_left(7.2) == "about 7 s left"
