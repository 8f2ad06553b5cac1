"""The estimate against sweeps whose costs are known, because they are drawn from a model of our own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.registry import STRATEGIES
from clops_sweep.planning.cost_model import Load, Measured
from clops_sweep.planning.estimate import CONFIDENCE, Estimate, estimate
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS

Cost = Callable[[RunConfig], tuple[float, float, float]]

GRID = SearchSpace(
    name="grid",
    base=RunConfig(),
    axes={"storage_fraction": [0.1, 0.25, 0.5, 1.0], "acquisition_fraction": [0.1, 0.5, 1.0], "mc_samples": [5, 20]},
    seeds=range(4),
)


def _runs(*spaces: SearchSpace) -> list[PlannedRun]:
    """The runs that spaces ask for; cells that must give the same numbers share one."""
    configs = {request.config.run_id("h"): request.config for space in spaces for request in space.requests()}
    return [PlannedRun(run_id, config, "pending") for run_id, config in configs.items()]


def _load(config: RunConfig, epochs: float = math.inf) -> Load:
    return Load.of(config.model_dump(mode="json"), epochs)


def _record(store: RunStore, runs: list[PlannedRun], cost: Cost, device: str = "cpu") -> None:
    """Finished runs that took what `cost` says, as one part of the table."""
    rows = []
    for number, run in enumerate(runs):
        train, acquire, evaluate = cost(run.config)
        row = {"run_id": run.run_id, **config_row(run.config), "status": "finished", "device": device}
        row |= {"seconds_train": train, "seconds_acquire": acquire, "seconds_evaluate": evaluate}
        row |= {"started_at": 1_000_000 * number}
        options = {name: [value] for name, value in run.config.options.items()}
        rows.append(({name: row.get(name) for name in SCHEMAS["runs"].names}, pa.table(options)))
    for row, options in rows:
        table = pa.Table.from_pylist([row], schema=SCHEMAS["runs"])
        for option in options.column_names:
            table = table.append_column(option, options[option])
        empty = {name: SCHEMAS[name].empty_table() for name in ("r_matrix", "curves", "instances")}
        store.write_finished(row["run_id"], {"runs": table, **empty})  # type: ignore[dict-item]


def _by_the_paper(config: RunConfig) -> tuple[float, float, float]:
    """A cost worked out by hand from what a CLOPS run of six tasks does, 100 frames each, in microseconds a frame."""
    train = acquire = evaluate = 0.0
    for past in range(6):
        memory = config.storage_fraction * 100 * past
        train += 240e-6 * config.epochs_per_task * (100 + config.acquisition_fraction * memory)
        if config.acquisition_fraction < 1:
            acquire += 2.7e-6 * config.epochs_per_task * config.mc_samples * memory
        evaluate += 4e-6 * (config.epochs_per_task * 6 * 27 + 6 * 34)
    return train, acquire, evaluate


def test_what_a_run_consists_of() -> None:
    """Four tasks of ten epochs: what is trained on and scored is the strategy's to say."""
    assert _load(RunConfig(dataset="mitbih", strategy="finetune", epochs_per_task=10)).work == (40, 0, 4 * 4 * 11)
    config = RunConfig(dataset="mitbih", epochs_per_task=10, storage_fraction=0.5, acquisition_fraction=0.5)
    assert _load(config).work == (40 + 10 * 0.25 * (1 + 2 + 3), 10 * 20 * 0.5 * (1 + 2 + 3), 4 * 4 * 11)
    assert _load(config, epochs=15).work == (15 + 5 * 0.25, 5 * 20 * 0.5, 4 * (11 + 5))
    with STRATEGIES.temporarily("says_nothing", object):
        nothing = config.replace(strategy="says_nothing")
        assert _load(nothing).work == _load(config.replace(strategy="replay")).work


def test_a_sweep_that_costs_what_the_model_says(tmp_path: Path) -> None:
    """From one run all others follow, other epochs and fractions among them."""
    runs = _runs(GRID, SearchSpace(name="longer", base=RunConfig(epochs_per_task=37), seeds=[0]))
    store = RunStore(tmp_path)
    _record(store, runs[:1], _by_the_paper)
    found = estimate(runs[1:], runs[:1], store)
    true = sum(sum(_by_the_paper(run.config)) for run in runs[1:])
    assert found.hours * 3600 == pytest.approx(true, rel=0.1)
    assert (found.known, found.unknown, found.finished, found.measured) == (80, (), 1, 0)
    dearest = max(sum(_by_the_paper(run.config)) for run in runs[1:])
    assert found.longest * 3600 == pytest.approx(dearest, rel=0.1)


def test_nothing_is_known_of_other_kinds(tmp_path: Path) -> None:
    runs = _runs(GRID)
    others = _runs(SearchSpace(name="other", base=RunConfig(strategy="finetune"), seeds=range(3)))
    store = RunStore(tmp_path)
    nothing = estimate([*runs, *others], [], store)
    assert (nothing.hours, nothing.known, nothing.unknown) == (0, 0, (*runs, *others))
    _record(store, runs[:4], _by_the_paper)
    some = estimate([*runs[4:], *others], runs[:4], store)
    assert (some.known, some.unknown) == (76, tuple(others))
    assert some.hours == estimate(runs[4:], runs[:4], store).hours
    assert estimate([], runs[:4], store) == Estimate()


