"""Heads without gradients against scikit-learn and closed forms in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid
from torch import nn

from clops_sweep import ContinualRun, UsageError, network
from clops_sweep.data.frames import FrameSet
from clops_sweep.learning.strategies.closed_form import ClosedForm
from clops_sweep.testing import tiny_config, tiny_frames

METHODS = ("ncm", "slda", "ranpac", "acil")
SIZE = 60


@network("means_of_parts")
def means_of_parts(channels: int, samples: int, outputs: int) -> nn.Module:
    """Fixed features, as an encoder's are: means of the absolute signal in 25 stretches."""

    class Means(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.abs().flatten(1).unflatten(1, (25, -1)).mean(2)

    return nn.Sequential(Means(), nn.Linear(25, outputs))


@network("convolution_last")
def convolution_last(channels: int, samples: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(channels, outputs, 5), nn.AdaptiveAvgPool1d(1), nn.Flatten())


def run_of(method: str, order: Any = "sequential", **settings: Any) -> tuple[ContinualRun, FrameSet]:
    given = {"network": "means_of_parts", "epochs_per_task": 1, "task_order": order} | settings
    if method in ("ranpac", "acil"):
        given = {"projection_size": SIZE} | given
    config, frames = tiny_config("class_il_union", strategy=method, **given), tiny_frames("class_il_union")
    run = ContinualRun(config, frames)
    run.run()
    return run, frames


def data_of(run: ContinualRun) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What the head sees of all training instances, float64, and their classes."""
    strategy = run._strategy
    assert isinstance(strategy, ClosedForm)
    seen = [strategy.head.features(0, task.rows[0]).numpy() for task in run._training.tasks]
    return np.concatenate(seen), np.concatenate([task.targets[0].argmax(1).numpy() for task in run._training.tasks])


def head(run: ContinualRun) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The solution in float64."""
    strategy = run._strategy
    assert isinstance(strategy, ClosedForm)
    weight, bias = strategy.solve(strategy.statistics[0])
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


@pytest.mark.parametrize("method", ["ranpac", "acil"])
def test_after_all_tasks_the_head_is_the_ridge_solution_on_all_data(method: str) -> None:
    run, _ = run_of(method)
    x, y = data_of(run)
    ridge = 0.1 if method == "acil" else 0.01 * (x**2).sum(0).mean()
    expected = Ridge(alpha=ridge, fit_intercept=False, solver="cholesky", tol=1e-12).fit(x, np.eye(6)[y]).coef_
    weight, bias = head(run)
    np.testing.assert_allclose(weight, expected, rtol=1e-8, atol=1e-8)
    assert not bias.any()


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_tasks_does_not_matter(method: str) -> None:
    first, second = (head(run_of(method, order)[0]) for order in ("sequential", (2, 0, 1)))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_the_network_predicts_with_the_head(method: str) -> None:
    run, _ = run_of(method)
    x, _ = data_of(run)
    weight, bias = head(run)
    rows = torch.cat([task.rows for task in run._training.tasks], dim=1)
    logits = run._training.learner.logits(rows)[0].numpy()
    np.testing.assert_allclose(logits, x @ weight.T + bias, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_classes_not_seen_yet_are_never_predicted(method: str) -> None:
    given = {"projection_size": SIZE} if method in ("ranpac", "acil") else {}
    config = tiny_config("class_il_union", strategy=method, epochs_per_task=1, network="means_of_parts", **given)
    run = ContinualRun(config, tiny_frames("class_il_union"))
    run.advance()
    rows = torch.cat([task.rows for task in run._training.tasks], dim=1)
    assert set(run._training.learner.logits(rows)[0].argmax(1).tolist()) <= {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_a_trainable_network_learns_from_the_first_task_alone(method: str) -> None:
    given = {"projection_size": SIZE} if method in ("ranpac", "acil") else {}
    config = tiny_config("class_il_union", strategy=method, epochs_per_task=2, **given)
    run = ContinualRun(config, tiny_frames("class_il_union"))
    begun = run._training.learner.weights(0)
    run.advance()
    run.advance()
    first = run._training.learner.weights(0)
    run.run()
    last = run._training.learner.weights(0)
    of_head = [name for name in last if name.startswith("linear2") and not name.startswith("linear2.0")]
    for name in last:
        if name in of_head:
            assert not torch.equal(first[name], last[name])
        else:
            assert torch.equal(first[name], last[name])
    assert not torch.equal(begun["conv1.weight"], first["conv1.weight"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epochs", [1, 3])
def test_resumed_and_in_lockstep_the_numbers_are_the_same(method: str, epochs: int) -> None:
    given: dict[str, Any] = {"strategy": method, "epochs_per_task": 2}
    if method in ("ranpac", "acil"):
        given |= {"projection_size": SIZE}
    configs = [tiny_config("class_il_union", seed=seed, **given) for seed in (0, 1)]
    frames = tiny_frames("class_il_union")
    alone = [ContinualRun(config, frames).run().r_matrix for config in configs]
    begun = ContinualRun(configs, frames)
    for _ in range(epochs):
        begun.advance()
    resumed = ContinualRun(configs, frames)
    resumed.restore(begun.state())
    found = resumed.run()
    for config, expected in zip(configs, alone, strict=True):
        assert found.of(config.run_id(frames.data_hash)).r_matrix.equals(expected)


def test_memory_is_the_statistics() -> None:
    run, _ = run_of("slda")
    row = run.result().runs.iloc[0]
    assert (row["stores"], row["memory_instances"], row["memory_bytes"]) == (
        "statistics",
        0,
        8 * (6 + 6 * 25 + 25 * 25),
    )


def test_bad_input() -> None:
    with pytest.raises(UsageError, match=r"network 'convolution_last': has no last nn\.Linear with 6 outputs"):
        run_of("ncm", network="convolution_last")
    with pytest.raises(UsageError, match="needs one output a class"):
        ContinualRun(tiny_config("class_il", strategy="slda"), tiny_frames("class_il"))
