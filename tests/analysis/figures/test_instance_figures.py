"""Which configurations the pictures of instances show, and what their captions say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.analysis.figures.instance_figures import instance_figures
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.selection import setting, typical_cell
from clops_sweep.experiment.spaces.search_space import Axis
from clops_sweep.store.run_store import RunStore


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
