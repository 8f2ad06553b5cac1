"""Steps that a GPU captures and replays: here their kernels are recorded and replayed without Python between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clops_sweep import ContinualRun, native
from clops_sweep.learning.captured import CapturedSteps
from clops_sweep.learning.projection_on_device import project_together
from clops_sweep.learning.recorded import RecordedSteps
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

HOST = ("_local_scalar_dense", "nonzero", "is_nonzero", "lift", "equal", "unique", "masked_select")
"""Operations that wait for a value on the host, or bring one from there, and so cannot be captured."""


class Replayed(RecordedSteps):
    """In the place of `CapturedSteps`: replays on a CPU, looking at what is replayed."""

    replays: ClassVar[Counter[Hashable]] = Counter()

    def __call__(self, key: Hashable, function: Callable[[], None]) -> None:
        with Names() as names:
            super().__call__(key, function)
        assert len(names.seen) > 50
        assert not [name for name in names.seen if any(part in name for part in HOST)]
        Replayed.replays[key] += key in self._recorded


class Names(TorchDispatchMode):
    """The operations that are computed meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        self.seen.append(operation.name())
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        *(("clops", "domain_il"), ("gem", "class_il"), ("mir", "class_il"), ("finetune", "time_il")),
        *(("er_ace", "time_il"), ("derpp", "time_il"), ("agem", "class_il")),
    ],
)
def test_replayed_steps_are_the_same_run_bit_for_bit(strategy: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    # What a GPU uses, since its steps may not wait for the solver on the host.
    monkeypatch.setattr("clops_sweep.learning.strategies.gem.project_singly", project_together)
    config = tiny_config(kind, strategy=strategy, epochs_per_task=4, batch_size=5)
    frames = tiny_frames(kind, tasks=2)
    monkeypatch.setattr("clops_sweep.learning.paper_learner.RecordedSteps", lambda: CapturedSteps(torch.device("cpu")))
    plain = ContinualRun([config, config.replace(seed=4)], frames).run()
    Replayed.replays.clear()
    monkeypatch.setattr("clops_sweep.learning.paper_learner.CapturedSteps", lambda device: Replayed())
    monkeypatch.setattr("clops_sweep.learning.paper_learner.RecordedSteps", Replayed)
    replayed = ContinualRun([config, config.replace(seed=4)], frames).run()
    assert sum(Replayed.replays.values()) > 5
    assert result_difference(plain, replayed, ()) is None


def test_on_a_cpu_steps_are_ordinary_calls() -> None:
    calls = []
    captured = CapturedSteps(torch.device("cpu"))
    for _ in range(5):
        captured("key", lambda: calls.append(1))
    assert len(calls) == 5
