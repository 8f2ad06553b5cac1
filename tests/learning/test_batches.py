"""Batches of an epoch: every instance once, in the given order, weighted by the two means."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Epoch, Instances, Replay


def instances(first: int, count: int) -> Instances:
    rows = torch.arange(first, first + count).expand(2, -1)
    return Instances(rows, rows[:, :, None].float())


@settings(max_examples=60)
@given(st.integers(1, 20), st.integers(0, 15), st.integers(1, 9), st.randoms(use_true_random=False))
def test_every_instance_comes_once_and_each_mean_is_a_mean(
    size: int, extra: int, batch_size: int, random: object
) -> None:
    replay = Replay(instances(100, extra), torch.linspace(0.5, 1, extra).expand(2, -1)) if extra else None
    orders = []
    for _ in range(2):
        order = list(range(size + extra))
        random.shuffle(order)  # type: ignore[attr-defined]
        orders.append(order)
    epoch = Epoch(instances(0, size), replay, torch.tensor(orders), batch_size)
    batches = list(epoch.batches())
    assert [batch.rows.shape[1] for batch in batches] == epoch.sizes
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [len(batch.draws) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert torch.cat([batch.draws for batch in batches]).tolist() == list(range(size + extra))
    union = [*range(size), *range(100, 100 + extra)]
    for run in range(2):
        rows = torch.cat([batch.rows[run] for batch in batches]).tolist()
        assert rows == [union[place] for place in orders[run]]
        for batch in batches:
            own = [row < 100 for row in batch.rows[run].tolist()]
            assert batch.current[run].tolist() == own
            assert batch.current_count[run].tolist() == [sum(own)] * len(own)
            assert batch.targets[run, :, 0].tolist() == batch.rows[run].tolist()
            for place, is_current in enumerate(own):
                row = int(batch.rows[run, place])
                if is_current:
                    assert int(batch.positions[run, place]) == row
                    expected = 1 / sum(own)
                else:
                    assert replay is not None
                    assert int(batch.positions[run, place]) == 0
                    expected = float(replay.factors[run, row - 100]) / (len(own) - sum(own))
                assert float(batch.weights[run, place]) == pytest.approx(expected, rel=1e-6)


def test_what_is_kept_for_a_batch() -> None:
    task = Instances(torch.arange(14).view(2, 7), torch.zeros(2, 7, 3))
    epoch = Epoch(task, None, streams.permutations([1, 2], 7, "test"), 5)
    kept = torch.arange(4).view(2, 2)
    epoch.keep("kept", kept)
    assert [epoch.kept_for("kept", batch).tolist() for batch in epoch.batches()] == kept.tolist()
    epoch.keep("kept", kept + 5)
    assert [epoch.kept_for("kept", batch).tolist() for batch in epoch.batches()] == (kept + 5).tolist()
