"""A grid makes the configs, ids and sentences that checking every config by itself makes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator

from clops_sweep import IntOption, RunConfig, SearchSpace, acquisition_function, network, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.options import FloatOption
from clops_sweep.experiment.plugins.registry import (
    ACQUISITION_FUNCTIONS,
    OF_SCENARIOS,
    REGISTRIES,
    SCENARIOS,
    STRATEGIES,
)
from clops_sweep.experiment.spaces.axes import number_in_words
from clops_sweep.learning.strategies.finetune import FineTuning


def even(value: int) -> int:
    if value % 2:
        raise ValueError("expected an even number")
    return value


class Mine(FineTuning):
    """Never trained here."""


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    before = {kind: set(registry.added) for kind, registry in REGISTRIES.items()}
    width = IntOption(16, ge=1, le=64)
    width.metadata.append(AfterValidator(even))  # a check of its own
    network("wide", options={"width": width})(lambda channels, samples, outputs, *, width: None)
    acquisition_function("cold", options=["mc_samples", {"heat": FloatOption(1.0)}])(lambda *_, mc_samples, heat: None)
    strategy("by_batch", options={"warm": FloatOption(lambda config: config.batch_size / config.epochs_per_task)})(Mine)
    strategy("all", options=[*STRATEGIES.options("clops"), "ewc_strength"])(type("Other", (Mine,), {}))
    yield
    for kind, registry in REGISTRIES.items():
        for name in registry.added.keys() - before[kind]:
            registry.forget(name)


GOOD: dict[str, list[Any]] = {
    "storage_fraction": [0.1, 1, np.float64(0.5)],
    "acquisition_fraction": [0.5, 1.0],
    "mc_samples": [5, 7.0, np.int64(9)],
    "beta_penalty": [0.0, -0.0, 10],
    "epochs_per_task": [1, 20],
    "batch_size": [16, 4],
    "perturbation_std": [0.5],
    "split_seed": [0, 3],
    "weight_seed": [None, 1, 7],
    "storage_order": ["top", "random"],
    "weight_replay": [False, True],
    "strategy": ["clops", "replay", "er", "ewc", "finetune", "gem", "by_batch", "all"],
    "warm": [3.5],
    "acquisition": ["bald_mcd", "bald_mcp", "random", "cold"],
    "network": ["clops_cnn", "wide"],
    "task_order": ["sequential", 3, (1, 0, 2), [0, 1, 2], "paper_curriculum"],
    "task_classes": [None, ((0, 1), (2, 3)), [["a", "b"], ["c", ',"seed":0,']], [[0, 1], [2, 3, 4]]],
    "dataset": ["synthetic", "ptbxl", "mitbih"],
    "scenario": ["class_il", "time_il", "domain_il"],
    "domain": ["lead", ',"seed":0,'],
    "leads": ["single", "all"],
    "normalize": ["none", "zscore"],
    "width": [2, 4.0],
    "heat": [0.0, -0.0, 2],
    "ewc_strength": [1, 400.0],
    "ewc_online": [True, np.bool_(False)],
}
BAD: dict[str, list[Any]] = {
    "storage_fraction": [0, "0.5", True],
    "mc_samples": [2.5],
    "weight_seed": [-1],
    "strategy": ["clop"],
    "task_order": [(0, 2)],
    "normalize": ["no"],
    "width": [3, 66],
    "heat": ["hot"],
}
SEEDS = [0, 1, 5.0, np.int64(7), 2**32 - 1]
FILTERS = [None, None, lambda config: config.seed != 1, lambda config: not config.weight_replay]


@st.composite
def spaces(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of a search space, most of them good ones."""
    good = draw(st.integers(0, 4)) > 0

    def values(name: str) -> list[Any]:
        return GOOD[name] + ([] if good else BAD.get(name, []))

    def of(names: list[str]) -> dict[str, Any]:
        return {name: draw(st.sampled_from(values(name))) for name in names}

    names = draw(st.permutations(list(GOOD)))
    base, *axes = names[:3], *([name] for name in names[3:5])
    together = names[5 : 5 + draw(st.integers(0, 3))]
    lists: dict[str, Any] = {
        name: draw(st.lists(st.sampled_from(values(name)), min_size=1, max_size=3, unique_by=repr)) for (name,) in axes
    }
    if together:
        lists["variant"] = {"one": {}, "two": of(together), "three": of(together[:1]), "four": of(together)}
    seeds = draw(st.lists(st.sampled_from(SEEDS if good else [*SEEDS, -1, 0.5]), min_size=1, max_size=3, unique=True))
    return {"base": of(base), "axes": lists, "seeds": seeds, "where": draw(st.sampled_from(FILTERS))}


