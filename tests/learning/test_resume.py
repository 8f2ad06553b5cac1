"""A run that stops after any epoch and resumes from its saved state ends with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clops_sweep import ContinualRun
from clops_sweep.learning.strategies import projection
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference, saved_and_loaded
from tests.helpers.at_night import mostly_at_night
from tests.learning.methods import CASES


def is_core(case: tuple[str, str]) -> bool:
    """Whether a case is in the core suite: every strategy in one scenario, two also in another."""
    name, kind = case
    return kind not in ("domain_il", "time_il") or (kind == "time_il" and name in ("clops", "gem"))


@pytest.mark.parametrize("epochs", [(2, 3), pytest.param(range(7), marks=pytest.mark.nightly)], ids=["two", "all"])
@pytest.mark.parametrize(("strategy", "kind"), mostly_at_night(CASES, is_core))
def test_resumed_behind_an_epoch_and_run_to_the_end(strategy: str, kind: str, epochs: Sequence[int]) -> None:
    """At the end of a task and in the middle of one."""
    config, frames = tiny_config(kind, strategy=strategy), tiny_frames(kind)
    run, states = ContinualRun(config, frames), []
    while not run.finished:
        states.append(saved_and_loaded(run.state()))
        run.advance()
    states.append(saved_and_loaded(run.state()))
    expected = run.result()
    assert len(states) == 7
    for epoch in epochs:
        resumed = ContinualRun(config, frames)
        resumed.restore(states[epoch])
        found = result_difference(expected, resumed.run())
        assert found is None, found


def _fails(*problem: object) -> None:
    raise ValueError("constraints are inconsistent, no solution")


def test_failures_of_gems_solver_are_counted_and_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "solve_qp", _fails)
    config, frames = tiny_config("class_il", strategy="gem"), tiny_frames("class_il")
    run = ContinualRun(config, frames)
    for _ in range(5):
        run.advance()
    resumed = ContinualRun(config, frames)
    resumed.restore(saved_and_loaded(run.state()))
    failures = run.run().runs["projection_failures"].item()
    assert failures > 0
    assert run.result().runs["projections"].item() == failures
    assert resumed.run().runs["projection_failures"].item() == failures
