"""Whole epochs of the kernels against their single steps, and runs without the extension."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from clops_sweep import native
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.testing.watch import difference

Make = Callable[..., Any]


@pytest.mark.parametrize("penalised", ["not", "by importance", "by importance, with a path"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_epoch_is_its_steps(weighted: bool, penalised: str, learner: Make, batch: Make) -> None:
    """`train_epoch` of the kernels against that of `Learner` with their single steps: bit for bit."""
    content, keys = batch("binary", 37)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(37, generator=torch.Generator().manual_seed(1)) + 0.5
    task = Instances(content.rows, content.targets).weighted(weights if weighted else None)
    order = torch.randperm(37, generator=generator)
    whole, steps = [learner("binary") for _ in range(2)]
    betas = [TaskInstanceParameters(37, 10.0, 1e-2, whole.bank.device) for _ in range(2)]
    importance, centre, path = torch.randn(3, whole.parameters.flat.numel(), generator=generator)
    paths = [path.clone() if "path" in penalised else None for _ in range(2)]
    penalties = [None if penalised == "not" else Penalty(importance.square(), centre, each) for each in paths]
    for _ in range(2):  # in the first, a step of Adam for beta depends on no loss's size
        whole.train_epoch(task, None, order, 11, keys, betas[0], penalties[0])
        Learner.train_epoch(steps, task, None, order, 11, keys, betas[1], penalties[1])
    assert torch.equal(whole.parameters.flat, steps.parameters.flat)
    assert difference(paths[0], paths[1]) is None
    assert (paths[0] is None) or not torch.equal(paths[0], path)
    torch.testing.assert_close(betas[0].values, betas[1].values, rtol=0, atol=1e-7)


def test_without_the_extension_it_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(native.ENVIRONMENT, raising=False)
    monkeypatch.setitem(sys.modules, "clops_sweep.native._kernels", None)  # an import fails
    spec = importlib.util.spec_from_file_location("clops_sweep.native", native.__file__)
    assert spec is not None
    assert spec.loader is not None
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    with caplog.at_level(logging.WARNING):
        assert without.available() == ()
        assert without.chosen() is None
        assert without.chosen() is None
    assert [record.getMessage() for record in caplog.records].count(without.why_missing()) == 1
