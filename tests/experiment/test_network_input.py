"""The config that a message suggests is the user's own, corrected: pasted, it is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.store.run_store import RunStore
from tests.helpers.registries import only_built_in_data_sets

ONE_LABEL, SEVERAL, THREE, SITES = "five_classes", "five_findings", "three_classes", "sites_of_one_lead"
SCENARIOS = ("class_il", "class_il_union", "subject_il")
CLASSES = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Prepared frames of 3 channels and five classes, of one label and of several labels per recording."""
    root = tmp_path_factory.mktemp("prepared")
    with only_built_in_data_sets():

        @dataset(ONE_LABEL, scenarios=SCENARIOS)
        def five_classes(data_root: Path | None) -> Recordings:
            return recordings(np.arange(300) % 5)

        @dataset(SEVERAL, scenarios=SCENARIOS)
        def five_findings(data_root: Path | None) -> Recordings:
            return recordings(np.random.default_rng(1).integers(0, 2, (300, 5)))

        @dataset(THREE, scenarios=(*SCENARIOS, "domain_il"))
        def three_classes(data_root: Path | None) -> Recordings:
            signals = np.random.default_rng(0).normal(size=(300, 3, 50)).astype(np.float32)
            person = np.arange(300) // 10
            wards = {"ward": np.array(["A", "B"])[person % 2]}
            return Recordings(signals, 50, ["x", "y", "z"], "g", np.arange(300) % 3, CLASSES[:3], person, domains=wards)

        @dataset(SITES, scenarios=(*SCENARIOS, "domain_il"))
        def sites_of_one_lead(data_root: Path | None) -> Recordings:
            signals = np.random.default_rng(0).normal(size=(300, 1, 50)).astype(np.float32)
            person = np.arange(300) // 10
            sites = {"site": np.array(["A", "B"])[person % 2]}
            return Recordings(signals, 50, ["x"], "g", np.arange(300) % 5, CLASSES, person, domains=sites)

        for name in (ONE_LABEL, SEVERAL, THREE, SITES):
            prepare(name, prepared_root=root, data_root=None)
        yield root


def recordings(labels: np.ndarray[Any, Any]) -> Recordings:
    signals = np.random.default_rng(0).normal(size=(300, 3, 50)).astype(np.float32)
    return Recordings(signals, 50, ["x", "y", "z"], "g", labels, CLASSES, np.arange(300) // 10)


def refused(prepared: Path, tmp_path: Path, *spaces: SearchSpace) -> str:
    """Return the message about search spaces, or an empty text."""
    selection = Selection.of(list(spaces))
    request = Request(selection, PreparedData.found(prepared, None), RunStore(tmp_path))
    try:
        request.frames(selection.configs)
    except UsageError as problem:
        return str(problem)
    return ""


def suggested(message: str) -> RunConfig:
    """Return the config that a message tells the user to paste."""
    (code,) = re.findall(r"; use (RunConfig\(.*\))$", message)
    config = eval(code, {"RunConfig": RunConfig})
    assert isinstance(config, RunConfig)
    return config


BASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a network is kept": (
        {"network": "small_cnn", "epochs_per_task": 10},
        {"scenario": "class_il_union", "task_classes": ((0, 1, 2), (3, 4))},
    ),
    "two problems": (
        {"learning_rate": 0.01, "strategy": "er", "memory_fraction": 0.2},
        {"scenario": "class_il_union", "task_classes": ((0, 1, 2), (3, 4)), "network": "small_cnn"},
    ),
    "classes by name are kept": (
        {"scenario": "class_il_union", "task_classes": [["a", "b"], ["c", "d", "e"]], "task_order": [1, 0]},
        {"network": "small_cnn"},
    ),
    "values equal to the defaults are kept": (
        {"strategy": "clops", "early_stopping": None, "scenario": "class_il_union"},
        {"task_classes": ((0, 1, 2), (3, 4)), "network": "small_cnn"},
    ),
    "an order of as many tasks is kept": (
        {"network": "small_cnn", "task_order": [1, 0]},
        {"scenario": "class_il_union", "task_classes": ((0, 1, 2), (3, 4))},
    ),
}


@pytest.mark.parametrize(("settings", "corrected"), BASES.values(), ids=BASES)
def test_every_setting_is_kept(
    settings: dict[str, Any], corrected: dict[str, Any], prepared: Path, tmp_path: Path
) -> None:
    base = RunConfig(dataset=ONE_LABEL, **settings)
    config = suggested(refused(prepared, tmp_path, SearchSpace("s", base, {}, seeds=[0])))
    assert config == base.replace(**corrected)
    assert config.explicit.keys() == base.explicit.keys() | corrected.keys()
    assert refused(prepared, tmp_path, SearchSpace("s", config, {}, seeds=[0])) == ""


