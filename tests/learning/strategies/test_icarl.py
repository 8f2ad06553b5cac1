"""iCaRL: steps against autograd in float64, predictions by distances to means."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import normalize

from clops_sweep import ContinualRun
from clops_sweep.learning.strategies.icarl import IncrementalClassifier
from clops_sweep.testing import tiny_config, tiny_frames


def run_of(epochs: int = 2, **settings: Any) -> ContinualRun:
    config = tiny_config("class_il_union", strategy="icarl", epochs_per_task=epochs, memory_size=12, **settings)
    return ContinualRun(config, tiny_frames("class_il_union"))


def strategy_of(run: ContinualRun) -> IncrementalClassifier:
    return run.strategy


def test_targets_of_past_classes_are_what_the_network_said_before_the_task() -> None:
    run = run_of()
    run.advance()
    run.advance()
    strategy, learner = strategy_of(run), run.learner
    strategy.begin_task(1)
    rows = torch.cat([run.tasks[1].rows, strategy.memory.all().instances.rows])
    before = learner.logits(rows).sigmoid()
    torch.testing.assert_close(strategy.q[:, :2], before[:, :2])
    current = run.tasks[1].targets
    torch.testing.assert_close(strategy.q[: len(current), 2:], current[:, 2:])


def test_each_class_has_an_equal_share_and_keeps_the_first_of_its_order() -> None:
    run, held = run_of(), []
    while not run.finished:
        run.advance()
        if run.at_task_end:
            memory = strategy_of(run).memory
            classes = memory.all().instances.targets.argmax(1)
            held.append({int(c): set(memory.index[classes == c].tolist()) for c in classes.unique()})
    assert [{len(rows) for rows in each.values()} for each in held] == [{5}, {3}, {2}]  # 5 of a class are all of them
    for one, other in pairwise(held):
        assert all(other[c] <= one[c] for c in one)


def test_predictions_are_the_nearest_mean_of_exemplars() -> None:
    run = run_of()
    run.run()
    strategy, memory = strategy_of(run), strategy_of(run).memory
    stored = memory.all().instances
    phi = normalize(strategy.head.features(stored.rows), dim=1)
    classes = stored.targets.argmax(1)
    means = normalize(torch.stack([phi[classes == c].mean(0) for c in range(6)]), dim=1)
    rows = torch.arange(len(run.frames))
    asked = normalize(strategy.head.features(rows), dim=1)
    nearest = torch.cdist(asked, means).argmin(1)
    assert run.learner.logits(rows).argmax(1).tolist() == nearest.tolist()
