from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_from_row, config_row
from clops_sweep.experiment.config import RUN_ID_LENGTH, SEMANTICS_VERSION, known_key
from clops_sweep.experiment.identity import effective_options
from clops_sweep.experiment.plugins.declarations import SHARED
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import BUILT_IN, STRATEGIES, USERS

FRACTIONS = ["storage_fraction", "acquisition_fraction"]
COUNTS = ["mc_samples", "acquire_every", "epochs_per_task", "batch_size"]
SEEDS = ["seed", "split_seed", "weight_seed"]


# --- values -----------------------------------------------------------------------------------------------------------


def test_defaults_are_the_paper_s() -> None:
    config = RunConfig(dataset="cardiology")
    assert (config.storage_fraction, config.acquisition_fraction, config.mc_samples) == (0.25, 0.5, 20)
    assert (config.beta_penalty, config.beta_learning_rate, config.learning_rate) == (10, 1e-4, 1e-4)
    assert (config.epochs_per_task, config.batch_size, config.normalize) == (20, 16, "none")
    assert (config.strategy, config.storage_order, config.storage_function) == ("clops", "top", "area")
    assert (config.acquisition, config.acquire_every, config.task_order) == ("bald_mcd", 1, "sequential")


@pytest.mark.parametrize("dataset", DATASETS)
def test_what_is_left_out_follows_the_data_set(dataset: str) -> None:
    info = DATASETS[dataset]
    for scenario in info.scenarios:
        config = RunConfig(dataset=dataset, scenario=scenario)
        usual = {"class_il": 20, "time_il": 20, "domain_il": 40}[scenario]
        assert config.epochs_per_task == (info.epochs_per_task or usual)
        assert config.batch_size == info.batch_size
        assert config.learning_rate == info.learning_rate
        assert config.normalize == info.normalize


