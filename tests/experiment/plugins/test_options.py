"""Options of plug-ins: declared once, and then fields like any other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clops_sweep import (
    BoolOption,
    ChoiceOption,
    FloatDistribution,
    FloatOption,
    IntOption,
    RunConfig,
    SearchSpace,
    acquisition_function,
    network,
    scenario,
    storage_function,
    strategy,
)
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import REGISTRIES, STRATEGIES
from clops_sweep.learning.strategies.finetune import FineTuning


def small(channels: int, samples: int, outputs: int, *, width: int) -> None:
    """Never made here."""


def score(context: Any, rows: Any, *, temperature: float) -> Any:
    """Never called here."""


class Mine(FineTuning):
    """Never trained here."""


@pytest.fixture(autouse=True)
def plugins() -> Iterator[None]:
    before = {kind: set(registry.added) for kind, registry in REGISTRIES.items()}
    network("small", options={"width": IntOption(16, ge=1, le=64)})(small)
    acquisition_function("mine", options={"temperature": FloatOption(1.0, gt=0, log=True)})(score)
    strategy(
        "my_strategy",
        options=(
            "storage_fraction",
            {
                "strength": FloatOption(100.0, gt=0, log=True),
                "online": BoolOption(False),
                "memory": ChoiceOption("reservoir", choices=("reservoir", "ring")),
            },
        ),
    )(Mine)
    yield
    for kind, registry in REGISTRIES.items():
        for name in set(registry.added) - before[kind]:
            registry.forget(name)
    assert not set(OPTIONS) & {"width", "temperature", "strength", "online", "memory"}


def mine(**changes: Any) -> RunConfig:
    return RunConfig(**({"strategy": "my_strategy", "network": "small"} | changes))


def test_an_option_is_a_field_where_its_plugin_is_in_use() -> None:
    config = mine(width=32)
    assert config.options == {
        "width": 32,
        "storage_fraction": 0.25,
        "strength": 100.0,
        "online": False,
        "memory": "reservoir",
    }
    assert (config.width, config.strength) == (32, 100.0)  # type: ignore[attr-defined]
    assert config.options_of("network") == {"width": 32}
    assert config.options_of("strategy") == {name: it for name, it in config.options.items() if name != "width"}
    assert RunConfig().options.keys() == STRATEGIES.options("clops").keys() | {"mc_samples"}
    assert RunConfig().get("width") is None
    assert config.get("width") == 32


def test_defaults_follow_the_plugins_and_what_was_given_stays() -> None:
    config = mine(width=32)
    without = config.replace(network="clops_cnn")
    assert "width" not in without.options
    assert without.replace(network="small").options["width"] == 32
    assert config.replace(strategy="finetune").options == {"width": 32}
    assert without.options.keys() == {"storage_fraction", "strength", "online", "memory"}
    assert config.replace(width=8).options["width"] == 8


def test_it_matters_to_the_run_exactly_where_its_plugin_is_in_use() -> None:
    assert mine(width=8).identity != mine(width=16).identity
    assert mine(width=16).identity == mine().identity
    assert RunConfig(width=8).identity == RunConfig().identity
    assert RunConfig(strength=5).identity == RunConfig().identity
    assert json.loads(mine().identity).keys() >= {"width", "storage_fraction", "strength", "online", "memory"}
    assert json.loads(mine().identity).keys().isdisjoint({"acquisition", "mc_samples", "acquisition_fraction"})


def test_that_of_a_function_matters_where_the_strategy_uses_the_function() -> None:
    def config(**changes: Any) -> RunConfig:
        return RunConfig(acquisition="mine").replace(**changes)

    assert config(temperature=2).identity != config().identity
    assert config(temperature=2, strategy="finetune").identity == config(strategy="finetune").identity
    everything = {"acquisition_fraction": 1, "temperature": 2}
    assert config(**everything).identity == config(acquisition_fraction=1).identity
    strategy("acquires", options=("acquisition",))(Mine)
    assert config(temperature=2, strategy="acquires").identity != config(strategy="acquires").identity
    assert config(strategy="acquires").options == {"acquisition": "mine", "temperature": 1.0}


def test_a_default_that_changes_changes_the_runs() -> None:
    before = mine().identity
    network("small", options={"width": IntOption(8, ge=1)})(small)
    assert mine().identity != before
    assert mine(width=16).identity == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"width": 0}, "width = 0: expected at least 1"),
        ({"width": 2.5}, "width = 2.5: expected a whole number"),
        ({"width": "8"}, "width = '8': expected a number, not text"),
        ({"width": True}, "width = True: expected a number, not bool"),
        ({"strength": 0}, "strength = 0: expected more than 0"),
        ({"strength": math.nan}, "strength = nan: expected a finite number"),
        ({"strength": math.inf}, "strength = inf: expected a finite number"),
        ({"strength": None}, "strength = None: expected a number"),
        ({"online": 1}, "online = 1: expected true or false"),
        ({"memory": "none"}, "memory = 'none': expected 'reservoir' or 'ring'"),
        ({"widht": 1}, "unknown key 'widht' \\(did you mean 'width' of network 'small'\\?\\)"),
    ],
)
def test_bad_values(value: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        mine(**value)
    with pytest.raises(UsageError, match=message):
        SearchSpace("bad", mine(), {name: [it] for name, it in value.items()})


def _registers(options: Any) -> Callable[[], object]:
    return lambda: strategy("another", options=options)(Mine)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            _registers({"width": IntOption(1)}),
            "^strategy 'another': option 'width' is defined differently by network",
        ),
        (
            _registers({"mc_samples": IntOption(1)}),
            "option 'mc_samples' is defined differently by acquisition 'bald_mcd'",
        ),
        (_registers(["widht"]), "^strategy 'another': option 'widht' is not defined yet; give a definition, or one of"),
        (_registers(["task_classes"]), "option 'task_classes' has a name that is that of a config field; leave it out"),
        (_registers({"seed": IntOption(1)}), "option 'seed' has a name that is that of a config field"),
        (_registers({"auc": FloatOption(1)}), "option 'auc' has a name that is that of a column of runs"),
        (_registers({"run_id": FloatOption(1)}), "option 'run_id' has a name that is"),
        (_registers({"replace": FloatOption(1)}), "option 'replace' has a name that is kept for what every config"),
        (_registers({"model_size": FloatOption(1)}), "option 'model_size' has a name that is kept"),
        (_registers({"_hidden": FloatOption(1)}), "option '_hidden': expected a name of letters"),
        (_registers({"two words": FloatOption(1)}), "option 'two words': expected a name of letters"),
        (_registers({3: FloatOption(1)}), "option 3: expected a name of letters"),
        (_registers({"rate": 0.5}), "option 'rate': expected FloatOption, IntOption, BoolOption or ChoiceOption, not"),
        (_registers({"rate": FloatDistribution(0, 1)}), "option 'rate': expected FloatOption"),
        (_registers([FloatOption(1)]), "strategy 'another': options: expected a mapping from names to options"),
        (_registers("rate"), "options: expected a mapping"),
        (lambda: FloatOption(0.0, gt=0), "default = 0.0: expected more than 0"),
        (lambda: FloatOption(0.0, log=True), "default = 0.0: expected more than 0 on a logarithmic scale"),
        (lambda: FloatOption("1"), "default = '1': expected a number"),
        (lambda: FloatOption(math.nan), "default = nan: expected a finite number"),
        (lambda: IntOption(1.5), "default = 1.5: expected a whole number"),
        (lambda: IntOption(2**70), "expected less than 9.2"),
        (lambda: BoolOption(1), "default = 1: expected true or false"),
        (lambda: ChoiceOption("a", choices="abc"), "choices = 'abc': expected a list of texts"),
        (lambda: ChoiceOption("a", choices=(1, 2)), "choices = .*: expected a list of texts"),
        (lambda: ChoiceOption("a", choices=()), "expected a list of texts"),
        (lambda: IntOption(2, ge=1.5), "bounds {'ge': 1.5, .*}: expected numbers of the option's type"),  # type: ignore[arg-type]
        (lambda: ChoiceOption("d", choices=("a", "b")), "default = 'd': expected 'a' or 'b'"),
        (
            lambda: network("n", options={"depth": IntOption(1)})(lambda channels, samples, outputs: None),
            r"expected a function \(channels, samples, outputs, \*, depth\) that makes",
        ),
        (
            lambda: acquisition_function("f", options={"depth": IntOption(1)})(lambda context, rows: None),
            r"acquisition 'f': expected a function \(context, rows, \*, depth\)",
        ),
        (
            lambda: storage_function("f", options={"depth": IntOption(1)})(lambda trajectories: None),
            r"storage_function 'f': expected a function \(trajectories, \*, depth\)",
        ),
        (
            lambda: scenario("f", options={"depth": IntOption(1)})(lambda frames: None),
            r"scenario 'f': expected a function \(frames, \*, depth\)",
        ),
    ],
)
def test_bad_declarations(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        declare()
    assert "another" not in REGISTRIES["strategy"]
