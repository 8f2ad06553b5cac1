"""Which files a run's plug-ins come from, and whether their code is still the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig
from clops_sweep.data.origins import ORIGINS
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.plugins.registry import REGISTRIES
from clops_sweep.experiment.provenance import changed_code, plugin_origins, plugins_of
from clops_sweep.experiment.spaces.space_files import load_spaces
from tests.helpers.registries import only_built_in, only_built_in_data_sets

SPACE = """
import methods
from clops_sweep import RunConfig, SearchSpace, acquisition_function, dataset, scenario, storage_function

@acquisition_function("newest")
def newest(context, rows):
    return rows

@storage_function("flat")
def flat(trajectories):
    return trajectories.mean(1)

@dataset("wearable", scenarios=("class_il",))
def wearable(data_root):
    return methods.NOTHING

BASE = RunConfig(dataset="wearable", scenario="by_device", network="tiny", acquisition="newest")
SPACE = SearchSpace("s", BASE.replace(storage_function="flat"), seeds=[0])
"""
METHODS = """
from clops_sweep import network, scenario
NOTHING = None
WIDTH = 4

@network("tiny")
def tiny(channels, samples, outputs):
    return WIDTH

@scenario("by_device")
def by_device(frames):
    return None
"""


@pytest.fixture(autouse=True)
def as_if_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = dict(ORIGINS)
    monkeypatch.chdir(tmp_path)
    with only_built_in(*REGISTRIES.values()), only_built_in_data_sets():
        yield
    ORIGINS.clear()
    ORIGINS.update(before)


def config_of(folder: Path, space: str = SPACE, methods: str = METHODS) -> RunConfig:
    (folder / "space.py").write_text(space)
    (folder / "methods.py").write_text(methods)
    return load_spaces(folder / "space.py")[0].base


def row_of(config: RunConfig) -> dict[str, Any]:
    return {**config_row(config), "plugins": plugins_of(config)}


def test_each_plug_in_is_recorded_with_the_file_that_registers_it(tmp_path: Path) -> None:
    stored = plugins_of(config_of(tmp_path))
    assert stored is not None
    found = {name: entry[:2] for name, entry in json.loads(stored).items()}
    files = {"newest": "space.py", "flat": "space.py", "wearable": "space.py"}
    files |= {"tiny": "methods.py", "by_device": "methods.py"}
    digest = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("space.py", "methods.py")}
    assert found == {name: [file, digest[file]] for name, file in files.items()}
    assert {origin.file for origin in plugin_origins(stored)} == {"methods.py", "space.py"}


def test_changed_code_is_named_and_a_changed_search_space_is_not(tmp_path: Path) -> None:
    before = row_of(config_of(tmp_path))
    config_of(tmp_path, SPACE.replace("seeds=[0]", "seeds=range(5)"))
    assert changed_code([before, before]) == []
    config_of(tmp_path, methods=METHODS.replace("WIDTH = 4", "WIDTH = 8"))
    assert changed_code([before, before, {**before, "plugins": None}]) == [
        "network 'tiny': 2 stored runs are of an earlier version of its code (methods.py) and count as finished; to "
        "run the present version, register it under another name"
    ], "the id of a run depends on the content of its frames, so other code of the data set changes nothing"


READING = """
import os
from clops_sweep import SearchSpace, RunConfig, network
width, weights = int(os.environ.get("WIDTH", 4)), os.environ.get("WEIGHTS", "/here/weights.pth")

def layer():
    return width

@network("tiny"{options})
def tiny(channels, samples, outputs):
    return layer(), weights

SPACE = SearchSpace("reading", RunConfig(network="tiny"), seeds=[0])
"""


def test_a_value_that_a_function_reads_is_part_of_its_code_and_a_path_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the file is the same; the values are known once it is executed."""
    text = READING.replace("{options}", "")
    before = row_of(config_of(tmp_path, text))
    monkeypatch.setenv("WEIGHTS", "/there/weights.pth")
    config_of(tmp_path, text)
    assert changed_code([before]) == []
    config_of(tmp_path, READING.replace("{options}", ", options=()"))
    assert changed_code([before]) == []
    monkeypatch.setenv("WIDTH", "8")
    config_of(tmp_path, text)
    assert [sentence.partition(";")[0] for sentence in changed_code([before])] == [
        "network 'tiny': 1 stored run is of an earlier version of its code (space.py) and counts as finished"
    ]
    stored = json.loads(before["plugins"])["tiny"]
    of_earlier_version = {**before, "plugins": json.dumps({"tiny": stored[:3]})}
    assert changed_code([of_earlier_version]) == []