def test_replace_keeps_what_was_given_and_resolves_the_rest_anew() -> None:
    config = RunConfig(dataset="synthetic", batch_size=8)
    changed = config.replace(dataset="mitbih", seed=3)
    assert changed == RunConfig(dataset="mitbih", batch_size=8, seed=3)
    assert changed.epochs_per_task == 40
    assert changed.learning_rate == 1e-4
    assert config.replace(dataset="mitbih").replace(dataset="synthetic") == config


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("storage_fracton", "storage_fraction"),
        ("mc_sample", "mc_samples"),
        ("acquisition_fractions", "acquisition_fraction"),
        ("epoch_per_task", "epochs_per_task"),
        ("sed", "seed"),
        ("lr", "learning_rate"),
        ("LR", "learning_rate"),
        ("bs", "batch_size"),
        ("batch", "batch_size"),
        ("epochs", "epochs_per_task"),
        ("n_epochs", "epochs_per_task"),
        ("wd", "weight_decay"),
        ("random_state", "seed"),
        ("model", "network"),
        ("method", "strategy"),
        ("patience", "early_stopping"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_name(typed: str, nearest: str) -> None:
    sentence = f"unknown key '{typed}' (did you mean '{nearest}'?)"
    with pytest.raises(UsageError) as raised:
        RunConfig(**{typed: 1})
    assert str(raised.value) == sentence
    with pytest.raises(UsageError) as raised:
        RunConfig().replace(**{typed: 1})
    assert str(raised.value) == sentence
    with pytest.raises(UsageError) as raised:
        known_key(typed)
    assert str(raised.value) == sentence


@given(st.sampled_from(FRACTIONS), st.floats())
def test_fractions_lie_above_zero_and_up_to_one(name: str, value: float) -> None:
    if 0 < value <= 1:
        assert getattr(RunConfig(**{name: value}), name) == value
    else:
        _refused(name, value)


@given(st.sampled_from(COUNTS), st.integers(-(2**40), 2**40))
def test_counts_start_at_one_and_are_31_bit(name: str, value: int) -> None:
    if 1 <= value < 2**31:
        assert getattr(RunConfig(**{name: value}), name) == value
    else:
        _refused(name, value)


@given(st.lists(st.integers(-3, 8), max_size=8))
def test_a_task_order_is_a_permutation(order: list[int]) -> None:
    if order and sorted(order) == list(range(len(order))):
        assert RunConfig(task_order=order).task_order == tuple(order)
    else:
        with pytest.raises(UsageError, match="permutation"):
            RunConfig(task_order=order)


@pytest.mark.parametrize("name", ["strategy", "acquisition", "storage_order", "storage_function", "normalize"])
def test_a_choice_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        RunConfig(**{name: "qqq"})
    assert str(raised.value).startswith(f"{name} = 'qqq': ")
    assert getattr(RunConfig(), name) in str(raised.value)


def _refused(name: str, value: object) -> None:
    with pytest.raises(UsageError) as raised:
        RunConfig(**{name: value})
    sentence = str(raised.value)
    assert sentence.startswith(f"{name} = {value!r}: ")
    assert "\n" not in sentence


# --- identity ---------------------------------------------------------------------------------------------------------


ALWAYS = {
    *("scenario", "dataset", "strategy", "task_order", "epochs_per_task", "batch_size", "learning_rate", "normalize"),
    *("split_seed", "seed", "weight_seed", "leads", "network"),
    *(NONE_BY_DEFAULT := {"task_classes", "class_weights", "augment", "split", "validation", "curves", "encoder"}),
    *(NONE_BY_DEFAULT := NONE_BY_DEFAULT | {"stratify"}),
    *(NONE_BY_DEFAULT := NONE_BY_DEFAULT | {"early_stopping", "first_tasks", "start_from"}),
    *(CONSTANT_BY_DEFAULT := {"norm", "head", "optimizer", "weight_decay", "schedule", "precision", "lora_rank"}),
    *(CONSTANT_BY_DEFAULT := CONSTANT_BY_DEFAULT | {"stream", "blurry"}),
}
BY_BETA = {"storage_function", "beta_learning_rate", "beta_penalty", "weight_replay"}
USED = {
    "clops": {"storage_fraction", "acquisition_fraction", "storage_order", "acquisition", "acquire_every", "mc_samples"}
    | BY_BETA,
    "replay": {"storage_fraction", "acquisition_fraction", "acquire_every"},
    "gem": {"storage_fraction"},
    "mir": {"storage_fraction", "acquisition_fraction", "replay_ratio"},
    "er": {"replay_ratio", "memory_fraction", "memory_size", "memory_division"},
    "er_ace": {"replay_ratio", "memory_fraction", "memory_size", "memory_division"},
    "derpp": {"replay_ratio", "memory_fraction", "memory_size"},
    "agem": {"memory_fraction", "memory_size"},
    "gdumb": {"memory_fraction", "memory_size"},
    "icarl": {"memory_fraction", "memory_size"},
    "aser": {"replay_ratio", "memory_fraction", "memory_size"},
    "ranpac": {"projection_size"},
    "acil": {"projection_size", "acil_ridge"},
    "ts_acl": {"projection_size", "acil_ridge"},
    "finetune": set(),
    "multitask": set(),
}


def test_the_run_id_is_the_hash_of_canonical_json() -> None:
    config = RunConfig(storage_fraction=0.1, task_order=(1, 0, 2), seed=4)
    names = (ALWAYS - NONE_BY_DEFAULT - CONSTANT_BY_DEFAULT - {"weight_seed"}) | USED["clops"]
    fields = ",".join(f'"{name}":{json.dumps(getattr(config, name))}' for name in sorted(names))
    text = f'{{"config":{{{fields}}},"data_hash":"abc","semantics_version":{SEMANTICS_VERSION}}}'
    text = text.replace("[1, 0, 2]", "[1,0,2]")
    assert config.run_id("abc") == hashlib.sha256(text.encode()).hexdigest()[:RUN_ID_LENGTH]
    assert RUN_ID_LENGTH >= 16


def test_the_run_id_does_not_depend_on_the_order_of_the_fields() -> None:
    values = RunConfig(seed=4).model_dump()
    backwards = RunConfig(**dict(reversed(values.items())))
    assert backwards.run_id("abc") == RunConfig(seed=4).run_id("abc")


@pytest.mark.parametrize("strategy", USED)
def test_the_settings_that_change_the_run_id_are_those_that_the_strategy_uses(strategy: str) -> None:
    config = RunConfig(acquisition="bald_mcd").replace(strategy=strategy)
    names = [*RunConfig.model_fields, *SHARED]
    values = {name: OTHERS.get(name) or _other(getattr(config, name)) for name in names}
    changing = {it for it in names if config.model_copy(update={it: values[it]}).run_id("x") != config.run_id("x")}
    assert changing == (ALWAYS | USED[strategy]) - set(STRATEGIES.declaration(strategy).unused)


OTHERS = {
    "memory_size": 120,
    **{"scenario": "time_il", "strategy": "another", "acquisition": "entropy", "storage_function": "squared_area"},
    **{"task_order": 3, "task_classes": ((1, 0), (2, 3)), "weight_seed": 7, "memory_division": "task_balanced"},
    **{"storage_order": "bottom", "class_weights": "balanced", "weight_decay": 0.1},
    **{"split": "fold:1/5", "validation": 0.2, "stratify": "site", "curves": "test", "encoder": f"run:{'0' * 24}"},
    **{"early_stopping": 3, "blurry": 0.2, "first_tasks": 2},
    **{"people_per_task": 3, "people_order": 3},
}


@pytest.fixture(autouse=True)
def _another_strategy() -> Iterator[None]:
    with STRATEGIES.temporarily("another", object):
        yield


def test_a_strategy_that_lists_no_options_uses_none() -> None:
    config = RunConfig(strategy="another")
    assert config.options == {}
    assert config.identity == RunConfig(storage_fraction=0.1).replace(strategy="another").identity


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strategy": "finetune", "storage_fraction": 0.5}, "storage_fraction = 0.5: not used by strategy 'finetune'"),
        ({"strategy": "clops", "memory_fraction": 0.5}, "memory_fraction = 0.5: not used by strategy 'clops', but by"),
        ({"acquisition": "random", "mc_samples": 5}, "mc_samples = 5: not used by acquisition 'random', but by"),
        ({"strategy": "gem", "mc_samples": 5}, "mc_samples = 5: not used by strategy 'gem', but by acquisition"),
    ],
)
def test_an_option_that_what_is_named_does_not_use_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}") as raised:
        RunConfig(**values)
    assert len(str(raised.value)) < 300


