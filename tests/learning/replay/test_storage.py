"""Storage: the trapezoid rule, what is selected, how much is stored."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning.replay import storage


def trapezoid(values: list[float]) -> float:
    total = 0.0
    for left, right in itertools.pairwise(values):
        total += (left + right) / 2 * 1.0
    return total


@pytest.mark.parametrize("epochs", [1, 2, 3, 20, 40])
def test_s_is_the_trapezoid_rule_over_the_recorded_values(epochs: int) -> None:
    stream = torch.Generator().manual_seed(epochs)
    beta = torch.rand(epochs, 9, generator=stream) * 1.5
    area, squared = storage.area(beta), storage.squared_area(beta)
    for instance in range(9):
        values = [float(beta[epoch, instance]) for epoch in range(epochs)]
        assert float(area[instance]) == pytest.approx(trapezoid(values), abs=1e-13)
        assert float(squared[instance]) == pytest.approx(trapezoid([v * v for v in values]), abs=1e-13)


def test_twenty_epochs_have_nineteen_intervals() -> None:
    assert storage.area(torch.ones(20, 1)).item() == 19
    assert storage.area(torch.ones(1, 1)).item() == 0


scores = st.lists(st.integers(-3, 3), min_size=1, max_size=30)


@settings(max_examples=200)
@given(scores, st.floats(1e-3, 1))
def test_top_and_bottom_are_ranks_and_ties_go_to_the_lower_index(values: list[int], fraction: float) -> None:
    count = count_of(fraction, len(values))
    s = torch.tensor(values, dtype=torch.float64) / 4
    top = sorted(range(len(values)), key=lambda i: (-values[i], i))[:count]
    bottom = sorted(range(len(values)), key=lambda i: (values[i], i))[:count]
    assert storage.select("top", s, count, 0, 0).tolist() == sorted(top)
    assert storage.select("bottom", s, count, 0, 0).tolist() == sorted(bottom)


@pytest.mark.parametrize("size", [100, 5000, 40000])
def test_ties_of_many_instances_go_to_the_lower_index_too(size: int) -> None:
    s = (torch.arange(size) % 2).double()
    assert storage.highest(s, size // 4).tolist() == list(range(1, size // 2 + 1, 2))
    assert storage.highest(torch.zeros(size), size // 4).tolist() == list(range(size // 4))


@settings(max_examples=200)
@given(st.integers(1, 500), st.integers(1, 1000))
def test_the_count_is_the_floor_and_at_least_one(size: int, thousandths: int) -> None:
    exact = Fraction(thousandths, 1000) * size
    assert count_of(thousandths / 1000, size) == max(1, math.floor(exact))


def test_the_floor_forgives_rounding() -> None:
    assert 0.29 * 100 < 29
    assert count_of(0.29, 100) == 29
    assert count_of(0.1, 5) == 1
    assert count_of(1.0, 781) == 781


@settings(max_examples=60)
@given(st.sampled_from(["top", "bottom", "random"]), st.integers(1, 60), st.floats(1e-3, 1), st.integers(0, 2**32 - 1))
def test_exactly_the_share_of_distinct_instances_is_stored(order: str, size: int, fraction: float, seed: int) -> None:
    stream = torch.Generator().manual_seed(seed)
    s = torch.rand(size, generator=stream, dtype=torch.float64)
    count = max(1, math.floor(fraction * size + 1e-9))
    chosen = storage.select(order, s, count_of(fraction, size), seed, 2).tolist()
    assert len(chosen) == len(set(chosen)) == count
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(size))


@settings(max_examples=60)
@given(st.permutations(range(12)), st.integers(1, 12))
def test_the_order_of_the_instances_does_not_matter(permutation: list[int], count: int) -> None:
    s = torch.tensor([float((7 * i) % 12) for i in range(12)])
    for order in ("top", "bottom"):
        chosen = set(storage.select(order, s, count, 0, 0).tolist())
        moved = storage.select(order, s[permutation], count, 0, 0).tolist()
        assert {permutation[place] for place in moved} == chosen


def test_random_storage_takes_every_instance_equally_often() -> None:
    taken = torch.zeros(10)
    for seed in range(600):
        taken[storage.select("random", torch.zeros(10), 3, seed, 1)] += 1
    # Binomial(600, 0.3) has a standard deviation of 11.2
    assert (taken - 180).abs().max() < 5 * 11.2


def test_random_storage_differs_between_tasks_and_seeds() -> None:
    chosen = [storage.select("random", torch.zeros(50), 10, seed, task) for seed in (0, 1) for task in (0, 1)]
    assert len({tuple(part.tolist()) for part in chosen}) == 4
