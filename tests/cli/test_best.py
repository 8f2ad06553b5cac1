"""The best configurations at the end of a launch, and in the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.cli.commands import command
from tests.data.declared_files import forget
from tests.helpers.unpainted import unpainted

FILE = """
import numpy as np

from clops_sweep import OptunaSearch, Recordings, RunConfig, SearchSpace, TuneOn, dataset


@dataset("wearable", scenarios=["class_il_union"])
def wearable(data_root):
    y = np.arange(480) % 4
    x = np.random.default_rng(0).normal(size=(480, 1, 50)) + y[:, None, None]
    names = ["lie", "sit", "stand", "walk"]
    return Recordings(x, 50, ["az"], "g", labels=y, classes=names, patients=np.arange(480) // 16)


BASE = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", epochs_per_task=1)
"""
GRID = """
AXES = {"method": {"ER": {"strategy": "er"}, "fine-tuning": {}, "again": {"batch_size": 57}}, "split_seed": range(2)}
SPACE = SearchSpace("own", BASE.replace(strategy="finetune"), AXES, seeds=range(2))
"""
TIES = """
SPACE = SearchSpace("own", BASE, {"strategy": ["finetune", "er"]}, seeds=range(2))
"""
TUNED = """
METHODS = {"ER": {"strategy": "er", "replay_ratio": [0.5, 1]}, "fine-tuning": {"strategy": "finetune"}}
TRIED = OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(splits=(100,), seeds=(0,)))
SPACE = SearchSpace("own", BASE, {"split_seed": range(2)}, search=TRIED, seeds=range(2))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    forget("wearable")
    yield
    forget("wearable")


def _launch(space: str, *words: str) -> str:
    Path("own.py").write_text(FILE + space)
    run = CliRunner(env={"CLOPS_PREPARED_ROOT": "prepared"}).invoke
    done = run(command, ["own.py", "--no-ray", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def _rows(lines: list[str], title: str) -> list[list[str]]:
    """Return the cells of the table below a title, its header first."""
    first = next(number for number, line in enumerate(lines) if line.startswith(title)) + 1
    rows = []
    for line in lines[first:]:
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        if len(cells) < 5:
            break
        rows.append(cells)
    return rows


def test_configurations_have_mean_range_runs_and_the_run_closest_to_the_mean() -> None:
    lines = _launch(GRID).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("configurations of"))
    assert max(len(line.rstrip()) for line in lines[first : first + 6]) <= 100
    header, *rows = _rows(lines, "configurations of 'own', best first: mean balanced accuracy; run_id: ")
    assert header == ["configuration", "validation", "lowest to highest", "test", "forgetting", "runs", "run_id"]
    runs = pd.read_parquet("results/runs")
    assert [row[0] for row in rows] == pd.read_csv("results/report/own/tables/best.csv")[
        "configuration"
    ].unique().tolist()
    for _, validation, spread, test, _, count, run_id in rows:
        (chosen,) = runs.index[runs["run_id"].str.startswith(run_id)]
        alike = runs[(runs["strategy"] == runs.loc[chosen, "strategy"])]
        alike = alike[alike["batch_size"] == runs.loc[chosen, "batch_size"]]
        scores = alike["balanced_accuracy"]
        assert count == "4 on 2 splits"
        assert validation == f"{scores.mean():.3f}"
        assert spread == f"{scores.min():.3f} to {scores.max():.3f}"
        assert test == f"{alike['test_balanced_accuracy'].mean():.3f}"
        assert chosen == (scores - scores.mean()).abs().idxmin()


def test_ties_are_named_at_the_launch_and_in_the_report() -> None:
    output = _launch(TIES, "--set", "learning_rate=1e-12", "--seeds", "2")
    assert "tied for the best, with equal means to three decimals: all 2 configurations" in output
    page = Path(output.splitlines()[-1].removeprefix("report: ")).read_text()
    assert "with equal means to three decimals: all 2 configurations." in page


def test_a_tuned_sweep_ends_with_test_scores_of_reported_runs_before_the_tuning() -> None:
    lines = _launch(TUNED, "--no-report").splitlines()
    header, *rows = _rows(lines, "reported runs of 'own': mean balanced accuracy; run_id: ")
    assert header[:4] == ["configuration", "test", "validation", "lowest to highest"]
    assert {row[0] for row in rows} == {"ER", "fine-tuning"}
    beginnings = [line.split(" of '")[0] for line in lines if line.startswith(("reported runs of", "tuning of"))]
    assert beginnings == ["reported runs", "tuning"]
    assert lines[-3].startswith("search 'own_selection_ER': 2 trials asked for")
    header, *_ = _rows(lines, "tuning of 'own' on ")
    assert {"validation", "test"} <= {*header}


def test_json_has_the_best_configurations() -> None:
    (table,) = json.loads(_launch(TIES, "--json", "--no-report"))["best"]
    assert (table["space"], table["configurations"], table["is_reported"]) == ("own", 2, False)
    assert {row["name"] for row in table["best"]} == {"finetune", "er"}
    assert all(row["runs"] == 2 and len(row["run_id"]) == 24 for row in table["best"])
