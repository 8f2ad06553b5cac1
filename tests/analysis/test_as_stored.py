"""Runs by plug-ins of a file that is not given: shown by the names that the store has, never a crash."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig
from clops_sweep.analysis.as_stored import stored_experiments
from clops_sweep.cli.commands import command
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import write_finished

TASKS = ("walking / sitting", "stairs / lying", "rest / running")


def write(
    store: RunStore, generated: ModuleType, number: int, *, data_hash: str = "generated0001", **values: Any
) -> str:
    """A finished run whose row holds these values, be they known here or not; others as of CLOPS."""
    run_id = f"{number:024x}"
    config = RunConfig(seed=values.pop("seed", 0), epochs_per_task=2)
    tables = generated.generated_tables(config, run_id, data_hash, tasks=TASKS, epochs=2, instances=6)
    runs = tables["runs"]
    for name, value in values.items():
        column = pa.array([value])
        at = runs.schema.get_field_index(name)
        runs = runs.append_column(name, column) if at < 0 else runs.set_column(at, name, column)
    write_finished(store, run_id, tables | {"runs": runs})
    return run_id


@pytest.fixture
def store(tmp_path: Path, generated: ModuleType) -> RunStore:
    """CLOPS on known data, and a data set, a scenario, a strategy with an option and a function that nobody knows."""
    store = RunStore(tmp_path / "results")
    for seed in range(2):
        config = RunConfig(seed=seed, epochs_per_task=2)
        run_id = config.run_id("generated0001")
        write_finished(store, run_id, generated.generated_tables(config, run_id, tasks=TASKS, epochs=2, instances=6))
        for place, strength in enumerate((1.0, 10.0)):
            number = 16 * (seed + 1) + place
            write(store, generated, number, seed=seed, strategy="my_ewc", my_ewc_strength=strength, pulled=100 * number)
        write(store, generated, 256 + seed, seed=seed, dataset="wearable", scenario="by_ward", leads="all")
        write(store, generated, 512 + seed, seed=seed, acquisition="mine", storage_fraction=0.1 * (1 + seed))
    return store


def test_records(store: RunStore) -> None:
    runs = store.read("runs")
    (known,), others = stored_experiments(runs)
    assert len(known.runs) == 2
    found = {experiment.name: experiment for experiment in others}
    assert sorted(found) == [
        "synthetic class_il clops, as stored",
        "synthetic class_il my_ewc, as stored",
        "wearable by_ward clops, as stored",
    ]
    ewc = found["synthetic class_il my_ewc, as stored"]
    assert dict(ewc.axes) == {"my_ewc_strength": (1.0, 10.0)}, "an option, and no column that counts something"
    assert ewc.counts("finished").tolist() == [2, 2]
    for cell in ewc.cells:
        rows = runs[(runs["strategy"] == "my_ewc") & (runs["my_ewc_strength"] == cell.labels["my_ewc_strength"])]
        here = ewc.by_replicate("auc")[ewc.cells.index(cell)]
        assert here.tolist() == rows.sort_values("seed")["auc"].tolist()
    wearable = found["wearable by_ward clops, as stored"]
    assert (wearable.axes, wearable.cells[0].config.scenario) == ({}, "by_ward")
    assert str(wearable.shown[0]).startswith(
        "wearable (by_ward, all leads together, patient split 0), data generated000"
    )
    mine = found["synthetic class_il clops, as stored"]
    assert mine.counts("finished").sum() == 2
    assert mine.replicates == ((0, 0), (0, 1))


def test_what_cannot_be_told_apart_is_not_put_together(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    for number in range(2):
        write(store, generated, number, strategy="my_ewc")
    _, (experiment,) = stored_experiments(store.read("runs"))
    assert list(experiment.axes) == ["run_id"]
    assert experiment.counts("finished").tolist() == [1, 1]


def test_the_newest_data_are_shown_and_the_others_named(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    write(store, generated, 1, strategy="my_ewc")
    write(store, generated, 2, strategy="my_ewc", data_hash="generated0002", semantics_version=9)
    _, (experiment,) = stored_experiments(store.read("runs"))
    assert [edition.data_hash for edition in experiment.shown] == ["generated0002"]
    assert [edition.data_hash for edition in experiment.left_aside] == ["generated0001"]
    assert len(experiment.runs) == 1


@pytest.mark.usefixtures("unpainted")
def test_the_report_of_the_whole_store(store: RunStore, tmp_path: Path) -> None:
    options = ["--results", store.uri, "--prepared-root", str(tmp_path / "prepared")]
    done = CliRunner().invoke(command, ["report", *options], catch_exceptions=False)
    assert done.exit_code == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("clops-sweep: ")] == [
        "clops-sweep: 2 runs are shown with the names in the store only: acquisition 'mine' is not registered here",
        "clops-sweep: 4 runs are shown with the names in the store only: strategy 'my_ewc' is not registered here",
        "clops-sweep: 2 runs are shown with the names in the store only: scenario 'by_ward' is not registered here",
    ]
    page = (Path(store.uri) / "report" / "everything" / "index.html").read_text("utf-8")
    for name in (
        "wearable by_ward clops",
        "synthetic class_il my_ewc",
        "my_ewc, minus clops",
        "my_ewc_strength",
    ):
        assert name in page, name
    assert "10 of 10 runs are finished" in page
