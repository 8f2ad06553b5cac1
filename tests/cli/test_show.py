"""What is shown of a run, and what only when all of it is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from clops_sweep import FloatOption, RunConfig, strategy
from clops_sweep.cli.commands import command
from clops_sweep.cli.launch import under_way_in_words
from clops_sweep.cli.show import sections
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.metrics import METRICS, metrics_of
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import write_finished

Tables = Callable[..., dict[str, pa.Table]]

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


def test_options_are_shown_where_their_plug_in_is_in_use() -> None:
    strategy("patient", options={"patience": FloatOption(2.0, gt=0)})(type("Patient", (FineTuning,), {}))
    try:
        assert config_of(RunConfig(strategy="patient")) == [*ALWAYS, "patience"]
        other = RunConfig(patience=3.0).replace(strategy="finetune")
        assert "patience" not in config_row(other)
        before = {**config_row(other), "patience": 3.0}  # as a store of an earlier version has it
        assert "patience" not in config_of(other)
        assert "patience" not in sections(before).columns["config"]
        assert "patience" in sections(before, everything=True).columns["config"]
    finally:
        STRATEGIES.forget("patient")


@pytest.mark.parametrize("unknown", ["dataset", "network", "acquisition", "scenario"])
def test_of_a_known_strategy_the_fields_are_shown_that_are_part_of_the_run_s_identity(unknown: str) -> None:
    row = {"run_id": "a", **config_row(RunConfig(strategy="er")), unknown: "of_her_own"}
    expected = config_of(RunConfig(strategy="er"))
    found = sections(row).columns["config"]
    assert "mc_samples" not in found
    of_scenarios = {"domain", "split_within"}  # which an unknown scenario may look at
    assert set(found) - of_scenarios == set(expected)
    assert of_scenarios.issubset(found) == (unknown == "scenario")


def test_a_run_whose_plug_ins_nobody_knows_is_shown_with_all_it_has() -> None:
    row = {**config_row(RunConfig()), "strategy": "of_her_own", "surprise": 3}
    found = sections(row)
    assert set(found.columns["config"]) == {name for name, value in row.items() if value is not None} - {"surprise"}
    assert found.columns["of its plug-ins"] == ["surprise"]


def test_of_the_results_those_are_shown_that_there_are() -> None:
    row = {**config_row(RunConfig(strategy="multitask")), **dict.fromkeys(METRICS, float("nan")), "auc": 0.8, "f1": 0.7}
    row |= {"replayed": 0, "projections": None, "left_out": 2, "seconds": 1.5}
    assert sections(row).columns["results"] == ["auc", "left_out", "seconds"]
    assert sections(row).results_left_out == len(METRICS)
    everything = sections(row, everything=True)
    assert everything.columns["results"] == [*METRICS, "left_out", "replayed", "seconds"]
    assert (everything.fields_left_out, everything.results_left_out) == (0, 0)


def test_the_headline_metrics_of_the_scenario_come_first() -> None:
    row = {**config_row(RunConfig(scenario="class_il_union")), **dict.fromkeys(METRICS, 0.5), "seconds": 1.5}
    shown = sections(row).columns["results"]
    assert shown[:2] == ["balanced_accuracy", "balanced_accuracy_forgetting"]
    assert sorted(shown[:-1]) == sorted(metrics_of("balanced_accuracy"))
    assert sections(row).results_left_out == len(METRICS) - 7


@pytest.mark.parametrize("everything", [False, True])
def test_what_is_left_out_is_said(tmp_path: Path, finished_tables: Tables, everything: bool) -> None:
    replays_all = RunConfig(acquisition_fraction=1)
    write_finished(RunStore(tmp_path), "a" * 24, finished_tables("a" * 24, replays_all))
    arguments = ["show", "aaa", "--results", str(tmp_path), *["--all"] * everything]
    shown = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert shown.exit_code == 0, shown.exception
    line = "not shown: 7 config fields that this run does not use"
    assert (line in shown.output) is not everything
    assert bool(re.search(r"^  mc_samples +20$", shown.output, re.MULTILINE)) is everything


@pytest.mark.parametrize(("people", "said"), [(0, True), (7, False), (None, False)])
def test_a_run_without_a_validation_set_is_said_to_be_judged_by_the_test_set(
    tmp_path: Path, finished_tables: Tables, people: int | None, said: bool
) -> None:
    tables = finished_tables("a" * 24, RunConfig())
    place = tables["runs"].schema.get_field_index("patients_validation")
    column = pa.array([people], tables["runs"].schema.field(place).type)
    tables["runs"] = tables["runs"].set_column(place, "patients_validation", column)
    write_finished(RunStore(tmp_path), "a" * 24, tables)
    shown = CliRunner().invoke(command, ["show", "aaa", "--results", str(tmp_path)], standalone_mode=False)
    assert shown.exit_code == 0, shown.exception
    assert ("no validation set: metrics are computed on the test set" in shown.output) == said


@pytest.mark.parametrize(
    ("runs", "checkpointed", "words"),
    [
        (1, 1, "1 run under way: goes on from its checkpoint"),
        (3, 3, "3 runs under way: go on from their checkpoints"),
        (3, 2, "3 runs under way: 2 go on from their checkpoints; 1 starts anew, since no checkpoint exists yet"),
        (2, 1, "2 runs under way: 1 goes on from its checkpoint; 1 starts anew, since no checkpoint exists yet"),
        (2, 0, "2 runs under way: start anew, since no checkpoint exists yet"),
    ],
)
def test_what_becomes_of_the_runs_that_an_interrupt_ends(runs: int, checkpointed: int, words: str) -> None:
    assert under_way_in_words(runs, checkpointed) == words


def test_test_metrics_have_intervals_over_patients(tmp_path: Path, finished_tables: Tables) -> None:
    """And against another run on the same patients, here the same one: the differences are 0 in all resamples."""
    store, (one, other) = RunStore(tmp_path, keep=["predictions"]), ("a" * 24, "b" * 24)
    rows = [
        {"run_id": one, "trained_on": 1, "evaluated_on": 1, "task": "t", "instance": n, "patient": f"p{n}"}
        | {"target_0": n % 2, "probability_0": 0.3 + 0.1 * (n % 5)}
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
