"""No validation or test instance, and no instance of a later task, is ever trained on, stored or scored."""

from __future__ import annotations

import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.data.frames import TRAINING
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.metrics.evaluation import Evaluation, Evaluator
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.at_night import mostly_at_night
from tests.learning.methods import CASES

KINDS = ("class_il", "time_il", "domain_il")


class Watcher:
    """Records the rows that every frame bank returns, by phase of the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evaluating = False
        self.rows: set[int] = set()
        for name in ("gather", "frames"):
            self._record(name, monkeypatch)
        evaluate = Evaluator.evaluate

        def evaluated(evaluator: Evaluator, seen: int | None = None) -> Evaluation:
            self.evaluating = True
            try:
                return evaluate(evaluator, seen)
            finally:
                self.evaluating = False

        monkeypatch.setattr(Evaluator, "evaluate", evaluated)

    def _record(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(FrameBank, name)

        def returned(bank: FrameBank, rows: torch.Tensor) -> torch.Tensor:
            if not self.evaluating:
                self.rows.update(rows.flatten().tolist())
            return real(bank, rows)

        monkeypatch.setattr(FrameBank, name, returned)


ALL = [*CASES, *((f"clops {name}", kind) for name in ACQUISITION_FUNCTIONS for kind in KINDS)]


@pytest.mark.parametrize(
    ("strategy", "kind"),
    mostly_at_night(ALL, lambda case: case[1] != "domain_il" and (case[1] != "time_il" or case[0] in ("clops", "gem"))),
)
def test_frames_outside_evaluation_are_training_frames_of_tasks_so_far(
    strategy: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # every frame must be gathered where it is recorded
    monkeypatch.setenv("CLOPS_NATIVE", "off")
    name, _, acquisition = strategy.partition(" ")
    config = tiny_config(kind, strategy=name, **({"acquisition": acquisition} if acquisition else {}))
    frames = tiny_frames(kind, tasks=2)
    watcher = Watcher(monkeypatch)
    run = ContinualRun(config, frames)
    seen: set[int] = set()
    while not run.finished:
        watcher.rows.clear()
        trained_on = run.advance().task
        allowed = run.scenario.tasks if name == "multitask" else run.scenario.tasks[:trained_on]
        assert watcher.rows <= {row for task in allowed for row in task.train.rows.tolist()}
        assert all(frames.split[row] == TRAINING for row in watcher.rows)
        seen |= watcher.rows
    everything = {row for task in run.scenario.tasks for row in task.train.rows.tolist()}
    assert seen <= everything if name == "gdumb" else seen == everything  # it trains only on its memory
    assert set(run.result().instances["instance"]) == everything
