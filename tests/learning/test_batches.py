"""Batches of an epoch: every instance once, in the given order, weighted by the two means."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch, Epoch, Instances, Replay
from clops_sweep.learning.replay.mini_batches import joined


def weight(row: Any) -> Any:
    return 1 + row / 64


def instances(first: int, count: int, weighted: bool) -> Instances:
    rows = torch.arange(first, first + count)
    return Instances(rows, rows[:, None].float()).weighted(weight(rows) if weighted else None)


@settings(max_examples=60)
@given(
    st.integers(1, 20), st.integers(0, 15), st.integers(1, 9), st.integers(1, 2),
    st.booleans(), st.booleans(), st.randoms(use_true_random=False),
)  # fmt: skip
def test_every_instance_comes_once_and_each_mean_is_a_mean(
    size: int, extra: int, batch_size: int, smallest: int, weighted: bool, replay_weighted: bool, random: Any
) -> None:
    factors = torch.linspace(0.5, 1, 15)
    parts = [
        instances(100 + first, last - first, replay_weighted) for first, last in ((0, extra // 2), (extra // 2, extra))
    ]
    replay = Replay(Instances.union(parts), factors[:extra]) if extra else None
    order = list(range(size + extra))
    random.shuffle(order)
    task = instances(0, size, weighted)
    epoch = Epoch(task, replay, torch.tensor(order), batch_size, smallest)
    batches = list(epoch.batches())
    sizes, left = list[int](), size + extra
    while left:
        sizes.append(left if left < batch_size + smallest else batch_size)
        left -= sizes[-1]
    assert [len(batch.rows) for batch in batches] == epoch.sizes == sizes
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert torch.cat([batch.draws for batch in batches]).tolist() == list(range(size + extra))
    union = [*range(size), *range(100, 100 + extra)]
    rows = torch.cat([batch.rows for batch in batches]).tolist()
    assert rows == epoch.whole.rows.tolist() == [union[place] for place in order]
    for batch in batches:
        own = [row < 100 for row in batch.rows.tolist()]
        assert batch.current.tolist() == own
        assert batch.current_count.tolist() == [sum(own)] * len(own)
        assert batch.targets[:, 0].tolist() == batch.rows.tolist()
        for place, is_current in enumerate(own):
            row = int(batch.rows[place])
            assert int(batch.positions[place]) == (row if is_current else 0)
            factor = weight(row) if (weighted if is_current else replay_weighted) else 1.0
            factor *= 1.0 if is_current else float(factors[row - 100])
            count = sum(own) if is_current else len(own) - sum(own)
            assert float(batch.factors[place]) == pytest.approx(factor, rel=1e-6)
            assert float(batch.weights[place]) == pytest.approx(factor / count, rel=1e-6)
        for name, values in vars(batch.plain()).items():
            assert values is getattr(batch, name)


def test_instances_at_positions() -> None:
    task, positions = instances(0, 9, True), torch.tensor([3, 3, 8, 0, 7, 2])
    found = task.at(positions)
    assert torch.equal(found.rows, positions)
    assert torch.equal(found.targets, positions[:, None].float())
    assert torch.equal(found.loss_weights, weight(positions))
    assert torch.equal(instances(0, 9, False).at(positions).loss_weights, torch.ones(6))


def test_what_is_kept_for_a_batch() -> None:
    task = Instances(torch.arange(6), torch.zeros(6, 3))
    epoch = Epoch(task, None, streams.permutation(1, 6, "test"), 5)
    kept = torch.arange(4).view(2, 2)
    epoch.keep("kept", kept)
    assert [epoch.kept_for("kept", batch).tolist() for batch in epoch.batches()] == kept.tolist()
    epoch.keep("kept", kept + 5)
    assert [epoch.kept_for("kept", batch).tolist() for batch in epoch.batches()] == (kept + 5).tolist()
    assert Epoch(task, None, streams.permutation(1, 6, "test"), 5, smallest=2).sizes == [6]


def test_memory_batches_of_an_epoch() -> None:
    epoch = Epoch(instances(0, 12, False), None, streams.permutation(1, 12, "test"), 5)
    positions, keys = streams.permutation(3, 12, "test"), torch.arange(6).view(3, 2)
    for draws in (None, torch.arange(12).view(3, 4) + 7):
        epoch.keep_memory("past", instances(20, 12, True).at(positions), keys, draws)
        whole, all_keys = epoch.memory("past")
        for number, batch in enumerate(epoch.batches()):
            found, of_batch = epoch.memory("past", batch)
            rows = 20 + positions[4 * number : 4 * number + 4]
            assert torch.equal(found.rows, rows)
            assert torch.equal(found.targets, rows[:, None].float())
            assert torch.equal(found.weights, weight(rows) / 4)
            assert found.draws.dtype == torch.int64
            assert found.draws.tolist() == (list(range(4)) if draws is None else draws[number].tolist())
            assert torch.equal(of_batch, keys[number])
            assert torch.equal(all_keys[number], of_batch)
            for name, values in vars(found).items():
                assert torch.equal(getattr(whole, name)[number], values)


def test_replayed_instances_behind_a_batch() -> None:
    batch, replay = instances(0, 4, False), instances(100, 6, True)
    plain = Batch(batch.rows, batch.targets, torch.full((4,), 0.25), torch.arange(12, 16))
    found = joined(plain, replay, 8)
    assert found.rows.tolist() == [*range(4), *range(100, 106)]
    assert torch.equal(found.targets[:, 0], found.rows.float())
    torch.testing.assert_close(found.weights, torch.cat([plain.weights, weight(replay.rows) / 6]))
    assert found.draws.tolist() == [*range(12, 16), *range(2**20 + 8, 2**20 + 14)]
