"""The size of a memory in instances, beside its size as a share of all training instances."""

from __future__ import annotations

import json

import pytest

from clops_sweep import ContinualRun, RunConfig, SearchSpace
from clops_sweep.experiment.columns import config_from_row, config_row
from clops_sweep.testing import tiny_config, tiny_frames

METHODS = ("er", "er_ace", "derpp", "agem", "gdumb", "icarl", "aser")


@pytest.mark.parametrize("strategy", METHODS)
def test_a_config_has_one_of_the_two(strategy: str) -> None:
    sized, shared = RunConfig(strategy=strategy, memory_size=120), RunConfig(strategy=strategy)
    assert (sized.memory_size, sized.get("memory_fraction")) == (120, None)
    assert (shared.memory_size, shared.get("memory_fraction")) == (None, 0.25)
    assert "memory_size" not in json.loads(shared.identity)
    assert "memory_fraction" not in json.loads(sized.identity)
    assert sized.run_id("abc") != shared.run_id("abc") == RunConfig(strategy=strategy, memory_size=None).run_id("abc")
    for config in (sized, shared):
        assert config_from_row({"run_id": "r", **config_row(config)}) == config


def test_a_grid_over_sizes() -> None:
    axes = {"memory_size": [100, 200], "strategy": ["er", "finetune"]}
    configs = [request.config for request in SearchSpace("sizes", RunConfig(), axes, seeds=range(2)).requests()]
    assert {(it.memory_size, it.strategy, it.seed) for it in configs} == {
        (size, strategy, seed) for size in (100, 200) for strategy in ("er", "finetune") for seed in (0, 1)
    }
    assert len({it.run_id("abc") for it in configs}) == 6, "fine-tuning has no memory"


@pytest.mark.parametrize("strategy", METHODS)
def test_the_memory_holds_so_many_instances_over_all_tasks(strategy: str) -> None:
    config, frames = tiny_config("class_il_union", strategy=strategy, memory_size=7), tiny_frames("class_il_union")
    runs = ContinualRun(config, frames).run().runs
    assert runs["memory_instances"].item() == 7
