from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.report.write import ReportPaths, write_report
from clops_sweep.store.run_store import RunStore


def load(name: str, path: Path) -> ModuleType:
    """A module from a file that lies in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


generated_store = load("generated_store", Path(__file__).with_name("generated_store.py"))


@pytest.fixture(scope="session")
def loaded() -> Callable[[str, Path], ModuleType]:
    """Loads a program that lies beside the documentation."""
    return load


VARIANTS = {"CLOPS": {}, "Random storage": {"storage_order": "random"}}


def grid_space(seeds: int = 3, name: str = "grid") -> SearchSpace:
    return SearchSpace(
        name=name,
        base=RunConfig(epochs_per_task=5),
        axes={
            "variant": VARIANTS,
            "storage_fraction": [0.1, 0.5, 1.0],
            "acquisition_fraction": [0.25, 0.5],
        },
        seeds=range(seeds),
    )


def finetune_space(seeds: int = 3) -> SearchSpace:
    return SearchSpace(name="fine-tuning", base=RunConfig(strategy="finetune", epochs_per_task=5), seeds=range(seeds))


@pytest.fixture(scope="session")
def generated() -> ModuleType:
    """The module that writes test input."""
    return generated_store


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless browser, which the tests of this process share."""
    module = load("chromium", Path(__file__).with_name("chromium.py"))
    if module.executable() is None:
        pytest.skip("no Chromium on this machine: no page is opened in a browser")
    with module.Page(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def spaces() -> list[SearchSpace]:
    return [grid_space(), finetune_space()]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, spaces: list[SearchSpace]) -> RunStore:
    """Every run of `spaces`, but for one cell that is missing, one incomplete and one that failed."""
    store = RunStore(tmp_path_factory.mktemp("results"))

    def cell(config: RunConfig) -> tuple[str, float, float]:
        return config.storage_order, config.storage_fraction, config.acquisition_fraction

    generated_store.write_generated_runs(
        store,
        spaces,
        keep=lambda c: (
            c.strategy != "clops"
            or (cell(c) != ("top", 0.1, 0.25) and not (cell(c) == ("top", 1.0, 0.5) and c.seed == 2))
        ),
        fails=lambda c: c.strategy == "clops" and cell(c) == ("random", 0.1, 0.5),
    )
    return store


@pytest.fixture(scope="session")
def report(spaces: list[SearchSpace], store: RunStore, tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    """The report of `spaces`, rendered once."""
    return write_report(spaces, store, tmp_path_factory.mktemp("report"))