def test_finished_runs_that_nobody_asks_for_any_more_tell_too(tmp_path: Path) -> None:
    runs = _runs(GRID)
    store = RunStore(tmp_path)
    _record(store, runs[:5], _by_the_paper)
    with STRATEGIES.temporarily("forgotten", object):
        _record(store, [PlannedRun("f" * 24, runs[0].config.replace(strategy="forgotten"), "finished")], _by_the_paper)
    assert estimate(runs[5:], [], store).finished == 5


def test_what_a_strategy_does_may_depend_on_its_options(tmp_path: Path) -> None:
    """A step of A-GEM holds another batch, as large as an option says: a column that not every store has."""

    def cost(config: RunConfig) -> tuple[float, float, float]:
        trained = 100 * config.epochs_per_task * (6 + 5 * config.get("agem_batch_size") / 16)
        return 240e-6 * trained, 0.0, _by_the_paper(config)[2]

    runs = _runs(SearchSpace("agem", RunConfig(strategy="agem"), {"agem_batch_size": [16, 256]}, seeds=[0]))
    store = RunStore(tmp_path)
    _record(store, runs[:1], cost)
    assert estimate(runs[1:], runs[:1], store).hours * 3600 == pytest.approx(sum(cost(runs[1].config)), rel=0.1)


def test_a_gpu_does_not_tell_what_a_cpu_takes(tmp_path: Path) -> None:
    runs = _runs(GRID)
    store = RunStore(tmp_path)
    _record(store, runs[:6], _by_the_paper)
    _record(store, runs[6:8], lambda config: (10.0, 10.0, 10.0), "cuda:0")
    finished = runs[:8]
    assert estimate(runs[8:], finished, store).devices == {"cpu"}
    assert estimate(runs[8:], finished, store, device="cpu").finished == 6
    on_gpus = estimate(runs[8:], finished, store, device="cuda")
    assert (on_gpus.finished, on_gpus.devices) == (2, {"cuda"})
    assert on_gpus.hours > 5 * estimate(runs[8:], finished, store).hours


def test_short_runs_count_until_one_is_finished(tmp_path: Path) -> None:
    runs = _runs(GRID)
    store = RunStore(tmp_path)
    short = runs[30].config.replace(epochs_per_task=2)
    measured = Measured(_load(short), _by_the_paper(short), "cpu")
    found = estimate(runs, [], store, [measured])
    true = sum(sum(_by_the_paper(run.config)) for run in runs)
    assert found.hours * 3600 == pytest.approx(true, rel=0.1)
    assert (found.finished, found.measured) == (0, 1)
    assert found.low * 3600 < true < found.high * 3600
    half = Measured(_load(short, 7), [0.5 * seconds for seconds in _by_the_paper(short)], "cpu")
    assert sum(half.load.work) < sum(measured.load.work)
    assert estimate(runs, [], store, [half]).known == len(runs)
    _record(store, runs[:1], _by_the_paper)
    assert (lambda e: (e.finished, e.measured))(estimate(runs[1:], runs[:1], store, [measured])) == (1, 0)


@pytest.mark.parametrize("finished", [1, 12, 60])
@pytest.mark.parametrize(
    ("of_cells", "of_runs", "of_hours"),
    [(0.02, 0.02, 0.0), (0.25, 0.1, 0.1), (0.05, 0.3, 0.2)],
    ids=["a quiet machine", "a model that is off", "a busy machine"],
)
def test_the_true_cost_lies_in_the_interval_as_often_as_it_says(
    finished: int, of_cells: float, of_runs: float, of_hours: float
) -> None:
    """Sweeps with log-normal effects of configuration, of run, and of the hour, on top of a cost of another shape."""
    runs = _runs(GRID)
    loads, costs = [_load(run.config) for run in runs], np.array([_by_the_paper(run.config) for run in runs])
    rounds, inside = 100, 0
    for number in range(rounds):
        draw = np.random.default_rng([number, finished])
        cells = {load: draw.normal(0, of_cells) for load in loads}
        order = draw.permutation(len(runs))
        hours = np.repeat(draw.normal(0, of_hours, 8), len(runs) // 8)  # stretches of time
        effects = np.array([cells[loads[place]] for place in order]) + draw.normal(0, of_runs, len(runs)) + hours
        taken = costs[order] * np.exp(effects)[:, None]
        known = [Measured(loads[order[when]], taken[when], "cpu") for when in range(finished)]
        found = estimate([runs[place] for place in order[finished:]], [], _EMPTY, known)
        inside += found.low * 3600 < taken[finished:].sum() < found.high * 3600
    assert inside / rounds > CONFIDENCE - 0.06


def test_the_interval_narrows_with_what_is_known() -> None:
    runs = _runs(GRID)
    draw = np.random.default_rng(0)
    widths = []
    for finished in (1, 4, 16, 64):
        known = []
        for run in runs[:finished]:
            noise = math.exp(draw.normal(0, 0.03))
            known.append(Measured(_load(run.config), [part * noise for part in _by_the_paper(run.config)], "cpu"))
        found = estimate(runs[64:], [], _EMPTY, known)
        widths.append(found.high / found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1.5


_EMPTY = RunStore("/nonexistent/clops-sweep-store")
