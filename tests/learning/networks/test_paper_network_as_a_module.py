"""The paper's network as a module: equal to the native kernels up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from clops_sweep import ContinualRun, RunConfig, native
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.methods import SOME, one_kind

pytestmark = pytest.mark.skipif(not native.available(), reason="the native kernels are not built here")


def run_of(config: RunConfig, backend: str, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """Compute a run by native kernels or by a module."""
    with monkeypatch.context() as patched:
        if not backend.startswith("native"):
            patched.setenv(native.ENVIRONMENT, "off")
        found = ContinualRun(config, tiny_frames(config.scenario, tasks=2)).run()
    assert set(found.runs["backend"]) == {backend}
    return found


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(it, marks=() if it in SOME else pytest.mark.nightly)
        for it in STRATEGIES
        if "projection_size" not in STRATEGIES.options(it)
    ],
)
def test_every_strategy(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch on each of two tasks, in float32: the same scores, the same instances stored and replayed."""
    config = tiny_config(one_kind(strategy), strategy=strategy, epochs_per_task=1, learning_rate=1e-3)
    expected = run_of(config, f"native-{native.chosen()}", monkeypatch)
    found = run_of(config, "torch-module", monkeypatch)
    for table, column in (("curves", "auc"), ("curves", "loss"), ("r_matrix", "auc"), ("r_matrix", "accuracy")):
        ours, theirs = (getattr(result, table)[column] for result in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=f"{table}.{column}")
    for column in ("stored", "times_replayed"):
        assert found.instances[column].equals(expected.instances[column])
    np.testing.assert_allclose(found.instances["s"], expected.instances["s"], rtol=0, atol=1e-4)