def test_a_base_keeps_options_for_the_strategies_that_use_them() -> None:
    base = RunConfig(storage_fraction=0.5, memory_fraction=0.1)
    assert "memory_fraction" not in base.options
    assert (base.memory_fraction, base.get("memory_fraction")) == (0.1, None)
    fine = base.replace(strategy="finetune")
    assert (fine.options, fine.storage_fraction, fine.without_unused.storage_fraction) == ({}, 0.5, 0.25)
    assert fine.replace(strategy="agem").options["memory_fraction"] == 0.1
    assert fine.replace(strategy="clops") == base.replace(strategy="clops")


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({"acquisition_fraction": 1}, {"acquisition": "random", "mc_samples": 3, "acquire_every": 4}),
        ({"acquisition": "random"}, {"mc_samples": 3, "perturbation_std": 7}),
        ({"acquisition": "entropy"}, {"perturbation_std": 7}),
        ({"storage_order": "random"}, {"storage_function": "squared_area", "beta_penalty": 3}),
        ({"storage_order": "random"}, {"beta_learning_rate": 3}),
        ({"storage_fraction": 1}, {"storage_order": "bottom"}),
        ({"storage_order": "random", "acquisition": "random"}, {"strategy": "replay"}),
        ({"strategy": "replay"}, {"storage_order": "bottom", "acquisition": "entropy", "weight_replay": True}),
        ({"strategy": "ewc"}, {"ewc_decay": 0.5}),
        ({}, {"task_order": (0, 1, 2, 3, 4, 5)}),
        ({"seed": 4}, {"weight_seed": 4}),
    ],
)
def test_what_cannot_make_a_difference_is_no_part_of_the_identity(
    settings: dict[str, Any], same: dict[str, Any]
) -> None:
    config = RunConfig(**settings)
    other = config.replace(**same)
    assert other != config
    assert other.identity == config.identity


@pytest.mark.parametrize(
    ("settings", "different"),
    [
        ({"acquisition_fraction": 0.99}, {"acquisition": "random"}),
        ({"acquisition": "bald_mcp"}, {"perturbation_std": 7}),
        ({"storage_fraction": 1}, {"storage_order": "random"}),
        ({"storage_fraction": 1}, {"storage_function": "squared_area"}),  # s is another number
        ({"storage_fraction": 0.99}, {"storage_order": "bottom"}),
        ({"strategy": "replay", "acquisition_fraction": 1}, {"acquisition_fraction": 0.5}),
        ({"seed": 4}, {"weight_seed": 0}),
        ({"strategy": "finetune", "weight_seed": 4}, {"seed": 4}),
        ({"strategy": "ewc", "ewc_online": True}, {"ewc_decay": 0.5}),
    ],
)
def test_what_makes_a_difference_does(settings: dict[str, Any], different: dict[str, Any]) -> None:
    config = RunConfig(**settings)
    assert config.replace(**different).identity != config.identity


def test_initial_weights_follow_the_seed_until_they_have_one_of_their_own() -> None:
    config = RunConfig(seed=4)
    assert (config.weight_seed, config.initial_seed, config.replace(seed=5).initial_seed) == (None, 4, 5)
    apart = config.replace(weight_seed=2)
    assert (apart.initial_seed, apart.replace(seed=5).initial_seed) == (2, 2)
    assert apart.replace(weight_seed=None).identity == config.identity
    for row in (config_row(apart), config_row(config)):
        (from_pandas,) = pd.DataFrame([row, config_row(config)]).head(1).to_dict("records")
        for read in (row, from_pandas):
            assert config_from_row(read).weight_seed == row["weight_seed"]
    space = SearchSpace("s", RunConfig(), {"weight_seed": [0, 1]}, seeds=[0, 1])
    assert [request.config.initial_seed for request in space.requests()] == [0, 1, 0, 1]
    assert len({request.config.identity for request in space.requests()}) == 4


