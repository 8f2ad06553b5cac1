"""The paper's network as a module: equal to the native kernels up to rounding."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from clops_sweep import ContinualRun, RunConfig, native
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.lockstep import computed_alone
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.methods import SOME, one_kind

pytestmark = pytest.mark.skipif(not native.available(), reason="the native kernels are not built here")


def run_of(configs: list[RunConfig], backend: str, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """Compute a run by native kernels, by modules one after another, or by modules in lockstep."""
    with monkeypatch.context() as patched:
        if not backend.startswith("native"):
            patched.setenv(native.ENVIRONMENT, "off")
        if backend == "torch-stacked":
            patched.setattr("clops_sweep.learning.run.make_learner", partial(make_learner, together=True))
        found = ContinualRun(configs, tiny_frames(configs[0].scenario, tasks=2)).run()
    assert set(found.runs["backend"]) == {backend}
    return found


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(it, marks=() if it in SOME else pytest.mark.nightly)
        for it in STRATEGIES
        if "projection_size" not in STRATEGIES.options(it) and not computed_alone(it)
    ],
)
def test_every_strategy(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch on each of two tasks, in float32: the same scores, the same instances stored and replayed."""
    config = tiny_config(one_kind(strategy), strategy=strategy, epochs_per_task=1, learning_rate=1e-3)
    configs = [config, config.replace(seed=4)]
    expected = run_of(configs, f"native-{native.chosen()}", monkeypatch)
    for backend in ("torch-module", "torch-stacked"):
        found = run_of(configs, backend, monkeypatch)
        for table, column in (("curves", "auc"), ("curves", "loss"), ("r_matrix", "auc"), ("r_matrix", "accuracy")):
            ours, theirs = (getattr(result, table)[column] for result in (found, expected))
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=f"{backend}: {table}.{column}")
        for column in ("stored", "times_replayed"):
            assert found.instances[column].equals(expected.instances[column])
        np.testing.assert_allclose(found.instances["s"], expected.instances["s"], rtol=0, atol=1e-4)