@pytest.mark.parametrize("scenario", ["class_il", "class_il_union"])
def test_three_classes_are_one_task_so_another_scenario_is_suggested(
    prepared: Path, tmp_path: Path, scenario: str
) -> None:
    """One task of three classes was suggested, which is no continual learning."""
    base = RunConfig(dataset=THREE, scenario=scenario, network="small_cnn")
    message = refused(prepared, tmp_path, SearchSpace("s", base, {}, seeds=[0]))
    assert message.startswith(
        f"{scenario} needs two tasks of two classes or more, and 'three_classes' has 3 classes, enough for one task; "
    )
    config = suggested(message)
    assert (config.scenario, config.domain) == ("domain_il", "ward")
    assert refused(prepared, tmp_path, SearchSpace("s", config, {}, seeds=[0])) == ""


def test_tasks_by_a_declared_column_are_suggested_where_there_is_one_lead(prepared: Path, tmp_path: Path) -> None:
    """It named the leads alone, and the network in a second message."""
    base = RunConfig(dataset=SITES, scenario="domain_il", epochs_per_task=3)
    message = refused(prepared, tmp_path, SearchSpace("s", base, {}, seeds=[0]))
    assert message.startswith(
        "domain_il by lead needs recordings of several leads, which 'sites_of_one_lead' does not have; it declares the "
        "column site; network 'clops_cnn' takes frames of "
    )
    config = suggested(message)
    assert config == base.replace(domain="site", network="small_cnn")
    assert refused(prepared, tmp_path, SearchSpace("s", config, {}, seeds=[0])) == ""


def test_an_order_of_other_tasks_is_left_out(prepared: Path, tmp_path: Path) -> None:
    base = RunConfig(dataset=ONE_LABEL, network="small_cnn", task_order=[2, 1, 0])
    config = suggested(refused(prepared, tmp_path, SearchSpace("s", base, {}, seeds=[0])))
    assert config.task_order == "sequential"
    assert refused(prepared, tmp_path, SearchSpace("s", config, {}, seeds=[0])) == ""


def test_groups_of_classes_do_not_go_with_tasks_of_people(prepared: Path, tmp_path: Path) -> None:
    base = RunConfig(dataset=SEVERAL, network="small_cnn", task_classes=[[0, 1], [2, 3]], task_order=[1, 0])
    config = suggested(refused(prepared, tmp_path, SearchSpace("s", base, {}, seeds=[0])))
    assert config == RunConfig(dataset=SEVERAL, network="small_cnn", scenario="subject_il")


def test_the_base_of_a_search_space_is_suggested_without_its_axes(prepared: Path, tmp_path: Path) -> None:
    base = RunConfig(dataset=ONE_LABEL, network="small_cnn", storage_fraction=0.3)
    fits = SearchSpace("fits", RunConfig(dataset=ONE_LABEL, network="small_cnn", scenario="subject_il"), {})
    space = SearchSpace("s", base, {"strategy": ["finetune", "clops"]}, seeds=[3, 4])
    for spaces in ([space], [fits, space]):
        config = suggested(refused(prepared, tmp_path, *spaces))
        assert config.explicit.keys() == {*base.explicit, "scenario", "task_classes"}
        assert (config.seed, config.storage_fraction) == (base.seed, 0.3)


def test_an_axis_that_is_wrong_is_corrected_in_the_config_of_its_run(prepared: Path, tmp_path: Path) -> None:
    base = RunConfig(dataset=ONE_LABEL, scenario="subject_il", storage_fraction=0.3)
    space = SearchSpace(
        "s", base, {"network": ["small_cnn", "clops_cnn"], "strategy": ["finetune", "clops"]}, seeds=[0]
    )
    config = suggested(refused(prepared, tmp_path, space))
    assert (config.network, config.strategy, config.scenario) == ("small_cnn", "finetune", "subject_il")


@pytest.mark.parametrize("scenario", ["class_il", "class_il_union"])
def test_a_suggestion_that_is_too_long_names_the_corrections_alone(
    prepared: Path, tmp_path: Path, scenario: str
) -> None:
    settings = {
        name: value
        for name, value in RunConfig(dataset=ONE_LABEL).model_dump().items()
        if name in RunConfig.model_fields and name not in ("network", "scenario", "task_classes", "encoder")
    }
    message = refused(prepared, tmp_path, SearchSpace("s", RunConfig(scenario=scenario, **settings), {}, seeds=[0]))
    other = 'scenario="class_il_union", ' if scenario == "class_il" else ""
    assert message.endswith(
        f'; use {other}task_classes=[[0, 1, 2], [3, 4]], network="small_cnn" with the other settings as they are'
    )
