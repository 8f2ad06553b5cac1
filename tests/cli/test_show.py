"""What is shown of a run, and what only when all of it is asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner
from scipy.special import expit

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.cli.show import sections
from clops_sweep.experiment.columns import config_row
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished

ALWAYS = [
    *("scenario", "dataset", "strategy", "task_order", "blurry", "stream", "epochs_per_task", "batch_size"),
    *("learning_rate", "optimizer"),
    *("weight_decay", "schedule", "precision", "normalize", "leads", "lora_rank", "network", "norm", "head"),
    *("split_seed", "seed"),
]


def config_of(config: RunConfig) -> list[str]:
    return sections({"run_id": "a", **config_row(config)}).columns["config"]


def without(names: list[str]) -> list[str]:
    return [name for name in names if name not in ALWAYS]


def test_of_a_config_the_fields_and_options_are_shown_that_the_run_uses() -> None:
    assert config_of(RunConfig(strategy="finetune")) == ALWAYS
    online = config_of(RunConfig(strategy="finetune", stream="online"))
    assert set(online) == {*ALWAYS, "steps_per_batch", "prequential_window"} - {"epochs_per_task"}
    assert without(config_of(RunConfig(strategy="mir"))) == ["storage_fraction", "acquisition_fraction", "replay_ratio"]
    assert set(without(config_of(RunConfig()))) == {
        *("mc_samples", "storage_fraction", "acquisition_fraction", "acquisition", "acquire_every"),
        *("storage_order", "storage_function", "beta_learning_rate", "beta_penalty", "weight_replay"),
    }
    # what stands there and is not what is done would mislead: replay stores at random, whatever its order is
    replay = RunConfig(storage_order="top", acquisition="bald_mcd").replace(strategy="replay")
    assert {"storage_order", "acquisition"}.isdisjoint(config_of(replay))


def test_test_metrics_have_intervals_over_patients(tmp_path: Path, finished_tables: Tables) -> None:
    """And against another run on the same patients, here the same one: the differences are 0 in all resamples."""
    store, (one, other) = RunStore(tmp_path, keep=["predictions"]), ("a" * 24, "b" * 24)
    rows = [
        {"run_id": one, "trained_on": 1, "evaluated_on": 1, "task": "t", "instance": n, "patient": f"p{n}"}
        | {"target_0": n % 2, "probability_0": expit(n % 5 - 1.0), "logit_0": n % 5 - 1.0}
        for n in range(24)
    ]
    for run_id, seed in ((one, 0), (other, 1)):
        predictions = pa.Table.from_pylist([row | {"run_id": run_id} for row in rows])
        write_finished(store, run_id, finished_tables(run_id, RunConfig(seed=seed)) | {"predictions": predictions})
    said = CliRunner().invoke(command, ["show", one, "--results", str(tmp_path), "--against", other])
    assert said.exit_code == 0, said.output
    assert "test metrics [95 % interval over 24 test patients]:" in said.output
    assert re.search(r"test_auc +0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", said.output)
    assert re.search(rf"minus those of {other}.*\n  test_auc +0\.000\n", said.output)
    assert "no interval: all resamples are equal" in said.output
    found = json.loads(CliRunner().invoke(command, ["show", one, "--results", str(tmp_path), "--json"]).output)
    assert set(found["intervals"]["test_accuracy"]) == {"value", "low", "high", "people", "obstacle", "unit"}
