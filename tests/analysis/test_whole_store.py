"""A report of everything in a store."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.as_stored import stored_experiments
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.cost import cost_frontier, draw_cost_frontier
from clops_sweep.analysis.figures.profiles import draw_profile, profile
from clops_sweep.cli.commands import command
from clops_sweep.experiment.spaces.search_space import all_requests
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


def test_configurations_that_only_the_weights_tell_apart_are_all_shown(tmp_path: Path, generated: ModuleType) -> None:
    """The paper has no value of `weight_seed`, so a name made of what differs from the paper does not hold it."""
    base = RunConfig()
    configs = [base.replace(weight_seed=2), base.replace(weight_seed=3), base.replace(storage_fraction=0.5)]
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(config, {"auc": 0.5}) for config in configs])
    ((experiment,), _) = stored_experiments(store.read("runs"))
    assert len(experiment.axes["configuration"]) == len(experiment.cells) == 3


def test_two_versions_of_the_method_are_not_mixed(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(RunConfig(split_seed=split), {"auc": 0.5}) for split in (0, 1)])
    runs = store.read("runs")
    runs.loc[runs["split_seed"] == 0, "semantics_version"] += 1
    ((experiment,), _) = stored_experiments(runs)
    assert experiment.runs["split_seed"].tolist() == [0]
    assert [it.split_seed for it in experiment.left_aside] == [1]


def test_a_run_that_several_cells_share_stands_in_each(tmp_path: Path, generated: ModuleType) -> None:
    """With a = 1 nothing is scored, so random acquisition asks for the same run."""
    variants = {"CLOPS": {}, "Random acquisition": {"acquisition": "random"}}
    grid = SearchSpace("grid", RunConfig(), {"acquisition_fraction": [0.5, 1.0], "variant": variants}, seeds=range(2))
    store = RunStore(tmp_path)
    configs = {request.config.identity: request.config for request in grid.requests()}
    assert len(configs) == 2 * 3
    generated.write_given_runs(
        store, [(c, {"auc": c.acquisition_fraction / 2 + c.seed, "seconds": 1.0}) for c in configs.values()]
    )
    runs = store.read("runs")
    assert len(runs) == 6
    (asked,) = collect([grid], runs)
    assert asked.counts("finished").tolist() == [2, 2, 2, 2]
    assert asked.by_replicate("auc")[2].tolist() == asked.by_replicate("auc")[3].tolist() == [0.5, 1.5]
    ((whole,), _) = stored_experiments(runs)
    assert dict(whole.axes) == {"acquisition_fraction": (0.5, 1.0), "acquisition": ("bald_mcd", "random")}
    assert whole.counts("finished").tolist() == [2, 2, 2, 2]


@pytest.mark.usefixtures("unpainted")
def test_the_command_needs_no_file(tmp_path: Path, generated: ModuleType) -> None:
    results = tmp_path / "results"
    generated.write_generated_runs(RunStore(results), SPACES[1:3])
    options = ["--results", str(results), "--prepared-root", str(tmp_path / "prepared")]
    done = CliRunner().invoke(command, ["report", *options], catch_exceptions=False)
    assert done.exit_code == 0
    page = (results / "report" / "everything" / "index.html").read_text()
    assert "synthetic class_il finetune" in page
    assert "storage_fraction 0.1, acquisition_fraction 1.0" in page
    refused = CliRunner().invoke(command, ["report", *options, "--seeds", "2"], standalone_mode=False)
    assert "expected such a file" in str(refused.exception)
    nothing = CliRunner().invoke(command, ["report", "--results", str(tmp_path)], standalone_mode=False)
    assert "no run is recorded there; name a search-space file" in str(nothing.exception)


def test_many_configurations_without_a_grid_can_be_drawn(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    corners = SearchSpace("corners", RunConfig(), GRID, [0], lambda c: c.storage_fraction < c.acquisition_fraction)
    orders = SearchSpace("orders", RunConfig(), {"task_order": list(range(40))}, seeds=range(2))
    configs = [request.config for request in all_requests([orders, corners])]
    generated.write_given_runs(store, [(config, {"auc": 0.5 + config.seed, "seconds": 1.0}) for config in configs])
    runs = store.read("runs")
    ((experiment,), _) = stored_experiments(runs)
    assert len(experiment.cells) == 41 + 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib says so where names leave no room for the axes
        for figure in (draw_profile(profile(experiment)), draw_cost_frontier(cost_frontier(experiment))):
            assert as_png(figure).startswith(b"\x89PNG")
