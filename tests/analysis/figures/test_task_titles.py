"""Tasks by what they hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.figures.task_titles import TaskTitles, task_titles
from clops_sweep.analysis.report.write import write_report
from clops_sweep.data.frames import FrameSet
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing.frames import tiny_frames

HASH = "generated0001"


@pytest.fixture(scope="module")
def frames() -> FrameSet:
    return replace(tiny_frames("class_il"), data_hash=HASH)


def test_titles_are_the_names_of_classes_leads_and_terms(frames: FrameSet) -> None:
    assert task_titles(frames, RunConfig()) == {"0-1": "A / B", "2-3": "C / D", "4-5": "E / F"}
    leads = task_titles(tiny_frames("domain_il"), RunConfig(scenario="domain_il"))
    assert leads == {name: name for name in ("Lead I", "Lead II", "Lead III")}


def test_on_the_paper_s_data_the_paper_s_name_stands_before_it(frames: FrameSet) -> None:
    papers = replace(frames, name="cardiology", lead_names=("ECG",))
    assert task_titles(papers, RunConfig(dataset="cardiology"))["0-1"] == "0-1: A / B"


def test_equal_titles_are_told_apart(frames: FrameSet) -> None:
    same = replace(frames, classes=("A", "B") * 3)
    assert task_titles(same, RunConfig())["2-3"] == "2-3: A / B"


def test_what_cannot_be_built_here_keeps_its_names(frames: FrameSet) -> None:
    unknown = RunConfig.model_construct(**dict(RunConfig()) | {"scenario": "by_ward"})
    assert task_titles(frames, unknown) == {}
    assert task_titles(frames, RunConfig(scenario="time_il")) == {}, "these frames have no dates"


def test_rows_get_titles_from_the_frames_of_their_runs_alone(
    tmp_path: Path, generated: ModuleType, frames: FrameSet
) -> None:
    space = SearchSpace("one", RunConfig(), seeds=[0])
    store = RunStore(tmp_path)
    generated.write_generated_runs(store, [space], instances=4, epochs=1)
    (experiment,) = collect([space], store.read("runs"))
    rows = pd.DataFrame({"task": ["0-1", "8-9"], "training_task": ["2-3", "all tasks"], "auc": [0.5, 0.6]})
    named = TaskTitles([frames]).named(rows, experiment, 0)
    assert named.to_dict("list") == {
        "task": ["A / B", "8-9"],
        "training_task": ["C / D", "all tasks"],
        "auc": [0.5, 0.6],
    }
    for others in ([], [replace(frames, data_hash="other")]):
        assert TaskTitles(others).named(rows, experiment, 0) is rows


def test_the_report_calls_tasks_by_them(tmp_path: Path, generated: ModuleType, frames: FrameSet) -> None:
    """Two tasks: every figure of tasks has their titles, and BWT stands there once."""
    space = SearchSpace(
        "study", RunConfig(), {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.5, 1.0]}, [0, 1]
    )
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space], tasks=("0-1", "2-3"), instances=4, epochs=2)
    paths = write_report([space], store, tmp_path / "report", frames=[frames])
    page = paths.index.read_text("utf-8")
    for figure in ("curves", "r", "forgetting", "s", "similarity", "agreement"):
        drawn = page.split(f'<figure id="study-{figure}">')[1].split("</figure>")[0]
        assert "A / B" in drawn, figure
        assert "0-1<" not in drawn, figure
    names = {path.stem for path in paths.figures}
    assert "study-heatmap-bwt" in names
    assert not names & {"study-heatmap-bwt_t", "study-heatmap-bwt_lambda"}
    assert page.count("BWT_t and BWT_lambda: equal to BWT in every run, as with two tasks; not shown separately.") == 2
    header = next(p for p in paths.tables if p.name == "study-results.md").read_text("utf-8").splitlines()[2]
    assert header.count("BWT") == 1
