"""Instances that a memory keeps, and samples drawn from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import Memory, Reservoir
from clops_sweep.errors import UsageError
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.method.batch import FrameBatch, Steps
from clops_sweep.learning.replay.division import herding
from clops_sweep.testing.watch import difference, saved_and_loaded

CLASSES = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
"""Twelve instances; the first six belong to the first task."""


@pytest.fixture
def steps() -> Any:
    bank = SimpleNamespace(device=torch.device("cpu"))
    targets = torch.nn.functional.one_hot(CLASSES).float()
    parts = zip(torch.arange(12).split(6), targets.split(6), strict=True)
    tasks = [Instances(*part) for part in parts]
    training: Any = SimpleNamespace(learner=SimpleNamespace(bank=bank), tasks=tasks, seed=0, by_position=False)
    found = Steps("mine", training)
    found.task = 1
    return found


def batch(steps: Any, *index: int) -> FrameBatch:
    return FrameBatch(steps, torch.tensor(index))


def test_a_reservoir_holds_a_uniform_sample_of_all_offers(steps: Any) -> None:
    """Each of twelve offers is kept in a third of the memories, up to chance."""
    times = np.zeros(12)
    repeats = 3000
    for _ in range(repeats):
        memory = Reservoir(4)
        for first in range(0, 12, 3):
            memory.offer(batch(steps, first, first + 1, first + 2), twice=2 * torch.arange(first, first + 3))
        assert torch.equal(memory.columns["twice"], 2 * memory.index)
        times[memory.index.numpy()] += 1
    deviation = np.sqrt(repeats * (1 / 3) * (2 / 3))
    assert np.abs(times - repeats / 3).max() < 4 * deviation


def test_a_ring_holds_the_latest(steps: Any) -> None:
    memory = Memory(4, "ring")
    for first in range(0, 12, 3):
        memory.offer(batch(steps, first, first + 1, first + 2))
        latest = list(range(first + 3))[-4:]
        assert sorted(memory.index.tolist()) == latest
    memory.offer(batch(steps, *range(6)))
    assert sorted(memory.index.tolist()) == [2, 3, 4, 5]


@pytest.mark.parametrize(("policy", "groups"), [("class_balanced", CLASSES), ("task_balanced", torch.arange(12) // 6)])
def test_groups_have_equal_shares(policy: Any, groups: torch.Tensor, steps: Any) -> None:
    memory = Memory(8, policy)
    for first in range(0, 12, 2):
        memory.offer(batch(steps, first, first + 1))
        seen, held = groups[: first + 2], groups[memory.index]
        counts = {group: int((held == group).sum()) for group in seen.unique().tolist()}
        level = max(counts.values())
        for group, count in counts.items():  # a class with fewer instances keeps all of them
            assert count >= level - 1 or count == int((seen == group).sum())
        assert len(memory) == min(8, first + 2)


def test_the_highest_scores_stay(steps: Any) -> None:
    memory, scores = Memory(3, "score"), torch.tensor([5.0, 1, 9, 2, 8, 3, 7, 0, 6, 4, 11, 10])
    for first in range(0, 12, 4):
        index = list(range(first, first + 4))
        memory.offer(batch(steps, *index), score=scores[index])
    assert sorted(memory.index.tolist()) == [2, 10, 11]
    assert torch.equal(memory.columns["score"], scores[memory.index])


def test_herding_comes_closest_to_the_mean(steps: Any) -> None:
    """Against all choices one by one, in two dimensions."""
    features = torch.from_numpy(np.random.default_rng(3).normal(size=(12, 2)))
    found = herding(features, CLASSES)
    for label in range(4):
        places = [int(it) for it in (label == CLASSES).nonzero()]
        mean, chosen = features[places].mean(0), []
        while left := [it for it in places if it not in chosen]:
            chosen.append(min(left, key=lambda it: float((mean - features[[*chosen, it]].mean(0)).square().sum())))
        assert found[chosen].tolist() == [-float(rank) for rank in range(len(chosen))]
    memory = Memory(6, "herding")
    memory.offer(batch(steps, *range(6)), features=features[:6])
    memory.offer(batch(steps, *range(6, 12)), features=features[6:])
    first = {label: int(((label == CLASSES) & (found == 0)).nonzero()) for label in range(4)}
    assert set(first.values()) <= set(memory.index.tolist())
    assert "features" not in memory.columns


def test_offers_of_a_step_are_taken_up_after_it(steps: Any) -> None:
    steps.waiting = []
    memory = Memory(3, "ring")
    memory.offer(batch(steps, 1, 2))
    assert (len(memory), steps.waiting) == (0, [memory])
    memory.store_offers()
    assert memory.index.tolist() == [1, 2]


def test_a_memory_says_where_targets_of_stored_instances_are() -> None:
    memory = Reservoir(3)
    with pytest.raises(AttributeError, match=r"'Reservoir' object has no attribute 'y'; self\.memory\.all\(\)\.y is"):
        _ = memory.y
    with pytest.raises(AttributeError, match=r"'Reservoir' object has no attribute 'others'$"):
        _ = memory.others
    assert not hasattr(memory, "x")


def test_drawing(steps: Any) -> None:
    memory = Memory(6, "ring")
    memory.offer(batch(steps, *range(6)), share=torch.tensor([0.0, 1, 0, 3, 0, 0]))
    assert sorted(memory.sample(9).index.tolist()) == list(range(6))
    assert len(set(memory.sample(3).index.tolist())) == 3
    drawn = memory.sample(4000, replacement=True, weights="share")
    counts = torch.bincount(drawn.index, minlength=6)
    assert counts[[0, 2, 4, 5]].tolist() == [0] * 4
    assert abs(int(counts[1]) - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert torch.equal(drawn.share, torch.tensor([0.0, 1, 0, 3, 0, 0])[drawn.index])
    assert sum(int(steps.ledger.times_replayed(task).sum()) for task in range(2)) == 6 + 3 + 4000
    assert sorted(memory.sample(2, weights="share").index.tolist()) == [1, 3]
    for wrong in ("nothing", torch.ones(5), torch.tensor([0.0, 1, 0, float("nan"), 0, 0]), torch.zeros(6)):
        with pytest.raises(UsageError, match=r"^strategy 'mine': memory: weights: expected"):
            memory.sample(2, weights=wrong)
    with pytest.raises(UsageError, match="3 of them above 0"):
        memory.sample(3, weights="share")
    with pytest.raises(UsageError, match="memory: offered no columns; expected share, as before"):
        memory.offer(batch(steps, 7))
    memory.update(torch.tensor([0]), share=torch.tensor([7.0]))
    assert memory.all().share.tolist() == [7.0, 1, 0, 3, 0, 0]
    with pytest.raises(AttributeError, match="a batch has x, y, weights, index, task, share and no 'logits'"):
        _ = memory.all().logits


def test_columns_go_where_their_instances_go(steps: Any) -> None:
    memory = Memory(None)
    memory.join(steps)
    assert len(memory.all().instances.rows) == 0
    first = batch(steps, 2, 1, 0)
    memory.add(first, logits=first.index[:, None] * torch.tensor([1.0, 10.0]))
    second = batch(steps, 6, 7)
    memory.offer(second, logits=second.index[:, None] * torch.tensor([1.0, 10.0]))
    assert {task: places.tolist() for task, places in memory.places_by_task().items()} == {0: [0, 1, 2], 1: [3, 4]}
    memory.keep(torch.tensor([1, 2, 3]))
    assert memory.index.tolist() == [1, 0, 6]
    assert memory.columns["logits"][:, 1].tolist() == [10, 0, 60]
    assert memory.at(torch.tensor([0])).at(torch.tensor([0, 0])).logits[:, 0].tolist() == [1, 1]
    with pytest.raises(UsageError, match="memory: offered no columns; expected logits, as before"):
        memory.add(second)


def test_replayed_instances_are_counted_also_after_their_eviction(steps: Any) -> None:
    memory = Memory(None)
    memory.add(batch(steps, 0, 7, 9))
    replayed = memory.replay(torch.tensor([0, 2, 2])).instances
    assert replayed.rows.tolist() == [0, 9, 9]
    assert replayed.targets.argmax(1).tolist() == [0, 3, 3]
    memory.keep(torch.tensor([0]))
    assert steps.ledger.times_replayed(0).tolist() == [1, 0, 0, 0, 0, 0]
    assert steps.ledger.times_replayed(1).tolist() == [0, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("policy", ["reservoir", "class_balanced", "task_balanced"])
def test_given_priorities_decide(policy: Any, steps: Any) -> None:
    memory, priority = Memory(4, policy), torch.arange(12.0).flip(0)
    for first in range(0, 12, 6):
        part = batch(steps, *range(first, first + 6))
        memory.offer(part, priority=priority[part.index])
    expected = {"reservoir": [0, 1, 2, 3], "class_balanced": [0, 4, 6, 9], "task_balanced": [0, 1, 6, 7]}
    assert memory.index.tolist() == expected[policy]
    assert memory.priority is not None
    assert torch.equal(memory.priority, priority[memory.index].double())
    assert memory.all().columns == {}


def test_priorities_for_other_policies_are_refused(steps: Any) -> None:
    one = batch(steps, 1)
    for memory in (Memory(None), Memory(3, "ring")):
        with pytest.raises(UsageError, match=r"memory: priority=\.\.\. is for every offer to a memory with a size"):
            memory.offer(one, priority=torch.ones(1))
    memory = Memory(3)
    memory.offer(one)
    with pytest.raises(UsageError, match=r"memory: priority=\.\.\. is for every offer"):
        memory.offer(one, priority=torch.ones(1))


@pytest.mark.parametrize("columns", [{}, {"logits": torch.rand(3, 2)}])
def test_a_loaded_memory_goes_on_as_the_other(columns: dict[str, torch.Tensor], steps: Any) -> None:
    memory = Memory(2, "task_balanced")
    memory.offer(batch(steps, 0, 4, 6), **columns)
    other = saved_and_loaded(memory)
    assert difference(memory, other) is None
    other.join(steps)
    assert torch.equal(other.all().instances.rows, memory.all().instances.rows)
    for each in (memory, other):
        each.keep(torch.tensor([1]))
    assert difference(memory, other) is None
