"""Options as columns of `runs`: null if a run does not use them, and all of them visible to pandas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clops_sweep import ContinualRun, FloatOption, IntOption, RunConfig, strategy
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.plugins.registry import BUILT_IN, STRATEGIES
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.store.rows import record_failure, record_result
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.verification import damages
from clops_sweep.testing import tiny_config, tiny_frames


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    strategy("shrinking", options={"shrink": FloatOption(0.5, gt=0), "rounds": IntOption(None, ge=1)})(
        type("Shrinking", (FineTuning,), {})
    )
    strategy("shifting", options=["storage_fraction", {"shift": IntOption(3)}])(type("Shifting", (FineTuning,), {}))
    yield
    for name in ("shrinking", "shifting"):
        STRATEGIES.forget(name)


SETTINGS: list[dict[str, Any]] = [
    {"strategy": "shrinking"},
    {"strategy": "finetune"},
    {"strategy": "shifting", "shift": 7, "storage_fraction": 0.25},
    {"strategy": "er", "memory_size": 3},
    {"strategy": "clops"},
    {"strategy": "shrinking", "rounds": 4},
]


@pytest.fixture(scope="module")
def configs() -> dict[str, RunConfig]:
    frames = tiny_frames("class_il", tasks=2)
    configs = [tiny_config("class_il", epochs_per_task=1).replace(**it) for it in SETTINGS]
    return {config.run_id(frames.data_hash): config for config in configs}


@pytest.fixture(scope="module", params=["parts", "compacted"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, configs: dict[str, RunConfig]
) -> RunStore:
    """Real runs of strategies with different options, in single parts or all in one; the last one failed."""
    store, frames = RunStore(tmp_path_factory.mktemp("store")), tiny_frames("class_il", tasks=2)
    store.open_for_writing()
    *finished, failed = configs.items()
    for run_id, config in finished:
        record_result(store, {run_id: config}, ContinualRun(config, frames).run(), lambda _: frames.data_hash, {})
    record_failure(store, dict([failed]), "ValueError: no", lambda _: frames.data_hash, {})
    if request.param == "compacted":
        store.compact()
    return store


def test_pandas_reads_every_option_of_every_strategy(store: RunStore, configs: dict[str, RunConfig]) -> None:
    by_pandas = pd.read_parquet(Path(store.uri) / "runs")
    for runs in (by_pandas, store.read("runs")):
        assert set(runs["run_id"]) == set(configs)
        for row in runs.to_dict("records"):
            config = configs[row["run_id"]]
            used = {name: value for name, value in config.options.items() if value is not None}
            there = {name for name in (*BUILT_IN, "shrink", "rounds", "shift") if not pd.isna(row[name])}
            assert there == used.keys(), config.strategy
            assert {name: row[name] for name in there} == used
    assert damages(store) == []


def test_a_row_of_pandas_is_the_config_again(store: RunStore, configs: dict[str, RunConfig]) -> None:
    for runs in (pd.read_parquet(Path(store.uri) / "runs"), store.read("runs")):
        for row in runs.to_dict("records"):
            assert config_from_row({str(name): it for name, it in row.items()}).identity == (
                configs[row["run_id"]].identity
            )
