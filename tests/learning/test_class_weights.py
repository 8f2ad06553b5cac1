"""Balanced weights against scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clops_sweep import ContinualRun
from clops_sweep.learning.class_weights import balanced
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning import class_balance


def drawn(kind: str, seed: int) -> Any:
    stream = np.random.default_rng(seed)
    n, outputs = int(stream.integers(2, 60)), int(stream.integers(2, 6))
    if kind == "softmax":
        return np.eye(outputs, dtype=np.float32)[stream.integers(0, 1 + seed % outputs, n)]
    share = stream.random(1 if kind == "binary" else outputs) ** 2
    return (stream.random((n, len(share))) < share).astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
def test_weights_are_those_of_scikit_learn(kind: Any, seed: int) -> None:
    targets = drawn(kind, seed)
    found = balanced(kind, targets)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, class_balance.balanced(targets, kind), rtol=1e-6)
    assert found.mean(dtype=np.float64) == pytest.approx(1, rel=1e-6)


def test_a_balanced_task_is_trained_as_without_weights() -> None:
    """Weights of 1 change no bit of a run."""
    config, frames = tiny_config("class_il", strategy="er"), tiny_frames("class_il")
    targets = [task.train.targets for task in ContinualRun(config, frames).scenario.tasks]
    assert all(of_task.mean() == 0.5 for of_task in targets)
    plain, weighted = (
        ContinualRun(it, frames).run().curves["loss"].tolist()
        for it in (config, config.replace(class_weights="balanced"))
    )
    assert plain == weighted
