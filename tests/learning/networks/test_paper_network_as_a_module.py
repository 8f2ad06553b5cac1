"""The paper's network as a module: equal to the native kernels up to rounding."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, RunConfig, native
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK, STRATEGIES
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.lockstep import computed_alone
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import difference
from tests.learning.methods import one_kind

CPU = torch.device("cpu")
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
    "strategy", [it for it in STRATEGIES if "projection_size" not in STRATEGIES.options(it) and not computed_alone(it)]
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


def test_a_hundred_steps() -> None:
    frames, seeds = tiny_frames("time_il"), (3, 8)
    bank, variant = FrameBank(frames, CPU), native.available()[0]
    learners: list[Learner] = [
        NativeLearner(seeds, "softmax", 4, 1e-4, bank, variant),
        ModuleLearner(seeds, "softmax", 4, 1e-4, bank, PAPER_NETWORK),
    ]
    start = learners[0].parameters.flat.clone()
    stream = torch.Generator().manual_seed(0)
    for step in range(100):
        rows = torch.randint(0, len(frames), (2, 16), generator=stream)
        targets = torch.eye(4)[torch.from_numpy(frames.labels)[rows]]
        batch = Batch(rows, targets, torch.full((2, 16), 1 / 16), torch.arange(16 * step, 16 * step + 16))
        losses = [learner.train_step(batch, streams.keys(seeds, "test")).clone() for learner in learners]
        torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-5)
    natives, modules = (learner.parameters.views for learner in learners)
    assert difference(learners[0].parameters.flat, start) is not None
    for name, view in natives.items():
        torch.testing.assert_close(modules[name], view, rtol=0, atol=1e-4)
        if name.startswith("conv") and name.endswith("bias"):
            assert torch.equal(modules[name], view), "batch statistics cancel it, so no step moves it"
