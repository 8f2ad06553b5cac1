"""Values of axes, seeds and searches: arrays and scalars of NumPy and pandas count as Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep import (
    OptunaSearch,
    RunConfig,
    SearchSpace,
)
from clops_sweep.errors import UsageError, listed
from clops_sweep.experiment.plugins.values import has_twice

PLAIN = SearchSpace("s", RunConfig(), {"storage_fraction": [0.25, 0.5], "task_order": [[1, 0], [0, 1]]}, seeds=[0, 2])


@pytest.mark.parametrize(
    ("fractions", "orders", "seeds"),
    [
        (np.array([0.25, 0.5]), np.array([[1, 0], [0, 1]]), np.array([0, 2])),
        (pd.Series([0.25, 0.5]), [np.array([1, 0]), pd.Series([0, 1])], pd.Index([0, 2])),
        ((np.float32(0.25), np.float64(0.5)), ([np.int64(1), np.int8(0)], (0, 1)), range(0, 4, 2)),
    ],
    ids=["numpy", "pandas", "scalars"],
)
def test_arrays_are_axes_and_seeds(fractions: Any, orders: Any, seeds: Any) -> None:
    space = SearchSpace("s", RunConfig(), {"storage_fraction": fractions, "task_order": orders}, seeds=seeds)
    asked, expected = list(space.requests()), list(PLAIN.requests())
    assert [it.config.run_id("data") for it in asked] == [it.config.run_id("data") for it in expected]
    assert [it.labels["storage_fraction"] for it in asked] == [it.labels["storage_fraction"] for it in expected]
    assert {type(it.labels["storage_fraction"]) for it in asked} == {float}
    assert {type(seed) for seed in space.seeds} == {int}


def test_arrays_are_values_of_variants_and_of_configs() -> None:
    variants = {"variant": {"A": {"task_classes": np.array([[0, 1], [2, 3]]), "mc_samples": np.int64(3)}}}
    (request,) = SearchSpace("s", RunConfig(), variants, seeds=[0]).requests()
    assert request.config == RunConfig(task_classes=[[0, 1], [2, 3]], mc_samples=3)


def test_arrays_are_choices_of_a_search_and_scalars_are_bounds() -> None:
    search = OptunaSearch({"batch_size": np.array([8, 16]), "mc_samples": range(2, 4)}, n_trials=np.int64(3))  # type: ignore[dict-item,arg-type]
    assert search.distributions["batch_size"] == (8, 16)
    assert search.distributions["mc_samples"] == (2, 3)
    assert type(search.n_trials) is int


def test_equal_values_of_several_types_are_one_value_twice() -> None:
    for twice in ([1, 1.0], [1, True], [0.0, -0.0], [[0, 1], (0.0, 1)], ["a", np.str_("a")]):
        assert has_twice(twice)
    assert not has_twice([1, "1", [1], 1.5, None])


def test_many_lists_are_compared_in_a_moment() -> None:
    lists = [[number, [number]] for number in range(100_000)]
    assert not has_twice(lists)
    assert has_twice([*lists, lists[0]])


def test_very_many_classes_are_checked_in_a_moment() -> None:
    classes = [*range(100_000), 99_999]
    with pytest.raises(UsageError, match="class 99999 is there twice"):
        RunConfig(task_classes=[classes, [-1, -2]])


def test_a_zero_has_no_sign() -> None:
    assert RunConfig(beta_penalty=-0.0).run_id("data") == RunConfig(beta_penalty=0).run_id("data")


def test_long_lists_of_names_are_cut() -> None:
    assert listed("abc") == "a, b, c"
    assert listed(range(13)) == ", ".join(map(str, range(13)))
    assert listed(["x" * 50] * 9) == ", ".join(["x" * 50] * 3) + " and 6 more"