def test_data_and_semantics_change_the_run_id() -> None:
    config = RunConfig()
    ids = {
        config.run_id("abc"),
        config.run_id("abd"),
        config.run_id("abc", SEMANTICS_VERSION + 1),
    }
    assert len(ids) == 3


def test_a_revision_of_a_strategy_changes_its_run_ids_alone() -> None:
    revised, other = (RunConfig(scenario="class_il_union", strategy=name) for name in ("er_ace", "er"))
    assert revised.run_id("abc") == revised.run_id("abc", SEMANTICS_VERSION + 1)
    assert other.run_id("abc") == other.run_id("abc", SEMANTICS_VERSION)


def test_networks_that_native_kernels_compute_since_a_version_have_other_run_ids() -> None:
    for values in ({}, {"precision": "bfloat16"}, {"network": "small_cnn", "precision": "bfloat16"}):
        config = RunConfig(**values)
        assert config.run_id("abc") == config.run_id("abc", SEMANTICS_VERSION)
    for values in ({"network": "small_cnn"}, {"norm": "layer"}):
        config = RunConfig(**values)
        assert config.run_id("abc") == config.run_id("abc", SEMANTICS_VERSION + 1)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "storage_fraction": st.floats(0, 1, exclude_min=True),
            "acquisition_fraction": st.floats(0, 1, exclude_min=True),
            "mc_samples": st.integers(1, 100),
            "learning_rate": st.floats(1e-9, 1),
            "seed": st.integers(0, 2**32 - 1),
            "task_order": st.one_of(st.just("sequential"), st.integers(0, 9), st.permutations(range(4))),
        },
    )
)
def test_json_gives_the_same_config_back(values: dict[str, Any]) -> None:
    config = RunConfig(**values)
    again = RunConfig(**json.loads(config.model_dump_json()))
    assert again == config
    assert again.run_id("abc") == config.run_id("abc")


PLUGINS = {
    "strategy": list(USED),
    "acquisition": ["bald_mcd", "bald_mcp", "random"],
    "storage_function": ["area", "squared_area"],
    "scenario": ["class_il", "time_il", "domain_il"],
}
DRAWN: dict[str, list[Any]] = {
    **PLUGINS,
    "storage_fraction": [0.25, 1],
    "acquisition_fraction": [0.5, 1.0],
    "storage_order": ["top", "bottom", "random"],
    "weight_replay": [False, True],
    "mc_samples": [20, 5],
    "perturbation_std": [100, 7.0],
    "acquire_every": [1, 2],
    "memory_size": [None, 30],
    "memory_division": ["reservoir", "class_balanced"],
    "ewc_online": [False, True],
    "ewc_decay": [0.95, 0.5],
    "beta_penalty": [10, 3],
    "weight_seed": [None, 0, 1],
    "task_order": ["sequential", (0, 1, 2)],
    "domain": ["lead", "site"],
}
CONFIGS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in DRAWN.items()})


def _canonical(config: RunConfig) -> tuple[str, dict[str, Any]]:
    """The strategy that a config is, and the options that have an effect on it."""
    found = effective_options(config.strategy, config.options, [getattr(config, kind) for kind in USERS])
    return found.get("strategy", config.strategy), {name: it for name, it in found.items() if name != "strategy"}


def _from_a_row(config: RunConfig) -> RunConfig:
    row = config_row(config)
    everything = dict.fromkeys([*RunConfig.model_fields, *BUILT_IN])
    table = pd.DataFrame([everything | row, everything | config_row(RunConfig())])
    read = config_from_row({str(name): column.tolist()[0] for name, column in table.items()})
    assert read.identity == config_from_row(row).identity == config.identity
    assert read.options == config.options
    return read


@settings(max_examples=40, derandomize=True, deadline=None)
@given(CONFIGS, CONFIGS)
def test_configs_of_one_identity_have_the_same_canonical_options_also_from_a_row(
    settings: dict[str, Any], changes: dict[str, Any]
) -> None:
    try:
        one = RunConfig.of({"strategy": "ewc" if "ewc_decay" in settings else "clops", **settings})
    except UsageError:
        assume(False)
    canonical = _canonical(_from_a_row(one))
    for name, value in changes.items():
        with contextlib.suppress(UsageError):  # not with the other settings
            other = one.replace(**{name: value})
            alike = canonical == _canonical(_from_a_row(other))
            if one.identity == other.identity:
                assert alike
                one = other  # so that equal pairs come to differ in many fields
            elif name in OPTIONS:
                assert not alike


def _other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value / 2 if isinstance(value, float) else value + 1
    return f"{value} but another" if isinstance(value, str) else "another"
