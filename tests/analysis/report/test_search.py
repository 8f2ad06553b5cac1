"""Figures and tables of Optuna searches, from studies and stores with numbers written by hand."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.drawing.svg import as_svg
from clops_sweep.analysis.figures.optimization_history import (
    draw_optimization_history,
    optimization_history,
)
from clops_sweep.analysis.figures.slices import MethodSlices, draw_slices, draw_slices_of_methods, slices
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.report.setup_table import Shown, setup_text
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.search_trials import collect_with_searches
from clops_sweep.errors import UsageError
from clops_sweep.search.records import StudyRecord, TrialRecord
from clops_sweep.search.study import open_study
from clops_sweep.store.run_store import RunStore


def search_space(trials: int = 5, **arguments: Any) -> SearchSpace:
    search = OptunaSearch(
        parameters={
            "storage_fraction": FloatDistribution(0.1, 0.9, step=0.1),
            "storage": {"by beta": {}, "random": {"storage_order": "random"}},
        },
        n_trials=trials,
        **arguments,
    )
    return SearchSpace(name="tuned", base=RunConfig(), search=search, seeds=range(2))


def record(objectives: dict[str, Any], *values: tuple[float, ...] | None) -> StudyRecord:
    trials = [
        TrialRecord(number, "complete", {"storage_fraction": 0.1 * (number + 1), "storage": "random"}, value)
        if value is not None
        else TrialRecord(number, "pruned", {"storage_fraction": 0.5, "storage": "by beta"}, None, {1: 0.6, 2: 0.55})
        for number, value in enumerate(values)
    ]
    directions = list(objectives.values())
    study = optuna.create_study(directions=directions)
    for value in values:
        state = TrialState.PRUNED if value is None else TrialState.COMPLETE
        study.add_trial(optuna.trial.create_trial(values=value, state=state))
    return StudyRecord("tuned", objectives, tuple(trials), tuple(trial.number for trial in study.best_trials))


def test_history_holds_the_best_up_to_each_trial() -> None:
    (up,) = optimization_history(record({"auc": "maximize"}, (0.7,), None, (0.6,), (0.9,), (0.8,)))
    assert up.numbers.tolist() == [0, 2, 3, 4]
    assert up.best.tolist() == [0.7, 0.7, 0.9, 0.9]
    assert (up.pruned_numbers.tolist(), up.pruned_values.tolist()) == ([1], [0.55])
    first, second = optimization_history(
        record({"auc": "maximize", "seconds": "minimize"}, (0.7, 30.0), (0.6, 20.0), (0.8, 25.0))
    )
    assert (first.best.tolist(), second.best.tolist()) == ([0.7, 0.7, 0.8], [30.0, 20.0, 20.0])
    assert as_png(draw_optimization_history([up])).startswith(b"\x89PNG")
    assert as_png(draw_optimization_history([first, second])).startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="search 'tuned' has no complete trial yet"):
        optimization_history(record({"auc": "maximize"}, None))


def auc(config: RunConfig) -> float:
    return 0.5 + 0.4 * config.storage_fraction - 0.02 * config.seed - 0.05 * (config.storage_order == "random")


def filled(folder: Path, generated: ModuleType, space: SearchSpace) -> RunStore:
    """A store with a study in which the last trial is pruned and the one before it has failed."""
    store = RunStore(folder)
    store.open_for_writing()
    study = open_study(space, store, {})
    for number in range(space.search.n_trials):
        trial = study.ask()
        configs = [space.base.replace(**space.search.settings(trial.labels), seed=seed) for seed in space.seeds]
        trial.record_runs([config.run_id("generated0001") for config in configs])
        if number == space.search.n_trials - 1 and space.search.pruning:
            trial.report(0.51, tasks=1)
            study.tell(trial, "pruned")
        elif number == space.search.n_trials - 2:
            study.tell(trial, "failed", error="run 0123 has failed")
        else:
            rows = [
                (config, {"auc": auc(config), "bwt": -config.storage_fraction, "seconds": 3.0}) for config in configs
            ]
            generated.write_given_runs(store, rows)
            means = {name: float(np.mean([given[name] for _, given in rows])) for name in rows[0][1]}
            means["storage_fraction"] = configs[0].storage_fraction
            study.tell(trial, "complete", [means[name] for name in space.objectives])
    return store


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pruning": True}, {"tuned-history", "tuned-importance-auc", "tuned-slices"}),
        (
            {"objectives": {"auc": "maximize", "bwt": "maximize", "storage_fraction": "minimize"}},
            {"tuned-history", "tuned-pareto", "tuned-importance-auc", "tuned-importance-bwt", "tuned-slices"},
        ),
    ],
)
def test_the_report_shows_a_search(
    tmp_path: Path, generated: ModuleType, arguments: dict[str, Any], expected: set[str]
) -> None:
    space = search_space(20, **arguments)
    store = filled(tmp_path / "results", generated, space)
    paths = write_report([space], store, tmp_path / "report")
    figures = {path.stem for path in paths.figures if path.stem.startswith("tuned")}
    assert figures == expected
    assert "The value of every complete trial, as mean over its runs" in paths.index.read_text(), (
        "also of several splits"
    )
    assert {path.suffix for path in paths.figures} == {".pdf", ".png", ".svg", ".tex"}
    assert {path.name for path in paths.tables if path.stem == "tuned-trials"} == {
        f"tuned-trials.{ending}" for ending in ("md", "tex", "csv")
    }
    page = paths.index.read_text()
    pruned = ", 1 pruned" if "pruning" in arguments else ""
    complete = 18 if pruned else 19
    assert f"20 of 20 trials: {complete} complete{pruned}, 1 failed." in page
    assert "Trial 18 failed: run 0123 has failed." in page
    assert "no finished run with learning curves" in page  # written by hand, the runs have none


@pytest.mark.usefixtures("unpainted")
def test_few_trials_have_no_importance_of_parameters(tmp_path: Path, generated: ModuleType) -> None:
    space = search_space(9)
    store = filled(tmp_path / "results", generated, space)
    paths = write_report([space], store, tmp_path / "report")
    assert not [path for path in paths.figures if "importance" in path.stem]
    assert "importance needs 10 trials with finished runs; there are" in paths.index.read_text()


def test_the_set_up_has_the_declared_range_of_a_parameter(tmp_path: Path, generated: ModuleType) -> None:
    space = search_space(3)
    store = filled(tmp_path, generated, space)
    ((experiment, _),) = collect_with_searches([space], store, [], (), store.read("runs"))
    shown = Shown(replace(experiment, is_tuning=True), TaskTitles(), space)
    facts = setup_text([shown], "setup").data.set_index("fact")["value"]
    assert re.search(r"b 0\.\d to 0\.\d \(declared: 0\.1 to 0\.9\)", facts["tuning"]), facts["tuning"]


@pytest.mark.parametrize(("other", "unit"), [("one", "methods"), ("two", "tuned methods")])
def test_the_set_up_says_for_how_many_searches_a_number_of_trials_holds(
    other: str, unit: str, tmp_path: Path, generated: ModuleType
) -> None:
    space = search_space(3)
    store = filled(tmp_path, generated, space)
    ((experiment, _),) = collect_with_searches([space], store, [], (), store.read("runs"))
    tuning = []
    for name in ("one_selection_er", "one_selection_clops", f"{other}_selection_gem"):
        tuning.append(Shown(replace(experiment, name=name, is_tuning=True), TaskTitles(), space))

    def tried(shown: list[Shown]) -> str:
        return next(str(row[1].text) for row in setup_text(shown, "setup").rows if row[0].text == "tuning")

    assert tried(tuning).startswith(f"2 configurations tried for each of 3 {unit}, ")
    assert tried(tuning[:1]).startswith("2 configurations tried, ")
    fewer = Shown(replace(tuning[0].experiment, cells=experiment.cells[:1]), TaskTitles(), space)
    said = tried([fewer, *tuning[1:]])
    assert "er: 1 configuration tried, " in said
    assert f"gem: 2 configurations tried for each of 2 {unit}, " in said


def test_a_parameter_has_the_scale_of_its_range() -> None:
    labels = [{"rate": value, "width": value, "listed": value} for value in (1e-3, 2e-3, 0.5)]
    trials = tuple(TrialRecord(at, "complete", it, (0.5,)) for at, it in enumerate(labels))
    close = tuple(replace(it, labels=dict.fromkeys(it.labels, at + 1.0)) for at, it in enumerate(trials))
    for of_study, listed in ((trials, "log"), (close, "linear")):
        found = slices(StudyRecord("s", {"auc": "maximize"}, of_study), {"rate": True, "width": False})
        scales = {axes.get_xlabel(): axes.get_xscale() for axes in draw_slices(found).axes}
        assert scales == {"rate": "log", "width": "linear", "listed": listed}


@pytest.mark.parametrize(
    ("counts", "rows"),
    [([1] * 6, [3, 3]), ([1, 1, 2, 1], [2, 3]), ([4, 1, 1], [4, 2]), ([2, 2], [2, 2])],
)
def test_slices_of_methods_share_rows_of_three_panels(counts: list[int], rows: list[int]) -> None:
    """Six methods with one parameter each were a column that was six panels high."""
    methods = []
    for position, count in enumerate(counts):
        labels = [{f"p{name}": value for name in range(count)} for value in (1, 2)]
        trials = tuple(TrialRecord(at, "complete", it, (0.5 + at,)) for at, it in enumerate(labels))
        methods.append(MethodSlices(f"m{position}", slices(StudyRecord("s", {"auc": "maximize"}, trials))))
    figure = draw_slices_of_methods(methods)
    as_png(figure)
    drawn = [axes for axes in figure.axes if axes.axison]
    heights = Counter(round(axes.get_position().y0, 2) for axes in drawn)
    assert [heights[height] for height in sorted(heights, reverse=True)] == rows
    assert len(drawn) == sum(counts)
    titles = [axes.get_title(loc="left") for axes in drawn]
    first_panels = np.cumsum([0, *counts[:-1]])
    assert [titles[panel] for panel in first_panels] == [f"m{position}" for position in range(len(counts))]
    assert titles.count("") == sum(counts) - len(counts)


@pytest.mark.parametrize("rates", [(1.1e-3, 4.8e-3), (1e-3, 2e-3), (1e-5, 1e-1)])
def test_a_log_axis_has_plain_numbers(rates: tuple[float, float]) -> None:
    """Text of TeX, such as that of Matplotlib's formatter of log axes, is shown as it is on a page."""
    of_study = tuple(TrialRecord(n, "complete", {"rate": rate}, (0.5,)) for n, rate in enumerate(rates))
    found = slices(StudyRecord("s", {"auc": "maximize"}, of_study), {"rate": True})
    figure = draw_slices(found)
    as_png(figure)
    drawn = as_svg(figure, "slices", "slices")
    assert "mathdefault" not in drawn
    labels = [float(text) for text in re.findall(r">([\d.e-]+)</text>", drawn)]
    assert len([it for it in labels if rates[0] <= it <= rates[1] and it < 0.4]) >= 2
