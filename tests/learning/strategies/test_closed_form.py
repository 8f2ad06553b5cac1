"""Heads without gradients against scikit-learn and closed forms in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid
from torch import nn

from clops_sweep import ContinualRun, network
from clops_sweep.data.frames import FrameSet
from clops_sweep.testing import tiny_config, tiny_frames

METHODS = ("ncm", "slda", "ranpac", "acil", "ts_acl")
PROJECTED = ("ranpac", "acil", "ts_acl")
SIZE = 60


@network("means_of_parts")
def means_of_parts(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return fixed features like an encoder's: means of the absolute signal in 25 segments."""

    class Means(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.abs().flatten(1).unflatten(1, (25, -1)).mean(2)

    return nn.Sequential(Means(), nn.Linear(25, outputs))


@network("fixed_blocks")
def fixed_blocks(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return two frozen blocks of convolution and ReLU, the mean over time, and a linear layer."""
    blocks = nn.Sequential(nn.Conv1d(channels, 4, 9, 4), nn.ReLU(), nn.Conv1d(4, 6, 9, 4), nn.ReLU())
    features = nn.Sequential(blocks.requires_grad_(False), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    return nn.Sequential(features, nn.Linear(6, outputs))


def run_of(method: str, order: Any = "sequential", **settings: Any) -> tuple[ContinualRun, FrameSet]:
    own = "fixed_blocks" if method == "ts_acl" else "means_of_parts"
    given = {"network": own, "epochs_per_task": 1, "task_order": order} | settings
    if method in PROJECTED:
        given = {"projection_size": SIZE} | given
    config, frames = tiny_config("class_il_union", strategy=method, **given), tiny_frames("class_il_union")
    run = ContinualRun(config, frames)
    run.run()
    return run, frames


def data_of(run: ContinualRun) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the head's input for all training instances, float64, and their classes."""
    strategy = run.strategy
    seen = [strategy.head.features(task.rows).numpy() for task in run.tasks]
    return np.concatenate(seen), np.concatenate([task.targets.argmax(1).numpy() for task in run.tasks])


def head(run: ContinualRun) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the solution in float64."""
    strategy = run.strategy
    weight, bias = strategy.solve(strategy.statistics)
    return weight.numpy(), bias.numpy()


def test_ncm_predicts_the_nearest_mean() -> None:
    run, _ = run_of("ncm")
    x, y = data_of(run)
    weight, bias = head(run)
    expected = NearestCentroid().fit(x, y).predict(x)
    np.testing.assert_array_equal((x @ weight.T + bias).argmax(1), expected)
    means = np.stack([x[y == c].mean(0) for c in range(6)])
    squares = ((x[:, None] - means) ** 2).sum(2)
    np.testing.assert_allclose((x @ weight.T + bias) - (x**2).sum(1)[:, None], -squares, atol=1e-8)


def test_slda_is_linear_discriminant_analysis() -> None:
    run, _ = run_of("slda", slda_shrinkage=1e-3)
    x, y = data_of(run)
    means = np.stack([x[y == c].mean(0) for c in range(6)])
    centred = x - means[y]
    inverse = np.linalg.inv((1 - 1e-3) * centred.T @ centred / len(x) + 1e-3 * np.eye(25))
    weight, bias = head(run)
    np.testing.assert_allclose(weight, means @ inverse, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bias, -np.einsum("cf,fg,cg->c", means, inverse, means) / 2, rtol=1e-8)


@pytest.mark.parametrize("method", PROJECTED)
def test_after_all_tasks_the_head_is_the_ridge_solution_on_all_data(method: str) -> None:
    run, _ = run_of(method)
    x, y = data_of(run)
    ridge = 0.01 * (x**2).sum(0).mean() if method == "ranpac" else 0.1
    expected = Ridge(alpha=ridge, fit_intercept=False, solver="cholesky", tol=1e-12).fit(x, np.eye(6)[y]).coef_
    weight, bias = head(run)
    np.testing.assert_allclose(weight, expected, rtol=1e-8, atol=1e-8)
    assert not bias.any()


@pytest.mark.parametrize("method", METHODS)
def test_the_network_predicts_with_the_head(method: str) -> None:
    run, _ = run_of(method)
    x, _ = data_of(run)
    weight, bias = head(run)
    rows = torch.cat([task.rows for task in run.tasks])
    logits = run.learner.logits(rows).numpy()
    np.testing.assert_allclose(logits, x @ weight.T + bias, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_classes_not_seen_yet_are_never_predicted(method: str) -> None:
    given = {"projection_size": SIZE} if method in PROJECTED else {}
    config = tiny_config("class_il_union", strategy=method, epochs_per_task=1, network="means_of_parts", **given)
    run = ContinualRun(config, tiny_frames("class_il_union"))
    run.advance()
    rows = torch.cat([task.rows for task in run.tasks])
    assert set(run.learner.logits(rows).argmax(1).tolist()) <= {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_a_trainable_network_learns_from_the_first_task_alone(method: str) -> None:
    given = {"projection_size": SIZE} if method in PROJECTED else {}
    config = tiny_config("class_il_union", strategy=method, epochs_per_task=2, **given)
    run = ContinualRun(config, tiny_frames("class_il_union"))
    begun = run.learner.weights()
    run.advance()
    run.advance()
    first = run.learner.weights()
    run.run()
    last = run.learner.weights()
    own = {"ranpac": "linear2.2", "acil": "linear2.2", "ts_acl": "head.2"}.get(method, "linear2")
    of_head = [f"{own}.weight", f"{own}.bias"]
    for name in last:
        if name in of_head:
            assert not torch.equal(first[name], last[name])
        else:
            assert torch.equal(first[name], last[name])
    convolution = "body.conv1.weight" if method == "ts_acl" else "conv1.weight"
    assert not torch.equal(begun[convolution], first[convolution])


def test_ts_acl_sees_the_mean_over_time_of_what_every_convolution_after_the_first_sees() -> None:
    run, _ = run_of("ts_acl")
    weights = run.learner.weights()
    rows = run.tasks[0].rows
    frames = run.learner.bank.gather(rows).view(len(rows), 1, -1).double()
    convolutions = [weights[f"body.0.0.{place}.{kind}"].double() for place in (0, 2) for kind in ("weight", "bias")]
    inner = nn.functional.conv1d(frames, *convolutions[:2], stride=4).relu()
    last = nn.functional.conv1d(inner, *convolutions[2:], stride=4).relu()
    seen = torch.cat([inner.mean(2), last.mean(2)], dim=1) @ weights["head.0.weight"].double().T
    np.testing.assert_allclose(data_of(run)[0][: len(rows)], seen.relu().numpy(), rtol=1e-4, atol=1e-5)
