"""Every step of the examples in docs/own_method.md on native kernels, against float64 autograd."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.func import functional_call

from clops_sweep import ContinualRun, native
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning import losses
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.networks.dropout import PaperDropout
from clops_sweep.learning.networks.network import PaperNetwork, parameter_shapes
from clops_sweep.testing import tiny_config, tiny_frames

PAGE = (Path(__file__).parents[3] / "docs" / "own_method.md").read_text()
METHODS = ("my_derpp", "my_ewc", "my_lwf", "my_replay")
STEPS = 24


class Double(Passes):
    """The paper's network in float64, with the parameters and dropout masks of a native run."""

    def __init__(self, learner: Any, at: Passes) -> None:
        super().__init__(learner)
        self.__dict__ |= {name: copy.copy(vars(at)[name]) for name in ("_keys_of", "_keys", "_drawn")}
        self.parameters = learner.parameters.flat.double().requires_grad_()
        shapes = parameter_shapes(learner.outputs)
        ends = [0, *torch.tensor([torch.Size(shape).numel() for shape in shapes.values()]).cumsum(0).tolist()]
        slices = zip(shapes.items(), pairwise(ends), strict=True)
        self._named = {name: self.parameters[a:b].view(shape) for (name, shape), (a, b) in slices}
        self._module = PaperNetwork(1, 2500, learner.outputs).double()
        for number, values in enumerate(learner.statistics):
            norm = getattr(self._module, f"norm{number % 3 + 1}")
            (norm.running_mean if number < 3 else norm.running_var).copy_(values)

    def _train(self, x: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, number: int) -> torch.Tensor:
        self._module.train()
        with PaperDropout(keys[0], draws):
            return functional_call(self._module, self._named, (x.double(),))  # type: ignore[no-any-return]

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        return functional_call(self._module.eval(), self._named, (x.double(),))  # type: ignore[no-any-return]

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return (weights * losses.instance_losses(self._kind, logits, y.double())).sum()


@pytest.fixture
def examples() -> Iterator[None]:
    before = set(STRATEGIES.added)
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:4]), {})
    yield
    for name in set(STRATEGIES.added) - before:
        STRATEGIES.forget(name)


@pytest.mark.skipif(not native.available(), reason="the native kernels are not built")
@pytest.mark.parametrize("scenario", ["class_il", "class_il_union"])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.usefixtures("examples")
def test_each_gradient_is_that_of_float64(name: str, scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"my_size": 9, "my_places": 9, "my_strength": 50.0}
    config = tiny_config(scenario, strategy=name, learning_rate=3e-3, epochs_per_task=2)
    config = config.replace(**{key: value for key, value in settings.items() if key in config.options})
    run = ContinualRun(config, tiny_frames(scenario))
    strategy: Any = run._strategy
    learner, steps, loss = run._training.learner, strategy._steps, strategy.loss
    expected: list[torch.Tensor] = []
    distances: list[float] = []

    def in_double(batch: Any) -> torch.Tensor:
        """Return the gradient in float64 before the same step, and undo the step's draws and offers."""
        passes, rng, replayed = steps.passes, copy.deepcopy(steps.rng), steps.replayed.clone()
        memory = getattr(strategy, "memory", None)
        steps.passes = double = Double(learner, passes)
        found = double.gradient(loss(batch))
        assert found is not None
        steps.passes, steps.rng, steps.waiting = passes, rng, []
        steps.replayed.copy_(replayed)
        if memory is not None:
            memory._waiting = []
        return found

    def compared(batch: Any) -> torch.Tensor:
        expected.append(in_double(batch))
        return loss(batch)  # type: ignore[no-any-return]

    def apply(gradient: torch.Tensor) -> None:
        distances.append(float((gradient - expected[-1]).abs().max() / expected[-1].abs().max()))
        type(learner).apply(learner, gradient)

    monkeypatch.setattr(strategy, "loss", compared, raising=False)
    monkeypatch.setattr(learner, "apply", apply)
    monkeypatch.setattr(type(strategy), "not_state", (*type(strategy).not_state, "loss"))
    while not run.finished and len(distances) < STEPS:
        run.advance()
    assert run._task >= 1  # later than the first task
    assert max(distances) < 1e-5
