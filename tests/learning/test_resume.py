"""A run that stops after any epoch and resumes from its saved state ends with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clops_sweep import ContinualRun
from clops_sweep.learning.lockstep import computed_alone
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference, saved_and_loaded
from tests.learning.methods import CASES, MOSTLY_AT_NIGHT, one_kind


@pytest.mark.parametrize("epochs", [(2, 3), pytest.param(range(7), marks=pytest.mark.nightly)], ids=["two", "all"])
@pytest.mark.parametrize(("strategy", "kind"), CASES)
def test_resumed_behind_an_epoch_and_run_to_the_end(strategy: str, kind: str, epochs: Sequence[int]) -> None:
    """At the end of a task and in the middle of one."""
    seeds = (0,) if computed_alone(strategy) else (0, 5)
    configs = [tiny_config(kind, strategy=strategy, seed=seed) for seed in seeds]
    frames = tiny_frames(kind)
    run, states = ContinualRun(configs, frames), []
    while not run.finished:
        states.append(saved_and_loaded(run.state()))
        run.advance()
    states.append(saved_and_loaded(run.state()))
    expected = run.result()
    assert len(states) == 7
    for epoch in epochs:
        resumed = ContinualRun(configs, frames)
        resumed.restore(states[epoch])
        found = result_difference(expected, resumed.run())
        assert found is None, found


@pytest.mark.parametrize("strategy", [it for it in MOSTLY_AT_NIGHT if not computed_alone(it.values[0])])
def test_five_runs_in_lockstep_are_those_of_each_alone(strategy: str) -> None:
    kind = one_kind(strategy)
    configs = [tiny_config(kind, strategy=strategy, seed=seed) for seed in (7, 1, 4, 9, 2)]
    frames = tiny_frames(kind, tasks=2)
    together = ContinualRun(configs, frames).run()
    for config in (configs[0], configs[4]):
        alone = ContinualRun(config, frames).run()
        found = result_difference(alone, together.of(config.run_id(frames.data_hash)), ignore=["lockstep"])
        assert found is None, found


def test_failures_of_gems_solver_are_counted_and_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "clops_sweep.learning.strategies.projection._solve", lambda *_: None
    )  # a solver that always fails
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
