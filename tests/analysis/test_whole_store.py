"""A report of everything in a store."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.as_stored import stored_experiments
from clops_sweep.cli.commands import command
from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.store.run_store import RunStore

GRID = {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 1.0]}
SPACES = [
    SearchSpace("grid", RunConfig(), GRID, seeds=[0, 4]),
    SearchSpace("orders", RunConfig(strategy="finetune"), {"task_order": ["sequential", 1, (1, 0)]}, seeds=[2]),
    SearchSpace(
        "corners",
        RunConfig(strategy="mir"),
        GRID,
        seeds=[0],
        where=lambda c: c.storage_fraction < c.acquisition_fraction,
    ),
    SearchSpace("splits", RunConfig(dataset="mitbih"), {"split_seed": [0, 3]}, seeds=[0]),
]


def test_experiments_hold_the_runs_that_are_there(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    generated.write_generated_runs(store, SPACES, fails=lambda config: config.seed == 4)
    runs = store.read("runs")
    found, others = stored_experiments(runs)
    assert others == []
    by_name = {it.name: it for it in found}
    assert sorted(by_name) == [
        "mitbih class_il clops",
        "synthetic class_il clops",
        "synthetic class_il finetune",
        "synthetic class_il mir",
    ]
    assert by_name["synthetic class_il clops"].axes == {axis: tuple(labels) for axis, labels in GRID.items()}
    assert by_name["mitbih class_il clops"].axes == {}
    assert by_name["mitbih class_il clops"].replicates == ((0, 0), (3, 0))
    assert list(by_name["synthetic class_il mir"].axes) == ["configuration"]
    assert sorted(run_id for it in found for run_id in it.runs["run_id"]) == sorted(runs["run_id"])
    configs = {cell.config for it in found for cell in it.cells}
    assert configs <= {request.config for request in all_requests(SPACES)}


@pytest.mark.usefixtures("unpainted")
@pytest.mark.nightly
def test_the_command_needs_no_file(tmp_path: Path, generated: ModuleType) -> None:
    results = tmp_path / "results"
    generated.write_generated_runs(RunStore(results), SPACES[1:3])
    options = ["--results", str(results), "--prepared-root", str(tmp_path / "prepared")]
    done = CliRunner().invoke(command, ["report", *options], catch_exceptions=False)
    assert done.exit_code == 0
    page = (results / "report" / "everything" / "index.html").read_text()
    assert "synthetic class_il finetune" in page
    assert "storage_fraction 0.1, acquisition_fraction 1.0" in page
    nothing = CliRunner().invoke(command, ["report", "--results", str(tmp_path)], standalone_mode=False)
    assert "no run is recorded there; name a search-space file" in str(nothing.exception)
