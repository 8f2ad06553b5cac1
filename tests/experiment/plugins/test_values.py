"""Values of axes, seeds and searches: arrays and scalars of NumPy and pandas count as Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep import (
    RunConfig,
    SearchSpace,
)

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
