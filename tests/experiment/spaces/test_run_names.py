"""What runs are called."""

from __future__ import annotations

from typing import Any

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.spaces.run_names import run_names
from clops_sweep.experiment.spaces.search_space import all_requests


def names(*spaces: SearchSpace, **only: Any) -> list[str]:
    requests = [it for it in all_requests(spaces) if all(getattr(it.config, n) == value for n, value in only.items())]
    return list(dict.fromkeys(run_names(requests)))


VARIANTS = {"CLOPS": {}, "Random storage": {"storage_order": "random"}}
GRID = SearchSpace("grid", RunConfig(), {"storage_fraction": [0.1, 1], "variant": VARIANTS}, seeds=range(2))


def test_a_run_is_called_by_the_names_of_variants_and_by_fields_with_their_values() -> None:
    assert names(GRID) == [
        "storage_fraction 0.1, CLOPS",
        "storage_fraction 0.1, Random storage",
        "storage_fraction 1, CLOPS",
        "storage_fraction 1, Random storage",
    ]


def test_runs_of_several_spaces_are_called_by_their_space_too() -> None:
    strategies = SearchSpace("baselines", RunConfig(), {"strategy": ["finetune", "gem"]}, seeds=[0])
    plain = SearchSpace("mir", RunConfig(strategy="mir"), seeds=[0])
    assert names(GRID, strategies, plain, storage_fraction=0.25) == ["baselines: finetune", "baselines: gem", "mir"]
    assert names(strategies, GRID, acquisition="bald_mcd")[:3] == [
        "baselines: finetune",
        "baselines: gem",
        "grid: storage_fraction 0.1, CLOPS",
    ]


def test_long_values_are_cut_and_floats_are_as_they_were_typed() -> None:
    orders = SearchSpace("orders", RunConfig(), {"task_order": ["sequential", (5, 4, 3, 2, 1, 0)]}, seeds=[0])
    assert names(orders) == ["task_order sequential", "task_order (5, 4, 3, 2, 1, 0)"]
    rates = SearchSpace("rates", RunConfig(), {"learning_rate": [1e-5, 0.1 + 0.2]}, seeds=[0])
    assert names(rates) == ["learning_rate 1e-05", "learning_rate 0.3"]
    groups = [[(0, 1), (2, 3), (4, 5)], [tuple(range(6))], [tuple(range(9, -1, -1)), (10, 11)]]
    classes = SearchSpace("c", RunConfig(scenario="class_il_union"), {"task_classes": groups}, seeds=[0])
    assert max(map(len, names(classes))) == len("task_classes ") + 41
