"""Steps that a GPU captures and replays: here their kernels are recorded and replayed without Python between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from clops_sweep import ContinualRun, native
from clops_sweep.learning.captured import CapturedSteps
from clops_sweep.learning.projection_on_device import project_together
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

HOST = ("_local_scalar_dense", "nonzero", "is_nonzero", "lift", "equal", "unique", "masked_select")
"""Operations that wait for a value on the host, or bring one from there, and so cannot be captured."""


class Recorded:
    """As `CapturedSteps` on a GPU: the third call under a key is recorded, those that follow are replays of it."""

    replays: ClassVar[Counter[Hashable]] = Counter()

    def __init__(self, device: torch.device) -> None:
        del device
        self._calls: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, Callable[[], Any]] = {}

    def __call__(self, key: Hashable, function: Callable[[], None]) -> None:
        self._calls[key] += 1
        if self._calls[key] <= 2:
            function()
        elif key in self._graphs:
            Recorded.replays[key] += 1
            self._graphs[key]()
        else:
            graph = make_fx(lambda: function(), tracing_mode="real")()
            names = [node.target.name() for node in graph.graph.nodes if hasattr(node.target, "name")]
            assert len(names) > 50
            assert not [name for name in names if any(part in name for part in HOST)]
            self._graphs[key] = graph


@pytest.mark.parametrize(
    ("strategy", "kind"), [("clops", "domain_il"), ("gem", "class_il"), ("mir", "class_il"), ("finetune", "time_il")]
)
def test_replayed_steps_are_the_same_run_bit_for_bit(strategy: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    # What a GPU uses, since its steps may not wait for the solver on the host.
    monkeypatch.setattr("clops_sweep.learning.strategies.gem.project_singly", project_together)
    config = tiny_config(kind, strategy=strategy, epochs_per_task=4, batch_size=5)
    frames = tiny_frames(kind, tasks=2)
    plain = ContinualRun([config, config.replace(seed=4)], frames).run()
    Recorded.replays.clear()
    monkeypatch.setattr("clops_sweep.learning.learner.CapturedSteps", Recorded)
    replayed = ContinualRun([config, config.replace(seed=4)], frames).run()
    assert sum(Recorded.replays.values()) > 5
    assert result_difference(plain, replayed, ()) is None


def test_on_a_cpu_steps_are_ordinary_calls() -> None:
    calls = []
    captured = CapturedSteps(torch.device("cpu"))
    for _ in range(5):
        captured("key", lambda: calls.append(1))
    assert len(calls) == 5
