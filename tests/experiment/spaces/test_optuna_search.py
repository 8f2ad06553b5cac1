"""Searches as they are written down: what is refused, and what their parameters mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clops_sweep import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    OptunaSearch,
    RunConfig,
    SearchSpace,
)
from clops_sweep.errors import UsageError

FRACTION = {"storage_fraction": FloatDistribution(0.1, 1.0)}


def _space(**arguments: Any) -> SearchSpace:
    space = {name: arguments.pop(name) for name in ("axes", "where", "seeds", "base", "search") if name in arguments}
    search = OptunaSearch(**{"parameters": FRACTION, "n_trials": 3, **arguments})
    return SearchSpace(**{"name": "it", "base": RunConfig(), "search": search, **space})


def _refused(sentence: str, **arguments: Any) -> None:
    with pytest.raises(UsageError) as raised:
        _space(**arguments)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({}, "OptunaSearch: parameters is empty"),
        (
            {"storage_fracton": FloatDistribution(0.1, 1)},
            "search space 'it': unknown key 'storage_fracton' (did you mean 'storage_fraction'?)",
        ),
        ({"storage_fraction": FloatDistribution(0.1, 1.5)}, "search space 'it': storage_fraction = 1.5: "),
        ({"storage_fraction": FloatDistribution(-0.1, 1.0)}, "search space 'it': storage_fraction = -0.1: "),
        ({"mc_samples": IntDistribution(0, 5)}, "search space 'it': mc_samples = 0: "),
        ({"mc_samples": FloatDistribution(1, 5)}, "search space 'it': parameter 'mc_samples': FloatDistribution("),
        ({"acquisition": IntDistribution(1, 5)}, "search space 'it': parameter 'acquisition': IntDistribution("),
        ({"weight_replay": IntDistribution(0, 1)}, "search space 'it': parameter 'weight_replay': IntDistribution("),
        ({"acquisition": ["bald_mcd", "entropi"]}, "search space 'it': acquisition = 'entropi': not known (did you"),
        ({"acquisition": "bald_mcd"}, "parameter 'acquisition': expected a distribution, a list of values or a"),
        ({"acquisition": 3}, "parameter 'acquisition': expected a distribution, a list of values or a mapping"),
        ({"acquisition": []}, "parameter 'acquisition': expected at least one value"),
        ({"acquisition": ["random", "random"]}, "parameter 'acquisition': ['random', 'random']: expected values that"),
        ({"acquisition": CategoricalDistribution([0, False])}, "parameter 'acquisition': (0, False): expected values"),
        (
            {"batch_size": range(1, 10**9)},
            "parameter 'batch_size': range(1, 1000000000): expected 10,000 values at most",
        ),
        (
            {"learning_rate": FloatDistribution(0, float("inf"))},
            "parameter 'learning_rate': FloatDistribution(high=inf,",
        ),
        (
            {"batch_size": IntDistribution(1, 2**70)},
            "parameter 'batch_size': IntDistribution(high=1180591620717411303424",
        ),
        ({"variant": {}}, "parameter 'variant': expected a distribution, a list of values or a mapping"),
        ({"variant": {"A": {"sed": 1}}}, "search space 'it': unknown key 'sed' (did you mean 'seed'?)"),
        ({"strategy": {"A": {}}}, "search space 'it': parameter 'strategy': named variants need a name that is no"),
        ({"seed": [0, 1]}, "search space 'it': parameter 'seed': 'seed' cannot be searched over: give seeds as"),
        ({"split_seed": [0, 1]}, "search space 'it': parameter 'split_seed': 'split_seed' cannot be searched over"),
        ({"variant": {"A": {"dataset": "mitbih"}}}, "search space 'it': parameter 'variant': 'dataset' cannot be"),
        (
            {"mc_samples": [5, 10], "variant": {"A": {"mc_samples": 7}}},
            "search space 'it': two parameters set 'mc_samples': 'mc_samples' and 'variant'",
        ),
        (
            {"task_order": ["sequential", "curriculum"]},
            "search space 'it': task_order 'curriculum' would need another run",
        ),
        (
            {"weight_replay": [False, True], "storage_order": ["top", "random"]},
            "search space 'it': weight_replay needs beta, which storage_order 'random' does without",
        ),
    ],
)
def test_parameters_that_cannot_be_searched_over(parameters: dict[str, Any], sentence: str) -> None:
    _refused(sentence, parameters=parameters)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_trials": 0}, "OptunaSearch: n_trials = 0: expected at least 1"),
        ({"n_trials": 2.5}, "OptunaSearch: n_trials = 2.5: expected a whole number"),
        ({"sampler_seed": -1}, "OptunaSearch: sampler_seed = -1: expected at least 0"),
        ({"max_concurrent": 0}, "OptunaSearch: max_concurrent = 0: expected at least 1"),
        ({"objectives": {"auk": "maximize"}}, "objective 'auk': the table runs has no numeric column of that name"),
        ({"objectives": {"host": "minimize"}}, "objective 'host': the table runs has no numeric column of that name"),
        ({"objectives": {"auc": "max"}}, "objective 'auc': 'max': expected maximize or minimize"),
        ({"sampler": "tpa"}, "sampler = 'tpa': not known (did you mean 'tpe'?)"),
        ({"sampler": "cmaes"}, "sampler = 'cmaes': not known"),
        ({"pruning": 3}, "pruning = 3: expected True, False or SuccessiveHalving(...)"),
        (
            {"pruning": True, "objectives": {"auc": "maximize", "bwt": "maximize"}},
            "pruning compares trials by the average",
        ),
        (
            {"pruning": True, "objectives": {"seconds": "minimize"}},
            "pruning compares trials by the average of a measure",
        ),
        (
            {"pruning": True, "objectives": {"accuracy": "minimize"}},
            "pruning compares trials by the average of a measure",
        ),
        ({"axes": {"mc_samples": [5]}}, "search space 'it' has axes and a search; expected one of them"),
        ({"where": lambda config: True}, "search space 'it': where goes with axes; bound the distributions"),
        ({"seeds": [-1]}, "search space 'it': seed = -1: "),
        ({"seeds": []}, "search space 'it': seeds has no values"),
        ({"search": {"n_trials": 3}}, "search space 'it': search: expected an OptunaSearch"),
        (
            {"base": RunConfig(task_order="curriculum")},
            "search space 'it': task_order 'curriculum' would need another run",
        ),
    ],
)
def test_searches_that_make_no_sense(arguments: dict[str, Any], sentence: str) -> None:
    _refused(sentence, **arguments)


def test_a_choice_becomes_config_fields() -> None:
    search = OptunaSearch(
        parameters={
            "learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
            "task_order": [[1, 0, 2], "sequential"],
            "storage": {"by beta": {}, "random": {"storage_order": "random", "acquisition": "random"}},
        },
        n_trials=1,
    )
    choice = {"learning_rate": 0.01, "task_order": [1, 0, 2], "storage": "random"}
    assert search.settings(choice).keys() == {"learning_rate", "task_order", "storage_order", "acquisition"}
    config = RunConfig().replace(**search.settings(choice))
    assert (config.learning_rate, config.task_order) == (0.01, (1, 0, 2))
    assert (config.storage_order, config.acquisition) == ("random", "random")
    corners = list(search.corners())
    assert {corner["learning_rate"] for corner in corners} == {1e-5, 1e-2}
    assert {(str(c["task_order"]), c["storage"]) for c in corners} == {
        (order, storage) for order in ("[1, 0, 2]", "sequential") for storage in ("by beta", "random")
    }


def test_a_search_optimises_the_first_headline_metric_of_its_scenario_unless_it_says_otherwise() -> None:
    space = _space(pruning=True)
    search = space.search
    assert search is not None
    assert space.objectives == {"auc": "maximize"}
    assert space.overridden({"scenario": "class_il_union"}).objectives == {"balanced_accuracy": "maximize"}
    named = replace(search, objectives={"f1": "maximize"})
    assert SearchSpace("it", RunConfig(scenario="class_il_union"), search=named).objectives == {"f1": "maximize"}
