"""Tests of the choices of tuned spaces."""

from clops_sweep import OptunaSearch, RunConfig, SearchSpace
from clops_sweep.planning.searches import Choice, Tuning


def test_the_reported_space_is_built_once() -> None:
    """A large grid takes a second to build, and the launch, the plan and the outcome all read it."""
    search = OptunaSearch(sampler="grid", methods={"clops": {"learning_rate": [1e-3, 1e-4]}})
    space = SearchSpace("tuned", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=2, search=search)
    tuning = Tuning(space.tuned, (Choice("clops", "made", {"learning_rate": 1e-3}),))
    assert tuning.reported is not None
    assert tuning.reported is tuning.reported
