"""Spaces that are tuned as they are written down: their two phases, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace, TuneOn, UsageError
from clops_sweep.experiment.columns import PREQUENTIAL, UNSEEN
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.search_space import Phase, TunedSpace

METHODS: dict[str, dict[str, Any]] = {
    "er": {"replay_ratio": [0.5, 1], "learning_rate": [1e-4, 1e-3]},
    "plain": {"strategy": "finetune"},
    "shared": {"like": "er", "memory_division": "class_balanced"},
}
RATE = {"learning_rate": FloatDistribution(1e-4, 1e-2)}


def grid(axes: dict[str, Any] | None = None, seeds: Any = range(2), **search: Any) -> SearchSpace:
    given = {} if "parameters" in search or "methods" in search else {"methods": METHODS}
    grid = OptunaSearch(sampler="grid", **given, **search)
    return SearchSpace("it", RunConfig(), axes or {}, seeds=seeds, search=grid)


def tuned(space: SearchSpace) -> TunedSpace:
    assert space.tuned is not None
    return space.tuned


def optuna(axes: dict[str, Any] | None = None, **search: Any) -> SearchSpace:
    return SearchSpace("it", RunConfig(), axes or {}, seeds=range(2), search=OptunaSearch(**search))


def test_a_grid_tries_every_combination_of_each_method_and_reports_one_of_each() -> None:
    space = tuned(grid({"split_seed": range(3)}, tune_on=TuneOn(splits=(7, 8), seeds=[5])))
    (study,) = space.phases
    assert study.search is not None
    assert (study.name, study.base.strategy, study.search.n_trials) == ("it_selection_er", "er", 4)
    assert [(it["split_seed"], it["seed"]) for it in study.replicates()] == [(7, 5), (8, 5)]
    points = [{"replay_ratio": ratio, "learning_rate": rate} for ratio in (0.5, 1) for rate in (0.0001, 0.001)]
    assert list(study.search.points()) == points
    chosen = {"replay_ratio": 1, "learning_rate": 1e-3}
    reported = space.reported({"er": chosen, "plain": {}})
    ordinary = {
        RunConfig(split_seed=split, seed=seed, **settings).identity
        for split in range(3)
        for seed in range(2)
        for settings in (
            {"strategy": "er"} | chosen,
            {"strategy": "finetune"},
            {"strategy": "er", "memory_division": "class_balanced"} | chosen,
        )
    }
    assert {it.config.identity for it in reported.requests()} == ordinary
    assert (reported.name, len(list(reported.requests()))) == ("it", 18)
    fields = {name: reported.tuned_fields_at({"method": name, "split_seed": 0}) for name in METHODS}
    chosen_by_er = frozenset({"replay_ratio", "learning_rate"})
    assert fields == {"er": chosen_by_er, "plain": frozenset(), "shared": chosen_by_er}


def test_the_fields_that_named_variants_of_a_parameter_set_are_tuned() -> None:
    sizes = {"small": {"batch_size": 8}, "large": {"batch_size": 16, "epochs_per_task": 3}}
    parameters = {"size": sizes, "learning_rate": [1e-4, 1e-3]}
    space = tuned(grid({"split_seed": range(3)}, parameters=parameters, tune_on=TuneOn(tasks=2)))
    reported = space.reported({"": {"batch_size": 8, "learning_rate": 1e-3}})
    assert reported.tuned_fields_at({}) == {"batch_size", "epochs_per_task", "learning_rate"}
    plain = SearchSpace("plain", RunConfig(), {"method": {"er": {"strategy": "er"}}})
    assert plain.tuned_fields_at({"method": "er"}) == frozenset()


def test_phases_and_the_reported_grid_are_kinds_of_their_own_that_are_not_declared() -> None:
    space = tuned(grid(tune_on=TuneOn(splits=(7,))))
    (phase,) = space.phases
    assert (phase.chooses_for, phase.method, phase.subject) == ("it", "er", "search space 'it': method 'er'")
    limited = replace(phase, seeds=[3])
    assert (type(limited), limited.tuned) == (Phase, None)
    reported = space.reported({"er": {"replay_ratio": 1, "learning_rate": 1e-3}, "plain": {}})
    assert (reported.search, repr(reported).partition("(")[0]) == (None, "ReportedGrid")
    with pytest.raises(UsageError, match="chooses_for"):
        SearchSpace("it", RunConfig(), chooses_for="other")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("tune_on", "splits", "seeds", "changes"),
    [
        ("same", [0, 1], (0, 1), {}),
        (TuneOn(tasks=2), [0, 1], (0, 1), {"first_tasks": 2}),
        (TuneOn(splits=(7,)), [7], (0, 1), {}),
        (TuneOn(dataset="synthetic_paper"), [0], (0, 1), {"dataset": "synthetic_paper"}),
        (TuneOn(seeds=(4,)), [0, 1], (4,), {}),
    ],
)
def test_what_is_tuned_on(tune_on: Any, splits: list[int], seeds: tuple[int, ...], changes: dict[str, Any]) -> None:
    space = tuned(grid({"split_seed": [0, 1]}, tune_on=tune_on))
    (study,) = space.phases
    configs = [study.base.replace(**it) for it in study.replicates()]
    assert {(it.split_seed, it.seed) for it in configs} == {(split, seed) for split in splits for seed in seeds}
    assert all(getattr(it, name) == value for it in configs for name, value in changes.items())
    others = {it.config.identity for it in space.reported({"er": {}, "plain": {}}).requests()}
    assert tune_on == "same" or not others & {it.identity for it in configs}


@pytest.mark.parametrize("tune_on", ["same", TuneOn(seeds=(4,)), TuneOn(tasks=2)])
def test_tuning_has_the_splits_that_named_variants_set(tune_on: Any) -> None:
    people = {"a": {"split_seed": 3, "batch_size": 16}, "b": {}, "c": {"split_seed": 3, "batch_size": 32}}
    (study,) = tuned(grid({"people": people}, tune_on=tune_on)).phases
    assert {split["split_seed"] for split in study.replicates()} == {3, 0}
    assert len(study.replicates()) == 2 * len(study.seeds)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TuneOn(), "TuneOn: nothing given; expected one of tasks, splits and dataset, or seeds alone"),
        (lambda: TuneOn(tasks=1, splits=(1,)), "TuneOn: tasks, splits given; expected one of"),
        (lambda: TuneOn(tasks=0), "TuneOn: tasks = 0: "),
        (lambda: TuneOn(splits=()), "TuneOn: splits = (): expected at least one"),
        (lambda: TuneOn(splits=(-1,)), "TuneOn: splits = (-1,): "),
        (lambda: TuneOn(seeds=(1, 1)), "TuneOn: seeds = (1, 1): expected at least one, and none twice"),
        (lambda: TuneOn(dataset=3), "TuneOn: dataset = 3: expected the name of a data set"),  # type: ignore[arg-type]
        (lambda: grid(tune_on="other"), "OptunaSearch: tune_on = 'other': expected 'same' or TuneOn(...)"),
        (lambda: grid(tune_on=TuneOn(splits=(0,))), "search space 'it': TuneOn(splits=(0,)): split seed 0 is reported"),
        (lambda: grid(tune_on=TuneOn(seeds=(1,))), "search space 'it': TuneOn(seeds=(1,)): seed 1 is reported"),
        (
            lambda: grid(tune_on=TuneOn(dataset="synthetic")),
            "search space 'it': TuneOn(dataset='synthetic'): 'synthetic' is reported too",
        ),
        (
            lambda: grid({"people": {"a": {"split_seed": 1}, "b": {"split_seed": 2}}}, tune_on=TuneOn(splits=(1, 3))),
            "search space 'it': TuneOn(splits=(1, 3)): split seed 1 is reported too; expected other split seeds",
        ),
        (
            lambda: grid({"people": {"a": {}, "b": {"split_seed": 2}}}, tune_on=TuneOn(splits=(0,))),
            "search space 'it': TuneOn(splits=(0,)): split seed 0 is reported too; expected other split seeds",
        ),
        (
            lambda: grid({"data": {"a": {"dataset": "ptbxl"}, "b": {}}}, tune_on=TuneOn(dataset="ptbxl")),
            "search space 'it': TuneOn(dataset='ptbxl'): 'ptbxl' is reported too; expected another data set",
        ),
        (
            lambda: grid({"length": {"a": {"first_tasks": 3}, "b": {}}}, tune_on=TuneOn(tasks=3)),
            "search space 'it': TuneOn(tasks=3): first_tasks = 3 is reported; expected fewer tasks to tune on",
        ),
        (
            lambda: grid({"people": {"a": {"split": "fold:0/5"}, "b": {"split_seed": 2}}}, tune_on=TuneOn(seeds=(7,))),
            "search space 'it': axis 'people' sets split_seed, split; expected one of them, so that tuning has its",
        ),
        (lambda: grid(tune_on=TuneOn(dataset="synthetics")), "search space 'it': dataset = 'synthetics': no data"),
        (lambda: grid({"method": {"A": {}}}), "search space 'it': axis 'method' is that of the search's methods"),
        (lambda: grid(objectives={"auc": "maximize", "bwt": "maximize"}), "search space 'it': tune_on and methods"),
        (lambda: OptunaSearch(), "OptunaSearch: parameters is empty; expected at least one"),
        (lambda: grid(parameters=RATE), "parameter 'learning_rate': FloatDistribution("),
        (lambda: grid(parameters={"mc_samples": [1]}, methods=METHODS), "OptunaSearch has parameters and methods; "),
        (
            lambda: grid(methods={"er": RATE}),
            "OptunaSearch: method 'er': parameter 'learning_rate': FloatDistribution(",
        ),
        (
            lambda: grid(methods={"er": {"learning_rate": [1e-3, 1e-3]}}),
            "OptunaSearch: method 'er': parameter 'learning_rate': [0.001, 0.001]: expected values that differ",
        ),
        (
            lambda: grid(methods={"er": {"size": {"small": 8, "large": {}}}}),
            "OptunaSearch: method 'er': parameter 'size': variant 'small': expected a mapping from fields to values",
        ),
        (lambda: grid(methods=METHODS | {"ewc": {"foo": 3}}), "search space 'it': method 'ewc': unknown key 'foo'"),
        (
            lambda: grid(methods=METHODS | {"A": {"like": "er", "learning_rate": 1e-3}}),
            "OptunaSearch: method 'A': it is like 'er', which tunes 'learning_rate', and takes its choice; expected no",
        ),
        (
            lambda: grid(methods={"EWC": {"strategy": "ewc", "ewc_lambda": [10, 1000]}}),
            "search space 'it': method 'EWC': unknown key 'ewc_lambda' (did you mean 'ewc_strength' of str",
        ),
        (
            lambda: grid(methods={"EWC": {"strategy": "ewc", "ewc_lambda": 3, "ewc_strength": [10, 1000]}}),
            "search space 'it': method 'EWC': unknown key 'ewc_lambda' (did you mean 'ewc_strength' of str",
        ),
        (lambda: grid(parameters={"split_seed": [1, 2]}), "search space 'it': parameter 'split_seed': 'split_seed'"),
        (lambda: grid(methods={"er": {"dataset": "mitbih"}}), "OptunaSearch: method 'er': 'dataset' cannot be"),
        (
            lambda: grid(methods={"er": {"replay_ratio": [1, 2]}, "finetun": {}}),
            "OptunaSearch: method 'finetun': no strategy has this name (did you mean 'finetune'?); expected a setting",
        ),
        (lambda: grid(methods={"A": {"like": "B"}}), "OptunaSearch: method 'A': like = 'B': no method before it"),
        (
            lambda: grid(methods=METHODS | {"A": {"like": "er", "replay_ratio": [1, 2]}}),
            "OptunaSearch: method 'A': it is like 'er', whose choice it takes; expected no list for 'replay_ratio'",
        ),
        (lambda: optuna(parameters=RATE, n_trials=2, trials_each=3), "OptunaSearch: trials_each = 3 without methods"),
        (lambda: optuna(methods={"er": RATE}, n_trials=2), "OptunaSearch: methods take trials_each"),
        (lambda: optuna(methods={"er": RATE}), "OptunaSearch: methods take trials_each"),
        (
            lambda: optuna(methods={"er": {"replay_ratoi": [1]}}, trials_each=1),
            "search space 'it': method 'er': unknown",
        ),
    ],
)
def test_what_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"learning_rate": [1e-3, -1]}, "learning_rate = -1: expected more than 0"),
        ({"learning_rate": -1, "replay_ratio": [0.5, 1]}, "learning_rate = -1: expected more than 0"),
        ({"learning_rate": ["high"]}, "learning_rate = 'high': expected a number, not text"),
        ({"learning_rate": FloatDistribution(-1, 1)}, "learning_rate = -1.0: expected more than 0"),
        ({"batch_size": FloatDistribution(1, 8)}, "parameter 'batch_size': FloatDistribution("),
        ({"ewc_strength": [1, 2]}, "no run of it uses 'ewc_strength', an option of strategy 'ewc'"),
        ({"size": {"small": {"batch_size": -8}, "large": {}}}, "batch_size = -8: expected at least 1"),
        ({"size": {"small": {"batch_sizes": 8}, "large": {}}}, "unknown key 'batch_sizes' (did you mean"),
        ({"batch_size": {"small": {"batch_size": 8}}}, "parameter 'batch_size': named variants need a name that"),
        ({"learning_rate": [1e-3], "a": {"b": {"learning_rate": 1}}}, "two parameters set 'learning_rate'"),
        ({"network": ["none"]}, "network = 'none': not known; known: "),
        ({"task_order": ["curriculum"]}, "task_order 'curriculum' would need another run for each trial"),
        ({"encoder": [RunConfig()]}, "encoder = RunConfig(): an encoder that a run trains cannot be searched over"),
    ],
)
def test_a_bad_value_is_reported_with_space_and_method(method: dict[str, Any], sentence: str) -> None:
    """The search of a method has a name of its own, which a user never wrote."""
    with pytest.raises(UsageError) as raised:
        optuna({"split_seed": range(3)}, methods={"er": method}, trials_each=1)
    assert str(raised.value).startswith(f"search space 'it': method 'er': {sentence}")
    assert re.findall(r"it_\w+", str(raised.value)) == []


def test_a_bad_value_of_a_space_that_is_tuned_as_a_whole_is_reported_with_it() -> None:
    with pytest.raises(UsageError, match=r"^search space 'it': learning_rate = -1: expected more than 0$"):
        optuna(parameters={"learning_rate": [-1]}, n_trials=1, tune_on=TuneOn(tasks=2))


def test_no_search_chooses_on_what_it_reports() -> None:
    for column in (*(f"test_{it}" for it in METRICS), *UNSEEN, *PREQUENTIAL):
        with pytest.raises(UsageError, match=rf"^objective '{column}' is measured on .*; expected a metric of valid"):
            optuna(parameters=RATE, n_trials=2, objectives={column: "maximize"})
        if column not in PREQUENTIAL:
            with pytest.raises(UsageError, match=f"'{column}' is measured on"):
                grid(objectives={column: "maximize"}, tune_on=TuneOn(splits=(7,)))
    assert grid(objectives={"prequential_auc": "maximize"}, tune_on=TuneOn(splits=(7,))).tuned
    for column in (*METRICS, "seconds", "parameters"):
        if "auc_seen" not in column:
            assert optuna(parameters=RATE, n_trials=2, objectives={column: "minimize"}).objectives
