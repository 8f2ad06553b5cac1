"""Runs that an earlier version stored with options of `er` that are gone: plain ones stay, the others stay readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace, UsageError
from clops_sweep.analysis.as_stored import recorded_experiments, stored_experiments
from clops_sweep.experiment.columns import CONFIG, config_from_row, former_settings
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS
from clops_sweep.store.rerun import repeat
from clops_sweep.store.run_store import RunStore
from tests.helpers.contents import Tables

DATA_HASH = "ab" * 32
UNUSED = {
    "storage_function": "area",
    "beta_learning_rate": 0.0001,
    "beta_penalty": 10.0,
    "acquisition": "bald_mcd",
    "mc_samples": 20,
    "acquisition_fraction": 0.5,
    "acquire_every": 1,
}
"""Options of CLOPS that version 0.3 stored with every run of `er`."""
PLAIN = {"er_storage_order": "random", "er_acquire": False}
SETTINGS = {
    "scenario": "class_il",
    "dataset": "synthetic",
    "strategy": "er",
    "domain": "lead",
    "split_within": "people",
    "task_order": "sequential",
    "blurry": 0.0,
    "stream": "epochs",
    "steps_per_batch": 1,
    "prequential_window": 500,
    "epochs_per_task": 20,
    "batch_size": 16,
    "learning_rate": 0.001,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "schedule": "constant",
    "precision": "float32",
    "normalize": "none",
    "leads": "single",
    "lora_rank": 0,
    "network": "clops_cnn",
    "norm": "batch",
    "head": "linear",
    "split_seed": 0,
    "seed": 0,
    "memory_fraction": 0.25,
    "memory_division": "reservoir",
    "replay_ratio": 1.0,
}
OF_3: list[tuple[str, dict[str, Any]]] = [
    ("619098b349cb1e21a0d5be5d", {}),
    ("b6ee3ae9415771e8da88e6b0", {"memory_division": "task_balanced", "replay_ratio": 0.5, "seed": 3}),
    ("dcf3bfb49bc1e0fd06c739ad", {"stream": "online", "memory_size": 20, "memory_fraction": None}),
]
"""Ids and settings of runs as version 0.3 stored them, on data of hash `DATA_HASH`."""
OTHERS: list[dict[str, Any]] = [{"er_storage_order": "top"}, {"er_acquire": True}, {"er_flip_strength": 2.0}]


def of_3(run_id: str, **settings: Any) -> dict[str, Any]:
    """Return a row as version 0.3 wrote it."""
    return {**dict.fromkeys(CONFIG), "er_flip_strength": None, "run_id": run_id} | SETTINGS | UNUSED | PLAIN | settings


@pytest.mark.parametrize(("run_id", "settings"), OF_3)
def test_a_stored_run_of_plain_er_keeps_its_id_and_its_config(run_id: str, settings: dict[str, Any]) -> None:
    row = of_3(run_id, **settings)
    (by_pandas, _) = pd.DataFrame([row, {**row, "strategy": "finetune", **dict.fromkeys(PLAIN)}]).to_dict("records")
    for read in (row, {str(name): value for name, value in by_pandas.items()}):
        config = config_from_row(read)
        assert config.run_id(DATA_HASH) == run_id
        assert not UNUSED.keys() & config.options.keys()
        assert former_settings(read) == {}


@pytest.mark.parametrize("settings", OTHERS)
def test_a_stored_run_with_a_former_option_is_not_taken_for_plain_er(settings: dict[str, Any]) -> None:
    (name,) = settings
    row = of_3("1" * 24, **settings)
    assert former_settings(row) == settings
    with pytest.raises(UsageError, match=re.escape(f"run {'1' * 24}: {name} = {settings[name]!r}: strategy 'er' has")):
        config_from_row(row)


@pytest.mark.parametrize("name", FORMER_OPTIONS)
def test_a_config_with_a_former_option_is_refused_in_a_sentence_that_says_what_to_use(name: str) -> None:
    value = {**OTHERS[0], **OTHERS[1], **OTHERS[2]}[name]
    instead = "'flip_penalty' with flip_strength" if "flip" in name else "'clops' with "
    sentence = f"unknown key {name!r}: strategy 'er' has no such option since 0.4; expected strategy = {instead}"
    base = RunConfig(strategy="er")
    for make in (
        lambda: RunConfig(strategy="er", **{name: value}),
        lambda: base.replace(**{name: value}),
        lambda: SearchSpace("a", base, {name: [value]}),
        lambda: SearchSpace("a", RunConfig(), {"method": {"ER": {"strategy": "er", name: value}}}),
    ):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            make()
    with pytest.raises(UsageError, match="unknown key 'er_storage_order': strategy 'er' has no such option"):
        RunConfig(strategy="er", **PLAIN)


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """A store with two runs of plain ER and three with former options of version 0.3, and one run of this version."""
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    rows = [of_3(f"{seed:024x}", seed=seed) for seed in (1, 2)]
    rows += [of_3(f"{number:024x}", **settings) for number, settings in enumerate(OTHERS, 3)]
    for row in rows:
        plain = RunConfig(strategy="er", seed=row["seed"])
        tables = finished_tables(row["run_id"], plain, auc=row["seed"] / 10)
        for name in (*UNUSED, *FORMER_OPTIONS):
            if row[name] is None:
                continue
            column = pa.array([row[name]])
            there = tables["runs"].schema.get_field_index(name)
            table = tables["runs"] if there < 0 else tables["runs"].remove_column(there)
            tables["runs"] = table.append_column(name, column)
        tables["runs"] = tables["runs"].set_column(
            tables["runs"].schema.get_field_index("package_version"), "package_version", pa.array(["0.3.0"])
        )
        store.add(row["run_id"], tables)
        store.flush()
    store.add("f" * 24, finished_tables("f" * 24, RunConfig(strategy="er", seed=3)))
    store.flush()
    return store


def test_reports_show_runs_of_both_versions_as_one_configuration_and_the_others_beside(store: RunStore) -> None:
    runs = RunStore(store.uri).read("runs")
    (while_running,) = recorded_experiments(runs)
    assert sorted(while_running.runs.groupby("cell").size()) == [1, 1, 1, 3]
    (plain,), (others,) = stored_experiments(runs)
    assert [(cell.config.strategy, cell.config.options["memory_fraction"]) for cell in plain.cells] == [("er", 0.25)]
    assert sorted(plain.runs["seed"]) == [1, 2, 3]
    assert sorted(others.runs["run_id"]) == [f"{number:024x}" for number in (3, 4, 5)]
    assert len(others.cells) == 3
    assert set(others.axes) <= {"configuration", *FORMER_OPTIONS}


@pytest.mark.nightly
def test_a_run_with_a_former_option_is_shown_and_not_repeated(
    store: RunStore, clops_sweep: Any, tmp_path: Path
) -> None:
    done = clops_sweep("show", f"{3:024x}", "--results", store.uri)
    assert done.returncode == 0, done.stderr
    assert re.search(r"er_storage_order\s+top", done.stdout)
    (row,) = RunStore(store.uri).read("runs", [f"{3:024x}"]).to_dict("records")
    with pytest.raises(UsageError, match=r"used er_storage_order top, which this version has no longer: .* 0\.3\.0"):
        repeat({str(name): value for name, value in row.items()}, store, tmp_path)
