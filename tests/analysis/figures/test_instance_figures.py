"""Which configurations the pictures of instances show, and what their captions say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.analysis.figures.instance_figures import instance_figures
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.selection import setting, typical_cell
from clops_sweep.analysis.trained_orders import orders_by_difficulty, orders_in_words
from clops_sweep.experiment.spaces.search_space import Axis
from clops_sweep.planning.curriculum import orders_by_difficulty as resolved_orders
from clops_sweep.store.run_store import RunStore

TASKS = ("0-1", "2-3", "4-5", "6-7")


def experiment_of(space: SearchSpace, store: RunStore) -> Experiment:
    return collect([space], store.read("runs"))[0]


def with_auc(
    tmp_path: Path, generated: ModuleType, axes: dict[str, Axis], auc: Sequence[float], **base: str
) -> Experiment:
    space = SearchSpace("space", RunConfig(**base), axes, seeds=[0])
    store = RunStore(tmp_path)
    configs = [request.config for request in space.requests()]
    generated.write_given_runs(store, [(c, {"auc": value}) for c, value in zip(configs, auc, strict=True)])
    return experiment_of(space, store)


def test_the_typical_cell_has_the_papers_value_on_every_axis(tmp_path: Path, generated: ModuleType) -> None:
    samples = with_auc(tmp_path / "T", generated, {"mc_samples": [5, 10, 20, 50]}, [0.9, 0.8, 0.7, 0.6])
    assert typical_cell(samples, range(4)) == 2
    assert setting(samples.cells[2]) == "T = 20, b = 0.25, a = 0.5"
    ratios = with_auc(tmp_path / "ratio", generated, {"replay_ratio": [0.5, 1.0, 2.0]}, [0.9, 0.6, 0.8], strategy="mir")
    assert typical_cell(ratios, range(3)) == 1
    assert typical_cell(ratios, [0, 2]) == 0  # none is the paper's: the better one
    axes: dict[str, Axis] = {"storage_function": ["squared_area", "area"], "storage_fraction": [0.1, 0.25]}
    functions = with_auc(tmp_path / "function", generated, axes, [0.9, 0.8, 0.7, 0.6])
    assert typical_cell(functions, range(4)) == 3
    assert typical_cell(functions, range(3)) == 1  # as near as 2, and better


def pictures(space: SearchSpace, store: RunStore) -> dict[str, Sketch]:
    items = instance_figures(experiment_of(space, store), store, "x", (), TaskTitles())
    return {item.name: item for item in items if isinstance(item, Sketch)}


def acquisition_space(fractions: list[float]) -> SearchSpace:
    axes: dict[str, Axis] = {"acquisition_fraction": fractions, "acquisition": ["bald_mcd", "random"]}
    return SearchSpace("acquisition", RunConfig(), axes, seeds=range(2))


def test_overlap_is_shown_where_less_than_everything_is_replayed(tmp_path: Path, generated: ModuleType) -> None:
    space = acquisition_space([1.0, 0.1])
    store = RunStore(tmp_path)
    generated.write_generated_runs(store, [space], instances=8, epochs=2)
    assert "Shown: b = 0.25, a = 0.1, T = 20" in pictures(space, store)["x-overlap"].caption


def test_overlap_at_a_of_one_is_said_and_not_drawn(tmp_path: Path, generated: ModuleType) -> None:
    space = acquisition_space([1.0])
    store = RunStore(tmp_path)
    generated.write_generated_runs(store, [space], instances=8, epochs=2)
    assert "x-overlap" not in pictures(space, store)
    said = [
        item
        for item in instance_figures(experiment_of(space, store), store, "x", (), TaskTitles())
        if isinstance(item, str)
    ]
    assert any(text.startswith("Overlap of replays: ") and "(a = 1)" in text for text in said)


def curriculum_store(tmp_path: Path, generated: ModuleType) -> tuple[SearchSpace, SearchSpace, RunStore]:
    """The search space as asked for, as resolved, and a store with all its runs and the one that decides the orders."""
    orders = {
        "Random order": {"task_order": 1},
        "Curriculum": {"task_order": "curriculum"},
        "Anti-curriculum": {"task_order": "anti_curriculum"},
    }
    asked = SearchSpace("task_order", RunConfig(), {"order": orders}, seeds=range(2))
    source = SearchSpace("source", RunConfig(), seeds=[0])
    store = RunStore(tmp_path)
    generated.write_generated_runs(store, [source], instances=30, epochs=2, tasks=TASKS)
    resolved = resolved_orders([r.config for r in asked.requests()], store, lambda config: "generated0001")
    space = SearchSpace(
        asked.name, asked.base, asked.axes, asked.seeds, resolve=lambda config: resolved.get(config) or config
    )
    # trained in another order, so that its own chain starts with the tasks in other places
    generated.write_generated_runs(store, [space], instances=30, epochs=2, tasks=TASKS[::-1])
    return asked, space, store


def test_the_chain_is_that_of_the_run_that_decided_the_curriculum(tmp_path: Path, generated: ModuleType) -> None:
    asked, space, store = curriculum_store(tmp_path, generated)
    source = next(SearchSpace("source", RunConfig(), seeds=[0]).requests()).config.run_id("generated0001")
    order = next(r.config.task_order for r in space.requests() if r.labels["order"] == "Curriculum")
    assert isinstance(order, tuple)
    trained = ", ".join(TASKS[position] for position in order)
    found = orders_by_difficulty(experiment_of(space, store), store)
    assert found is not None
    assert found.run_id == source
    assert list(found.orders) == ["Curriculum", "Anti-curriculum"]
    shown = pictures(space, store)["x-similarity"]
    assert f'"Curriculum": {trained}; "Anti-curriculum": ' in shown.caption
    assert source in shown.caption
    assert f"Curriculum: {trained}." in shown.alt
    # without those rows it is the configuration's own
    assert orders_by_difficulty(experiment_of(asked, store), store) is None
    own = pictures(SearchSpace("random", RunConfig(task_order=1), seeds=range(2)), store)["x-similarity"]
    assert "mean over 2 runs of the configuration b = 0.25, a = 0.5, T = 20" in own.caption


def test_an_order_that_the_source_does_not_give_is_not_called_one(tmp_path: Path, generated: ModuleType) -> None:
    _, space, store = curriculum_store(tmp_path, generated)
    orders = {r.config.task_order for r in space.requests()}
    free = next(
        tuple(map(int, p)) for p in np.array([[1, 0, 3, 2], [2, 0, 1, 3], [0, 3, 1, 2]]) if tuple(p) not in orders
    )
    given = SearchSpace("given", RunConfig(task_order=free), seeds=[0])
    generated.write_generated_runs(store, [given], instances=30, epochs=2, tasks=TASKS)
    assert orders_by_difficulty(experiment_of(given, store), store) is None


def test_equal_orders_are_said_once() -> None:
    orders = {"A": ("x", "y"), "B": ("y", "x"), "C": ("x", "y")}
    assert orders_in_words(orders) == '"A" and "C": x, y; "B": y, x'
