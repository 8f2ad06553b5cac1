"""Steps that are repeated from a record: the same numbers as steps that are computed as they come, whatever they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clops_sweep import ContinualRun, native
from clops_sweep.learning.batches import Batch, Instances
from clops_sweep.learning.beta import TaskInstanceParameters
from clops_sweep.learning.captured import CapturedSteps
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.paper_learner import PaperLearner
from clops_sweep.learning.recorded import RecordedSteps
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

CPU = torch.device("cpu")
ROWS, COLUMNS = 4, 6


def as_they_come() -> CapturedSteps:
    """In the place of `RecordedSteps`: on a CPU nothing is captured."""
    return CapturedSteps(CPU)


# What a step may be made of: from two [4, 6] tensors, of which it may change the first, to a third.
OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": lambda x, y: x + y,
    "scaled difference": lambda x, y: torch.sub(x, y, alpha=3),
    "number on the left": lambda x, y: 2 - x * y,
    "in place": lambda x, y: x.mul_(0.5).add_(y),
    "in place on a view": lambda x, y: x[1:3].sub_(y[0]).new_zeros(ROWS, COLUMNS) + x,
    "into a view": lambda x, y: torch.mul(x[:, :3], y[:, 3:], out=x[:, 3:]).repeat(1, 2),
    "transposed": lambda x, y: (x.t() @ y).sum(1).expand(ROWS, COLUMNS) * y,
    "copied where it cannot be viewed": lambda x, y: x.t().reshape(ROWS, COLUMNS) - y,
    "several results": lambda x, y: torch.sort(x, dim=1)[0] + torch.topk(y, 2, dim=1)[1][:, :1],
    "a list of arguments": lambda x, y: torch.cat([x[:, :3], y[:, 3:]], dim=1),
    "a choice": lambda x, y: torch.where(x > 0, y, 0.25),
    "allocated": lambda x, y: torch.empty_like(x).copy_(y),
    "filled": lambda x, y: torch.zeros_like(x).scatter_add_(0, (y > 0).to(torch.int64), x),
    "from nothing": lambda x, y: torch.arange(COLUMNS, dtype=torch.float32) * x,
    "another type": lambda x, y: x.to(torch.float64).sum(0).to(torch.float32) + y,
    "looked up": lambda x, y: x.index_select(0, torch.argmax(y, dim=0)[:ROWS]),
    "normalized": lambda x, y: torch.native_batch_norm(x, y[0], y[1], None, None, True, 0.1, 1e-5)[0],
    "clamped": lambda x, y: torch.tanh(x).clamp_min_(0) + torch.maximum(x, y),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_whatever_a_step_does_it_does_again(program: list[tuple[str, int, int]]) -> None:
    def final(steps: RecordedSteps | CapturedSteps) -> tuple[torch.Tensor, torch.Tensor]:
        kept = torch.linspace(-2, 2, ROWS * COLUMNS).view(ROWS, COLUMNS)
        given, total = torch.empty(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS)

        def step() -> None:
            values = [kept, given + 1]
            for name, first, second in program:
                values.append(OPERATIONS[name](values[first % len(values)], values[second % len(values)]))
            total.add_(torch.tanh(values[-1]))
            kept.copy_(torch.tanh(kept - 0.1 * values[-1]))

        for call in range(6):
            given.copy_(torch.cos(call + kept))
            steps("key", step)
        return kept, total

    for found, expected in zip(final(RecordedSteps()), final(as_they_come()), strict=True):
        assert torch.equal(found, expected)


def test_from_the_third_call_under_a_key_no_python_is_called() -> None:
    steps, called = RecordedSteps(), []
    counts = torch.zeros(2)

    def step(key: int) -> Callable[[], None]:
        def count() -> None:
            called.append(key)
            counts[key] += 1

        return count

    for _ in range(5):
        steps("first", step(0))
    steps("second", step(1))
    assert called == [0, 0, 1]
    assert counts.tolist() == [5, 1]


@pytest.mark.parametrize("kind", ["class_il", "time_il", "domain_il"])
@pytest.mark.parametrize("strategy", ["clops", "finetune"])
def test_a_recorded_run_is_the_same_bit_for_bit(strategy: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    config = tiny_config(kind, strategy=strategy, epochs_per_task=4, batch_size=5)
    configs, frames = [config, config.replace(seed=4)], tiny_frames(kind, tasks=2)
    recorded = ContinualRun(configs, frames).run()
    monkeypatch.setattr("clops_sweep.learning.paper_learner.RecordedSteps", as_they_come)
    assert result_difference(recorded, ContinualRun(configs, frames).run(), ()) is None


@pytest.mark.parametrize("between", ["single steps", "another beta", "no beta", "another task", "a restored state"])
def test_what_happens_between_epochs_is_not_missed(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> torch.Tensor:
        learner = PaperLearner([0, 1], "binary", 1, 1e-3, FrameBank(tiny_frames("class_il"), CPU))
        rows = torch.arange(20).expand(2, -1)
        tasks = [
            Instances(rows, (rows % 2)[:, :, None].float()),
            Instances(rows + 3, (rows % 3 > 0)[:, :, None].float()),
        ]
        betas = [TaskInstanceParameters(20, [10.0, 1.0], [0.1, 0.1], CPU) for _ in range(2)]
        keys = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
        state = {name: value.clone() for name, value in (("parameters", learner.parameters.flat),)}

        def train(task: int = 0, beta: TaskInstanceParameters | None = betas[0]) -> None:
            for _ in range(3):
                learner.train_epoch(tasks[task], None, torch.randperm(20, generator=order).expand(2, -1), 4, keys, beta)

        order = torch.Generator().manual_seed(0)
        train()
        if between == "single steps":
            learner.announce(2)
            batch = Batch(rows[:, :4], tasks[0].targets[:, :4], torch.full((2, 4), 0.25), torch.arange(4))
            for _ in range(2):
                learner.train_step(batch, keys)
        elif between == "another beta":
            train(beta=betas[1])
        elif between == "no beta":
            train(beta=None)
        elif between == "another task":
            train(task=1)
        else:
            learner.restore({**learner.state(), **state})
        train()
        return torch.cat([learner.parameters.flat, *(beta.values.flatten() for beta in betas)])

    found = trained()
    monkeypatch.setattr("clops_sweep.learning.paper_learner.RecordedSteps", as_they_come)
    assert torch.equal(found, trained())
