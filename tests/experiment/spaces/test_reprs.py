"""Configs, search spaces, frames and results print themselves: what differs from the defaults, and how much it is."""

from __future__ import annotations

import inspect
import pickle

import pytest

from clops_sweep import ContinualRun, FloatDistribution, OptunaSearch, RunConfig, SearchSpace, UsageError
from clops_sweep.testing import tiny_config, tiny_frames


def test_a_config_is_the_call_that_makes_it() -> None:
    config = RunConfig(
        strategy="er", learning_rate=0.001, memory_fraction=0.2, task_classes=[[0, 1, 2], [3, 4, 5]], epochs_per_task=5
    )
    assert repr(RunConfig(epochs_per_task=RunConfig().epochs_per_task, storage_fraction=0.25)) == "RunConfig()"
    assert repr(config) == str(config)
    assert repr(config) == (
        "RunConfig(strategy='er', task_classes=((0, 1, 2), (3, 4, 5)), epochs_per_task=5, memory_fraction=0.2)"
    )
    assert eval(repr(config), {"RunConfig": RunConfig}) == config
    assert '<td style="text-align: left">0.2</td>' in config._repr_html_()


def test_the_signature_names_every_field_with_its_type_and_default() -> None:
    signature = inspect.signature(RunConfig)
    assert [*signature.parameters] == [*RunConfig.model_fields, "options"]
    assert "batch_size: int = <by data set>" in str(signature)
    assert "seed: int = 0" in str(signature)


def test_a_search_space_says_how_many_runs_it_has() -> None:
    space = SearchSpace("grid", RunConfig(strategy="er"), {"batch_size": [8, 16]}, seeds=3)
    assert repr(space) == (
        "SearchSpace(name='grid', base=RunConfig(strategy='er'), axes={'batch_size': [8, 16]}, seeds=(0, 1, 2))"
        "  # 6 runs"
    )
    assert "<caption>grid: 6 runs</caption>" in space._repr_html_()
    search = OptunaSearch({"learning_rate": FloatDistribution(1e-5, 1e-2, log=True)}, n_trials=12)
    assert repr(SearchSpace("s", RunConfig(), search=search, seeds=2)).endswith("# 12 trials of 2 runs")


def test_a_number_of_seeds_means_that_many_from_zero() -> None:
    space = SearchSpace("s", RunConfig(), seeds=3)
    assert space.seeds == (0, 1, 2)
    assert space == SearchSpace("s", RunConfig(), seeds=range(3))
    assert pickle.loads(pickle.dumps(space)) == space
    assert SearchSpace("s", RunConfig()).seeds == tuple(range(5))


@pytest.mark.parametrize(
    ("seeds", "said"),
    [(0, "seeds has no values"), (-1, "seeds has no values"), (10**30, "runs; expected 250,000"), (True, "not bool")],
)
def test_numbers_of_seeds_that_cannot_be(seeds: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        SearchSpace("s", RunConfig(), seeds=seeds)


def test_frames_and_results_are_one_line() -> None:
    frames = tiny_frames("class_il")
    result = ContinualRun(tiny_config("class_il", epochs_per_task=1, strategy="finetune"), frames).run()
    assert repr(frames) == "<FrameSet synthetic: 66 instances of 1 x 2,500 samples, 66 people, 6 classes>"
    assert repr(result).startswith("<RunResult of 1 run: auc 0.")
    assert "\n" not in repr(result)
