"""The examples of the pages about methods, on native kernels and on modules, and against the built-in methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, FrameBatch, Memory, Reservoir, RunConfig, Strategy, native, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.testing import check_strategy, tiny_config, tiny_frames
from tests.helpers.documentation import DOCS, examples

EXAMPLE, CONTRACT, _ = examples("own_method")
BLOCKS = [EXAMPLE, CONTRACT, *examples("method_examples")]
METHODS = (
    "ExperienceReplay",
    "DarkExperienceReplay",
    "ElasticWeightConsolidation",
    "LearningWithoutForgetting",
    "LossWeightedReplay",
    "MomentumReplay",
)


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """Names defined by the code blocks of the pages."""
    found: dict[str, Any] = {}
    before = set(STRATEGIES.added)
    exec("\n".join(BLOCKS), found)
    yield found
    for name in set(STRATEGIES.added) - before:
        STRATEGIES.forget(name)


@pytest.mark.nightly
def test_the_examples_pass_the_contract_suite(names: dict[str, Any]) -> None:
    names["test_contract"]()
    names["test_contracts"]()


def test_the_example_with_hooks_passes_the_contract_suite(names: dict[str, Any]) -> None:
    (block,) = examples("method_hooks")
    exec(block, names)
    check_strategy(names["EWC"], my_ewc_strength=100.0)
    assert len(list(names["SPACE"].requests())) == 3 * 5


@pytest.mark.nightly
@pytest.mark.parametrize("name", METHODS)
def test_the_examples_pass_it_on_modules(name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    check_strategy(names[name], scenarios=["class_il"], stores="anything")


def test_ewc_is_the_built_in_method(names: dict[str, Any]) -> None:
    assert names["ElasticWeightConsolidation"]
    settings = {"learning_rate": 5e-3, "my_strength": 1000.0, "ewc_strength": 1000.0}
    mine, built_in, plain = (
        ContinualRun(tiny_config("class_il", strategy=name, **settings), tiny_frames("class_il")).run().curves["loss"]
        for name in ("my_ewc", "ewc", "finetune")
    )
    np.testing.assert_allclose(mine, built_in, rtol=0, atol=1e-5)
    assert np.abs(mine - plain).max() > 1e-2


def test_what_the_tables_name_is_there(names: dict[str, Any]) -> None:
    assert names
    run = ContinualRun(RunConfig(strategy="my_ewc", dataset="synthetic"), tiny_frames("class_il"))
    strategy = run.strategy
    batch = strategy.batch(strategy.ledger.of_task(0)[:3])
    owners = {"`self.`": strategy, "`batch.`": batch, "`memory.`": Memory(3)}
    pages = [(DOCS / name).read_text() for name in ("own_method.md", "method_hooks.md")]
    for table in re.findall(r"(?:^\|.*\|\n)+", "\n".join(pages), re.MULTILINE):
        cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()]
        (head, _), _, *rows = cells
        for first, _ in rows if head in owners else ():
            assert [it for it in re.findall(r"`(\w+)", first) if not hasattr(owners[head], it)] == []


class _WithAMemory(Strategy):
    def setup(self) -> None:
        self.memory = Reservoir(self.memory_size)

    def loss(self, batch: FrameBatch) -> torch.Tensor:
        self.memory.offer(batch)
        return self.criterion(self.model(batch.x), batch.y)


@pytest.fixture
def declared() -> Iterator[Callable[..., None]]:
    """Declare the class above under the name "with_a_memory", with some options."""

    def declare(*options: object) -> None:
        strategy("with_a_memory", options=options)(_WithAMemory)

    yield declare
    STRATEGIES.forget("with_a_memory")


def _size(**settings: Any) -> int:
    """The size of the memory of a run that has begun."""
    run = ContinualRun(tiny_config("class_il", **settings), tiny_frames("class_il"))
    size: int = run.strategy.memory.size  # type: ignore[attr-defined]
    return size


def test_memory_size_is_that_of_the_built_in_methods(declared: Callable[..., None]) -> None:
    declared("memory_fraction", "memory_size")
    for settings in ({}, {"memory_fraction": 0.1}, {"memory_size": 7}, {"memory_fraction": 1e-9}):
        assert _size(strategy="with_a_memory", **settings) == _size(strategy="er", **settings)
    assert _size(strategy="with_a_memory", memory_size=7) == 7
    assert _size(strategy="with_a_memory", memory_fraction=1e-9) == 1


def test_memory_size_counts_the_instances_of_all_tasks(declared: Callable[..., None]) -> None:
    declared("memory_fraction", "memory_size")
    run = ContinualRun(tiny_config("class_il", strategy="with_a_memory"), tiny_frames("class_il"))
    everything = sum(len(task.rows) for task in run.strategy.training.tasks)
    assert len(run.tasks) > 1
    assert run.strategy.memory_size == int(0.25 * everything)


@pytest.mark.parametrize(
    ("options", "settings", "sentence"),
    [
        ((), {}, "it lists no option for the size of a memory; add 'memory_fraction' and 'memory_size' to options="),
        (("memory_size",), {}, r"memory_size is not given; expected RunConfig\(memory_size=...\)"),
        (("memory_size",), {"memory_size": 10**6}, "memory_size = 1000000: expected at most"),
    ],
)
def test_memory_size_without_its_options_is_refused(
    options: tuple[str, ...], settings: dict[str, Any], sentence: str, declared: Callable[..., None]
) -> None:
    declared(*options)
    with pytest.raises(UsageError, match=sentence):
        _size(strategy="with_a_memory", **settings)
