"""Online streams: every batch is predicted, then trained on; strategies do not see its task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.analysis import draw_learning_curves, learning_curves
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.learning.strategies.online import OnlineStream
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference, saved_and_loaded

ONLINE = [name for name in STRATEGIES if STRATEGIES.declaration(name).online]


def plain(channels: int, samples: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    with NETWORKS.temporarily("plain", plain):
        yield


def config_of(strategy: str, **changes: Any) -> RunConfig:
    settings = {"stream": "online", "steps_per_batch": 2, "prequential_window": 20, "projection_size": 30}
    return tiny_config("time_il", **settings | {"strategy": strategy} | changes)


def stream_of(run: ContinualRun) -> OnlineStream:
    assert isinstance(run.strategy, OnlineStream)
    return run.strategy


def test_prequential_scores_are_those_of_a_plain_loop() -> None:
    config, frames = config_of("finetune", network="plain", batch_size=5), tiny_frames("time_il")
    run = ContinualRun(config, frames)
    bank, weights = run.learner.bank, run.learner.weights()
    network = plain(1, frames.samples, 4)
    network.load_state_dict(weights)
    adam, z, y, expected = torch.optim.Adam(network.parameters(), config.learning_rate), [], [], []
    for task, order in zip(run.scenario.tasks, stream_of(run).orders, strict=True):
        for batch in np.array_split(order.numpy(), 3):
            x = bank.gather(torch.from_numpy(task.train.rows[batch])).view(len(batch), 1, -1)
            target = torch.from_numpy(task.train.targets[batch])
            z, y = [*z, *network(x).detach().softmax(1).numpy()], [*y, *target.argmax(1).tolist()]
            for _ in range(config.steps_per_batch):
                adam.zero_grad()
                nn.functional.cross_entropy(network(x), target).backward()
                adam.step()
            p, truth = np.array(z[-20:]), np.array(y[-20:])
            aucs = [roc_auc_score(truth == c, p[:, c]) for c in range(4) if 0 < (truth == c).sum() < len(truth)]
            expected.append((len(z), np.mean(aucs), np.mean(p.argmax(1) == truth)))
    result = run.run()
    curve = result.curves
    assert curve["epoch"].tolist() == list(range(1, 10))
    assert curve["training_task"].tolist() == [task.name for task in run.scenario.tasks for _ in range(3)]
    np.testing.assert_allclose(curve[["auc", "accuracy"]], [each[1:] for each in expected], atol=1e-6)
    whole = np.mean(np.array(z).argmax(1) == y)
    assert result.runs["prequential_accuracy"].item() == pytest.approx(whole)


@pytest.mark.parametrize("strategy", ONLINE)
def test_no_prediction_depends_on_labels_that_come_with_it_or_later(strategy: str) -> None:
    frames = tiny_frames("time_il")

    def predicted(labels: Any) -> tuple[np.ndarray, ContinualRun]:
        run = ContinualRun(config_of(strategy), replace(frames, labels=labels))
        run.run()
        return torch.cat(stream_of(run).logits).numpy(), run

    before, run = predicted(frames.labels)
    rows = stream_of(run).batches[3].rows.numpy()  # the second batch of the second task
    labels = frames.labels.copy()
    labels[rows] = (labels[rows] + 1) % 4
    after, _ = predicted(labels)
    first = sum(len(batch.rows) for batch in stream_of(run).batches[:3])
    np.testing.assert_array_equal(before[: first + len(rows)], after[: first + len(rows)])
    assert np.abs(before[first + len(rows) :] - after[first + len(rows) :]).max() > 1e-4


@pytest.mark.parametrize("strategy", ONLINE)
def test_resumed_after_a_task_and_run_to_the_end(strategy: str) -> None:
    config, frames = config_of(strategy), tiny_frames("time_il")
    run, states = ContinualRun(config, frames), []
    while not run.finished:
        states.append(saved_and_loaded(run.state()))
        run.advance()
    assert len(states) == 3
    for state in states[1:]:
        resumed = ContinualRun(config, frames)
        resumed.restore(state)
        assert result_difference(run.result(), resumed.run()) is None


def test_the_learning_curve_of_a_stream_is_prequential() -> None:
    """Also for splits whose tasks have other numbers of batches."""
    one = ContinualRun(config_of("finetune"), tiny_frames("time_il")).run().curves
    other = one[one["epoch"] != 6].assign(run_id="other", training_task=list("AAABB"))
    record = learning_curves(pd.concat([one, other]), measure="accuracy")
    assert record.quantity == "prequential accuracy"
    assert record.epochs.tolist() == list(range(1, 6))
    figure = draw_learning_curves([record])
    assert [axes.get_xlabel() for axes in figure.axes] == ["batch"]