def made(arguments: Mapping[str, Any], each_alone: bool = False) -> list[tuple[Any, ...]] | None:
    """What a space asks for, in full; None if it is refused. Alone, every seed has a space of its own."""
    try:
        base = RunConfig(**arguments["base"])
    except UsageError:
        base = RunConfig()
    seeds = [[seed] for seed in arguments["seeds"]] if each_alone else [arguments["seeds"]]
    try:
        spaces = [SearchSpace("s", **{**arguments, "base": base, "seeds": of_one}) for of_one in seeds]
    except UsageError:
        return None
    return [
        (sorted(map(repr, it.model_dump().items())), it.model_fields_set, it.options, it.identity, request.labels)
        for space in spaces
        for request in space.requests()
        for it in [request.config]
    ]


@settings(max_examples=100, derandomize=True)
@given(spaces())
def test_a_grid_is_what_checking_every_config_makes(arguments: dict[str, Any]) -> None:
    assert made(arguments) == made(arguments, each_alone=True)


def plainly(config: RunConfig) -> str:
    """An identity by its definition, without a thought of speed."""
    if config.epochs_per_task == 1:  # beta takes one step from 1, and s, an area, is 0
        once = {"beta_penalty": 10, "storage_function": "area", "acquire_every": 1}
        order = {"storage_order": "top"} if config.storage_order == "bottom" else {}
        config = config.replace(**{name: value for name, value in (once | order).items() if name in config.options})
    taken = SCENARIOS.declaration(config.scenario).fields
    seen = {
        name: value
        for name, value in config.model_dump(mode="json").items()
        if value is not None and name not in config.options and (name not in OF_SCENARIOS or name in taken)
    }
    if config.task_order == tuple(range(6)) or config.task_order == (0, 1, 2):
        seen["task_order"] = "sequential"
    left_out = {"norm": "batch", "head": "linear", "optimizer": "adam", "weight_decay": 0, "schedule": "constant"}
    left_out |= {"precision": "float32", "lora_rank": 0, "blurry": 0, "stream": "epochs"}
    for name, default in left_out.items():
        if seen[name] == default:
            del seen[name]
    del seen["steps_per_batch"], seen["prequential_window"]  # of online streams
    if config.weight_seed == config.seed:
        del seen["weight_seed"]
    own = {name: config.get(name) for name in STRATEGIES.options(config.strategy)}
    own = STRATEGIES.declaration(config.strategy).canonical(own)
    brought = [
        *SCENARIOS.options(config.scenario),
        *REGISTRIES["network"].options(config.network),
        *(
            ACQUISITION_FUNCTIONS.options(config.acquisition)
            if "acquisition" in config.options and "acquisition" in own
            else ()
        ),
    ]
    seen |= {name: value for name, value in own.items() if value is not None}
    return json.dumps(seen | {name: config.get(name) for name in brought}, sort_keys=True, separators=(",", ":"))


@settings(max_examples=50, derandomize=True)
@given(spaces())
def test_an_identity_is_what_its_definition_says(arguments: dict[str, Any]) -> None:
    try:
        space = SearchSpace("s", **{**arguments, "base": RunConfig(**arguments["base"])})
    except UsageError:
        return
    for request in space.requests():
        assert request.config.identity == plainly(request.config)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1000.0, "1000"),
        (1_000_000, "1000000"),
        (2.5e6, "2.5e+06"),
        (999.9, "1000"),
        (1234.6, "1235"),
        (12.345, "12.3"),
        (0.00012345, "0.000123"),
        (1e-5, "1e-05"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_of_settings_up_to_a_million_have_no_positive_exponent(value: float, words: str) -> None:
    assert number_in_words(value) == words
