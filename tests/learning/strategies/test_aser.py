"""ASER: Shapley values against all orders of the players, and steps against an independent implementation."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.learning.strategies.aser import AdversarialShapley, shapley_values, some_of_each
from clops_sweep.testing import tiny_config, tiny_frames


def game(seed: int, players: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features and labels of players, and of three queries."""
    stream = torch.Generator().manual_seed(seed)
    features, queries = (torch.randn(n, 2, generator=stream, dtype=torch.float64) for n in (players, 3))
    labels, asked = (torch.randint(0, 2, (n,), generator=stream) for n in (players, 3))
    return features, labels, queries, asked


def worth(coalition: tuple[int, ...], distances: list[float], right: list[bool], k: int) -> float:
    return sum(right[player] for player in sorted(coalition, key=lambda it: distances[it])[:k]) / k


def by_all_orders(distances: list[float], right: list[bool], k: int) -> list[float]:
    """Return a player's mean contribution to those before it, over all orders."""
    players = range(len(distances))
    orders, total = list(permutations(players)), [0.0] * len(distances)
    for order in orders:
        for place, player in enumerate(order):
            with_player, without = order[: place + 1], order[:place]
            total[player] += worth(with_player, distances, right, k) - worth(without, distances, right, k)
    return [each / len(orders) for each in total]


def by_recursion(distances: list[float], right: list[bool], k: int) -> list[float]:
    """Evaluate theorem 1 of Jia et al., step by step."""
    order, found = np.argsort(distances, kind="stable").tolist(), [0.0] * len(distances)
    for place in range(len(order), 0, -1):
        player, later = order[place - 1], order[place] if place < len(order) else None
        if later is None:
            found[player] = right[player] * min(k, place) / (k * place)
        else:
            found[player] = found[later] + (int(right[player]) - int(right[later])) / k * min(k, place) / place
    return found


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("players", [1, 2, 6])
def test_values_are_the_mean_over_all_orders(players: int, k: int) -> None:
    features, labels, queries, asked = game(players, players)
    found = shapley_values(features, labels, queries, asked, k)
    for query in range(3):
        distances = (features - queries[query]).norm(dim=1).tolist()
        right = (labels == asked[query]).tolist()
        np.testing.assert_allclose(found[query], by_all_orders(distances, right, k), atol=1e-12)
        np.testing.assert_allclose(found[query], by_recursion(distances, right, k), atol=1e-12)
        np.testing.assert_allclose(found[query].sum(), worth(tuple(range(players)), distances, right, k), atol=1e-12)


def test_an_excluded_player_has_no_value_and_changes_no_other() -> None:
    features, labels, queries, asked = game(0, 6)
    excluded = torch.zeros(3, 6, dtype=torch.bool)
    excluded[:, 2] = True
    found = shapley_values(features, labels, queries, asked, 3, excluded)
    rest = torch.tensor([0, 1, 3, 4, 5])
    torch.testing.assert_close(found[:, rest], shapley_values(features[rest], labels[rest], queries, asked, 3))
    assert not found[:, 2].any()


def run_of(**settings: Any) -> ContinualRun:
    given = {"memory_size": 12, "aser_candidates": 8, "aser_per_class": 1, "epochs_per_task": 2} | settings
    return ContinualRun(tiny_config("class_il_union", strategy="aser", **given), tiny_frames("class_il_union"))


def strategy_of(run: ContinualRun) -> AdversarialShapley:
    return run.strategy


def mean_values(
    ids: list[int], asked: list[int], features: dict[int, list[float]], labels: dict[int, int], k: int
) -> list[float]:
    total, count = [0.0] * len(ids), [0] * len(ids)
    for query in asked:
        players = [place for place, each in enumerate(ids) if each != query]
        distances = [float(np.linalg.norm(np.subtract(features[ids[it]], features[query]))) for it in players]
        found = by_recursion(distances, [labels[ids[it]] == labels[query] for it in players], k)
        for place, value in zip(players, found, strict=True):
            total[place] += value
            count[place] += 1
    return [round(each / max(1, n), 12) for each, n in zip(total, count, strict=True)]


def test_what_is_replayed_and_what_stays_is_what_the_definition_says() -> None:
    run = run_of()
    for _ in range(4):
        run.advance()
    strategy, k = strategy_of(run), 3
    stored = strategy.memory.index
    new = strategy.ledger.of_task(2)[:4]
    pool = torch.cat([stored, new])
    instances = strategy.ledger.at(pool)
    rows = strategy.head.features(instances.rows).tolist()
    ids = pool.tolist()
    features, labels = (dict(zip(ids, each, strict=True)) for each in (rows, instances.targets.argmax(1).tolist()))
    replayed, stay = strategy.choose(new, 5, 4, np.random.default_rng(7))

    draws = np.random.default_rng(7)
    candidates = [ids[place] for place in draws.permutation(12)[:8]]
    of_pool = np.array([labels[each] for each in ids])
    queries = [[ids[place] for place in some_of_each(of_pool[:n], 1, draws)] for n in (12, 16)]
    batch = new.tolist()
    own, other = (mean_values(candidates, asked, features, labels, k) for asked in (queries[0], batch))
    score = np.subtract(own, other)
    expected = [candidates[place] for place in np.argsort(-score, kind="stable")[:5]]
    assert stored[replayed].tolist() == expected
    players = [*candidates, *batch]
    value = mean_values(players, queries[1], features, labels, k)
    gone = {players[place] for place in np.argsort(value, kind="stable")[:4]}
    assert pool[stay].tolist() == [each for each in ids if each not in gone]


def test_the_memory_takes_every_instance_up_once_and_stays_full() -> None:
    run = run_of(replay_ratio=0.5)
    sizes, replayed = [], []
    while not run.finished:
        run.advance()
        memory = strategy_of(run).memory.index.tolist()
        assert len(set(memory)) == len(memory)
        sizes.append(len(memory))
        replayed.append(int(strategy_of(run).ledger.replayed.sum()))
    assert set(sizes[2:]) == {12}
    assert replayed[:2] == [0, 0]
    assert replayed[2] < replayed[3] < replayed[-1]
    row = run.result().runs.iloc[0]
    assert (row["stores"], row["memory_instances"]) == ("raw", 12)
    assert row["memory_bytes"] == 12 * strategy_of(run).instance_bytes
    table = run.result().instances
    assert table["stored"].sum() == 12
    assert table["times_replayed"].sum() == replayed[-1]
