"""The mean cost of runs of a kind, and the estimate of pending ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.planning.costs import Costs, estimate, kind_of
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.stores import write_finished

Cost = Callable[[RunConfig], float]

GRID = SearchSpace(
    name="grid",
    base=RunConfig(),
    axes={"storage_fraction": [0.1, 0.25, 0.5, 1.0], "acquisition_fraction": [0.1, 0.5, 1.0]},
    seeds=range(4),
)


def _runs(*spaces: SearchSpace) -> list[PlannedRun]:
    configs = {request.config.run_id("h"): request.config for space in spaces for request in space.requests()}
    return [PlannedRun(run_id, config, "pending") for run_id, config in configs.items()]


def _record(store: RunStore, runs: list[PlannedRun], cost: Cost, device: str = "cpu") -> None:
    """Store finished runs that took what `cost` says."""
    for run in runs:
        row = {"run_id": run.run_id, **config_row(run.config), "status": "finished", "device": device}
        row["seconds"] = cost(run.config)
        table = pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], SCHEMAS["runs"])
        empty = {name: SCHEMAS[name].empty_table() for name in ("r_matrix", "curves", "instances")}
        write_finished(store, str(run.run_id), {"runs": table, **empty})  # type: ignore[dict-item]


def _by_epochs(config: RunConfig) -> float:
    return 0.5 * config.epochs_per_task * (1 + config.storage_fraction)


def test_a_run_costs_the_mean_of_its_kind() -> None:
    costs, base = Costs(), RunConfig(dataset="mitbih", epochs_per_task=10)
    clops, fine, longer, stored = (
        kind_of(vars(base.replace(**change)))
        for change in ({}, {"strategy": "finetune"}, {"epochs_per_task": 30}, {"storage_fraction": 0.9, "seed": 3})
    )
    assert stored == clops
    costs.add(clops, 20)
    costs.add(stored, 40)
    costs.add(fine, 6)
    assert (costs.seconds(clops), costs.seconds(fine), costs.seconds(longer), costs.seconds(None)) == (30, 6, None, 22)


def test_finished_runs_outside_the_request_count_for_kinds_that_have_none(tmp_path: Path) -> None:
    runs = _runs(GRID)
    store = RunStore(tmp_path)
    _record(store, runs[:5], _by_epochs)
    with STRATEGIES.temporarily("forgotten", object):
        _record(store, [PlannedRun("f" * 24, runs[0].config.replace(strategy="forgotten"), "finished")], _by_epochs)
    assert estimate(runs[5:], [], store).finished == 5


def test_a_gpu_does_not_tell_what_a_cpu_takes(tmp_path: Path) -> None:
    runs = _runs(GRID)
    store = RunStore(tmp_path)
    _record(store, runs[:6], _by_epochs)
    _record(store, runs[6:8], lambda config: 3000.0, "cuda:0")
    finished = runs[:8]
    assert estimate(runs[8:], finished, store).devices == {"cpu", "cuda"}
    on_cpu, on_gpu = (estimate(runs[8:], finished, store, device=device) for device in ("cpu", "cuda"))
    assert (on_cpu.finished, on_cpu.devices, on_gpu.finished, on_gpu.devices) == (6, {"cpu"}, 2, {"cuda"})
    assert on_gpu.longest == 3000 / 3600 > on_cpu.longest
