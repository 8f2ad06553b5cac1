"""Tests of the choices of tuned spaces."""

from collections import Counter

from clops_sweep import OptunaSearch, RunConfig, SearchSpace
from clops_sweep.planning.searches import Choice, Tuning


def test_the_reported_space_is_built_once() -> None:
    """A large grid takes a second to build, and the launch, the plan and the outcome all read it."""
    search = OptunaSearch(sampler="grid", methods={"clops": {"learning_rate": [1e-3, 1e-4]}})
    space = SearchSpace("tuned", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=2, search=search)
    tuning = Tuning(space.tuned, (Choice("clops", "made", {"learning_rate": 1e-3}),))
    assert tuning.reported is not None
    assert tuning.reported is tuning.reported


METHODS = {
    "er": {"replay_ratio": [0.5, 1.0]},
    "ewc": {"ewc_strength": [1.0, 10.0]},
    "finetune": {},
    "shared": {"like": "er", "memory_division": "class_balanced"},
}
SPACE = SearchSpace(
    "tuned",
    RunConfig(),
    {"split_seed": range(3)},
    seeds=2,
    search=OptunaSearch(sampler="grid", methods=METHODS),
)


def methods_of(space: SearchSpace | None) -> Counter[str]:
    """Return the number of runs of each method."""
    return Counter() if space is None else Counter(request.labels["method"] for request in space.requests())


def test_the_configurations_chosen_so_far_are_reported_and_the_others_are_to_come() -> None:
    er, ewc = Choice("er", "made", {"replay_ratio": 0.5}), Choice("ewc", "open")
    tuning = Tuning(SPACE.tuned, (er, ewc, Choice("finetune", "none")))
    assert methods_of(tuning.reported) == {"er": 6, "finetune": 6, "shared": 6}
    assert methods_of(tuning.to_report) == {"ewc": 6}
    assert not tuning.is_decided


def test_nothing_is_reported_before_the_first_choice_and_nothing_to_come_after_the_last() -> None:
    given = Choice("finetune", "none")
    first = Tuning(SPACE.tuned, (Choice("er", "open"), Choice("ewc", "open"), given))
    assert first.reported is None
    assert methods_of(first.to_report) == {"er": 6, "ewc": 6, "finetune": 6, "shared": 6}
    er, ewc = Choice("er", "made", {"replay_ratio": 0.5}), Choice("ewc", "made", {"ewc_strength": 1.0})
    last = Tuning(SPACE.tuned, (er, ewc, given))
    assert methods_of(last.reported) == methods_of(first.to_report)
    assert last.to_report is None
    assert last.is_decided


def test_the_grid_to_come_is_that_of_one_corner_of_the_search() -> None:
    tuning = Tuning(SPACE.tuned, (Choice("er", "open"), Choice("ewc", "open"), Choice("finetune", "none")))
    assert tuning.to_report is not None
    identities = {request.config.identity for request in tuning.to_report.requests()}
    assert len(identities) == 4 * 3 * 2
