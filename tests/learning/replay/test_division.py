"""Shares of a memory and the instances that stay, against brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep import native
from clops_sweep.learning.replay.division import highest, kept, random_priorities, shares
from clops_sweep.learning.replay.mini_batches import subsets


@settings(derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 40))
def test_shares_are_those_that_are_dealt_one_by_one(sizes: list[int], capacity: int) -> None:
    """Round by round, one instance to each group that has more."""
    expected = [0] * len(sizes)
    while sum(expected) < min(capacity, sum(sizes)):
        for group, size in enumerate(sizes):
            if expected[group] < size and sum(expected) < capacity:
                expected[group] += 1
    assert shares(np.array(sizes), capacity).tolist() == expected


@settings(derandomize=True)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(0, 12), st.integers(0, 99))
def test_who_stays(groups: list[int], capacity: int, seed: int) -> None:
    priorities = np.random.default_rng(seed).integers(0, 4, len(groups)) / 4  # with ties
    names = sorted(set(groups))
    most = dict(zip(names, shares(np.array([groups.count(name) for name in names]), capacity), strict=True))
    expected: list[int] = []
    for name in names:
        members = [place for place, group in enumerate(groups) if group == name]
        expected += sorted(members, key=lambda place: (-priorities[place], place))[: most[name]]
    found = kept(torch.from_numpy(priorities), torch.tensor(groups), capacity)
    assert found.tolist() == sorted(expected)


@pytest.mark.skipif(not native.available(), reason="the native kernels are not built")
@settings(derandomize=True)
@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(0, 31), st.integers(0, 99))
def test_the_kernels_keep_the_same_instances(groups: list[int], capacity: int, seed: int) -> None:
    values = np.array([0.0, 0.25, -0.0, 7.5, -np.inf, np.inf, np.nan])
    priorities = np.random.default_rng(seed).choice(values, len(groups))
    numbers = np.array(groups, np.int64)
    expected = highest(priorities, numbers, capacity)
    assert np.array_equal(native.kept(priorities, numbers, capacity), expected)


def test_a_single_group_with_random_priorities_is_a_reservoir() -> None:
    """Whatever their order, all instances are equally likely to be kept at the end."""
    there = Counter[int]()
    for seed in range(400):
        held, priorities = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
        for task, size in enumerate((6, 2, 4)):
            first = sum((6, 2, 4)[:task])
            held = torch.cat([held, torch.arange(first, first + size)])
            priorities = torch.cat([priorities, random_priorities(seed, size, task)])
            places = kept(priorities, torch.zeros_like(held), 4)
            held, priorities = held[places], priorities[places]
        there.update(held.tolist())
    counts = np.array([there[instance] for instance in range(12)])
    expected = 400 * 4 / 12
    assert ((counts - expected) ** 2 / expected).sum() < 31.3  # chi-squared with 11 degrees of freedom, 99.9 %


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(0, 9), st.integers(0, 10**6))
def test_subsets_are_those_of_floyds_algorithm_one_by_one(more: list[int], count: int, seed: int) -> None:
    sizes = np.array(more) + count
    found = subsets(np.random.default_rng(seed), sizes, count)
    drawn = np.random.default_rng(seed).random((len(sizes), count))
    for of_size, size, numbers in zip(found.tolist(), sizes.tolist(), drawn.tolist(), strict=True):
        chosen: list[int] = []
        for last, number in zip(range(size - count, size), numbers, strict=True):
            new = int(number * (last + 1))
            chosen.append(last if new in chosen else new)
        assert of_size == chosen
