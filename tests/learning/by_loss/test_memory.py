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
from clops_sweep.learning.by_loss.batch import FrameBatch, Steps
from clops_sweep.learning.replay.division import herding
from clops_sweep.learning.replay.memory import InstanceMemory

CLASSES = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
"""Twelve instances; the first six belong to the first task."""


@pytest.fixture
def steps() -> Any:
    found: Any = object.__new__(Steps)
    found.name, found.task, found.waiting = "mine", 1, None
    found.device, found.rng = torch.device("cpu"), np.random.default_rng(0)
    found.training = SimpleNamespace(by_position=False)
    targets = torch.nn.functional.one_hot(CLASSES).float()
    parts = zip(torch.arange(12).split(6), targets.split(6), strict=True)
    found.ledger = InstanceMemory([Instances(*part) for part in parts])
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
    memory.take_up()
    assert memory.index.tolist() == [1, 2]


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
