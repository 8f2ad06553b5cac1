"""A memory with eviction, and the instances that it keeps, against brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning.batches import Instances
from clops_sweep.learning.replay.division import kept, random_priorities, shares
from clops_sweep.learning.replay.memory import InstanceMemory
from clops_sweep.learning.replay.mini_batches import subsets
from clops_sweep.testing.watch import difference, saved_and_loaded

SIZES = (4, 3)


def tasks() -> list[Instances]:
    made, first = [], 100
    for size in SIZES:
        rows = torch.arange(first, first + size)
        made.append(Instances(rows, rows[:, None] + torch.tensor([0.25, 0.5])))
        first += 50
    return made


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


def test_what_belongs_to_an_instance_goes_where_it_goes() -> None:
    memory = InstanceMemory(tasks())
    assert len(memory) == 0
    first = torch.tensor([2, 1, 0])
    memory.add(first, logits=first[:, None] * torch.tensor([1.0, 10.0]), factor=first.float())
    assert memory.of_task(1).tolist() == [4, 5, 6]
    assert [places.tolist() for places in memory.places_by_task().values()] == [[0, 1, 2]]
    second = memory.of_task(1)[:2]
    memory.add(second, logits=second[:, None] * torch.tensor([1.0, 10.0]), factor=second.float())
    assert {task: places.tolist() for task, places in memory.places_by_task().items()} == {0: [0, 1, 2], 1: [3, 4]}
    memory.keep(torch.tensor([1, 2, 3]))
    assert memory.instances.tolist() == [1, 0, 4]
    new = torch.tensor([5, 6])
    memory.replace(torch.tensor([1, 0]), new, logits=new[:, None] * torch.tensor([1.0, 10.0]), factor=new.float())
    assert memory.instances.tolist() == [6, 5, 4]
    assert torch.equal(memory.carried["factor"], memory.instances.float())
    assert torch.equal(memory.carried["logits"], memory.instances[:, None] * torch.tensor([1.0, 10.0]))
    assert memory.carried_at("logits", torch.tensor([0, 1]))[:, 1].tolist() == [60, 50]
    assert memory.task_of(memory.instances).tolist() == [1, 1, 1]


def test_what_is_replayed_is_counted_and_known_after_it_is_lost() -> None:
    memory = InstanceMemory(tasks())
    memory.add(torch.tensor([0]))
    memory.add(torch.tensor([4, 6]), logits=torch.ones(2))
    assert memory.carried == {}, "a column has a row for every instance, or is not carried"
    replayed = memory.replay(torch.tensor([0, 2, 2]))
    assert replayed.rows.tolist() == [100, 152, 152]
    assert torch.equal(replayed.targets, replayed.rows[:, None] + torch.tensor([0.25, 0.5]))
    memory.keep(torch.tensor([0]))
    assert memory.stored(0).dtype == torch.bool
    assert memory.stored(0).tolist() == [True, False, False, False]
    assert memory.stored(1).tolist() == [False, False, False]
    assert memory.times_replayed(0).tolist() == [1, 0, 0, 0]
    assert memory.times_replayed(1).tolist() == [0, 0, 2]


@pytest.mark.parametrize("carried", [{}, {"logits": torch.rand(3, 2)}])
def test_a_memory_goes_on_from_its_state(carried: dict[str, torch.Tensor]) -> None:
    memory, other = InstanceMemory(tasks()), InstanceMemory(tasks())
    memory.add(torch.tensor([0, 4, 6]), **carried)
    memory.replay(torch.tensor([1]))
    other.restore(saved_and_loaded(memory.state()))
    assert difference(memory.state(), other.state()) is None
    for each in (memory, other):
        each.replay(torch.tensor([0]))
        each.keep(torch.tensor([0, 1]))
    assert difference(memory.state(), other.state()) is None


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
