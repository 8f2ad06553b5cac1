"""The best configurations at the end of a launch, and in the report."""

from __future__ import annotations

import json
import re
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
PLAIN = """
AXES = {"method": {"ER": {"strategy": "er"}, "fine-tuning": {}, "again": {"batch_size": 57}}, "split_seed": range(3)}
SPACE = SearchSpace("own", BASE.replace(strategy="finetune"), AXES, seeds=range(2))
"""
GRID = """
AXES = {"strategy": ["er", "clops"], "storage_fraction": [0.1, 0.5], "split_seed": range(2)}
SPACE = SearchSpace("own", BASE, AXES, seeds=range(2))
"""
SECOND = """
SPACE = [SPACE, SearchSpace("alone", BASE.replace(strategy="finetune"), {"split_seed": range(2)}, seeds=range(2))]
"""
TIES = """
SPACE = SearchSpace("own", BASE, {"strategy": ["finetune", "er"]}, seeds=range(2))
"""
TUNED = """
METHODS = {"ER": {"strategy": "er", "replay_ratio": [0.5, 1]}, "fine-tuning": {"strategy": "finetune"}}
TRIED = OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(splits=(100,), seeds=(0,)))
SPACE = SearchSpace("own", BASE, {"split_seed": range(2)}, search=TRIED, seeds=range(2))
"""


RANKED = "Ranked by"
"""The rule is printed where a configuration is chosen, and nowhere else."""


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


CELL = re.compile(r"\S+(?: \S+)*")
"""A cell of a table on the terminal, between two spaces or more."""


def _rows(lines: list[str], title: str) -> list[list[str]]:
    """Return the cells of the table below a title, its header first; a heading may have several lines."""
    first = next(number for number, line in enumerate(lines) if line.startswith(title)) + 1
    last = next(number for number, line in enumerate(lines) if number >= first and not line.startswith(" "))
    places = [(cell.start(), cell.end()) for cell in CELL.finditer(lines[last])]
    headings = [""] * len(places)
    for line in lines[first : last + 1]:
        for cell in CELL.finditer(line):
            (column,) = [it for it, (start, end) in enumerate(places) if cell.start() < end and start < cell.end()]
            headings[column] = f"{headings[column]} {cell[0]}".strip()
    rows = [headings]
    for line in lines[last + 1 :]:
        cells = CELL.findall(line)
        if len(cells) != len(places):
            break
        rows.append(cells)
    return rows


def _columns(lines: list[str], title: str) -> list[dict[str, str]]:
    """Return the rows of the table below a title by heading."""
    header, *rows = _rows(lines, title)
    return [dict(zip(header, row, strict=True)) for row in rows]


def _best_of_report() -> pd.DataFrame:
    return pd.read_csv("results/report/own/tables/best.csv")


@pytest.mark.nightly
def test_configurations_that_are_compared_begin_with_test_scores() -> None:
    lines = _launch(PLAIN).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("configurations of"))
    assert max(len(line.rstrip()) for line in lines[first : first + 6]) <= 100
    header, *rows = _rows(lines, "configurations of 'own', best first")
    assert header[:4] == ["configuration", "n", "test balanced accuracy", "validation balanced accuracy"]
    assert header[4:] == ["test forgetting", "run_id"]
    of_report = _best_of_report()
    assert [row[0] for row in rows] == of_report["configuration"].unique().tolist()
    runs = pd.read_parquet("results/runs")
    means = []
    for name, n, test, validation, forgetting, run_id in rows:
        (chosen,) = runs.index[runs["run_id"].str.startswith(run_id)]
        alike = runs[(runs["strategy"] == runs.loc[chosen, "strategy"])]
        alike = alike[alike["batch_size"] == runs.loc[chosen, "batch_size"]]
        scores = alike["test_balanced_accuracy"]
        assert n == "3 splits"
        assert test.split()[0] == f"{scores.mean():.3f}"
        assert validation == f"{alike['balanced_accuracy'].mean():.3f}"
        forgotten = alike["test_balanced_accuracy_forgetting"]
        of_forgetting = of_report[(of_report["configuration"] == name) & (of_report["metric"] == forgotten.name)]
        low, high = of_forgetting.iloc[0][["low", "high"]]
        assert forgetting == f"{forgotten.mean():.3f} [{low:.3f}, {high:.3f}]"
        assert (scores[chosen] - scores.mean()).round(9) in (scores - scores.mean()).round(9).tolist()
        in_report = of_report[(of_report["configuration"] == name) & (of_report["metric"] == scores.name)].iloc[0]
        assert test == f"{scores.mean():.3f} [{in_report['low']:.3f}, {in_report['high']:.3f}]"
        means.append(scores.mean())
    assert means == sorted(means, reverse=True)
    assert not any(line.startswith(RANKED) for line in lines)


def test_a_grid_is_ranked_by_validation_and_says_so_with_test_scores_beside_it() -> None:
    lines = _launch(GRID).splitlines()
    rows = _columns(lines, "best of each variant of 'own', of 4 configurations")
    assert list(rows[0])[2:5] == ["validation balanced accuracy", "test balanced accuracy", "test forgetting"]
    validation = [float(row["validation balanced accuracy"]) for row in rows]
    assert validation == sorted(validation, reverse=True)
    rule = f"{RANKED} validation balanced accuracy: the best of many test scores would be partly luck."
    assert lines.count(rule) == 1
    of_report = _best_of_report()
    assert [row["configuration"] for row in rows] == of_report["configuration"].unique().tolist()
    tests = of_report[of_report["metric"] == "test_balanced_accuracy"]["mean"]
    assert [row["test balanced accuracy"].split()[0] for row in rows] == [f"{mean:.3f}" for mean in tests]
    assert rule in Path("results/report/own/index.html").read_text()


@pytest.mark.nightly
def test_the_report_lists_what_the_terminal_lists_with_the_same_headings() -> None:
    lines = _launch(GRID + SECOND).splitlines()
    shown = [*_columns(lines, "best of each variant of 'own'"), *_columns(lines, "the configuration of 'alone'")]
    header, *rows = _rows_of_markdown(Path("results/report/own/tables/best.md"))
    in_report = [dict(zip(header, row, strict=False)) for row in rows]
    headings = [name for name in shown[0] if name != "run_id"]
    assert headings == [name for name in header if name not in ("search space", "minus fine-tuning", "p")]
    for name in headings:
        assert [row[name] for row in shown] == [row[name] for row in in_report], name


def _rows_of_markdown(path: Path) -> list[list[str]]:
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip().replace("\\", "") for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


@pytest.mark.nightly
def test_ties_are_named_at_the_launch_and_in_the_report() -> None:
    output = _launch(TIES, "--set", "learning_rate=1e-12", "--seeds", "2")
    assert "tied for the best, with equal means to three decimals: finetune, er" in output
    path = Path(output.splitlines()[-1].removeprefix("report: "))
    page = path.read_text()
    tie = "ied for the best, with equal means to three decimals: finetune, er."
    assert f"T{tie}" in page
    assert "<p>Tied for the best: finetune, er; " in page
    assert tie in " ".join((path.parent / "tables" / "best.tex").read_text().split())


@pytest.mark.nightly
def test_a_tuned_sweep_ends_with_test_scores_of_reported_runs_before_the_tuning() -> None:
    lines = _launch(TUNED, "--no-report").splitlines()
    header, *rows = _rows(lines, "reported runs of 'own'")
    assert header[2:5] == ["test balanced accuracy", "validation balanced accuracy", "test forgetting"]
    assert {row[0] for row in rows} == {"ER", "fine-tuning"}
    beginnings = [line.split(" of '")[0] for line in lines if line.startswith(("reported runs of", "tuning of"))]
    assert beginnings == ["reported runs", "tuning"]
    after_the_runs = lines[lines.index("8 runs asked for, 8 finished, 0 pending, 0 failed") :]
    assert not any(line.startswith("search ") for line in after_the_runs), "the table of the tuning has them"
    header, *_ = _rows(lines, "tuning of 'own' on ")
    assert {"validation", "test"} <= {*header}


@pytest.mark.nightly
def test_json_has_the_best_configurations() -> None:
    (table,) = json.loads(_launch(TIES, "--json", "--no-report"))["best"]
    assert (table["space"], table["configurations"], table["is_reported"]) == ("own", 2, False)
    assert {row["name"] for row in table["best"]} == {"finetune", "er"}
    assert all(row["runs"] == 2 and len(row["run_id"]) == 24 for row in table["best"])


@pytest.mark.nightly
def test_an_interrupt_while_the_report_is_drawn_says_that_all_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(sketch: Sketch) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sketch, "drawn", interrupted)
    Path("own.py").write_text(FILE + TIES)
    run = CliRunner(env={"CLOPS_PREPARED_ROOT": "prepared"}).invoke
    done = run(command, ["own.py", "--no-ray", "--set", "batch_size=60", "--stop-status", "7"])
    assert done.exit_code == 7, done.output
    last = done.stdout.splitlines()[-1]
    report = ["report", "own.py", "--set", "batch_size=60"]
    assert last == f"interrupted: every run is stored; draw the report with: clops-sweep {' '.join(report)}"
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    drawn = run(command, report)
    assert drawn.exit_code == 0, drawn.output
    assert list(Path("results", "report").glob("*/index.html"))


SITES = """
SITE = {"site": np.array(["A", "B", "C"])[np.arange(480) // 16 % 3]}


@dataset("sites", scenarios=["domain_il"])
def sites(data_root):
    y = np.arange(480) % 2
    x = np.random.default_rng(0).normal(size=(480, 1, 50)) + y[:, None, None]
    people = np.arange(480) // 16
    return Recordings(x, 50, ["az"], "g", labels=y, classes=["rest", "walk"], patients=people, domains=SITE)


OTHER = RunConfig(dataset="sites", scenario="domain_il", domain="site", stratify="site", network="linear")
SPACE = [SPACE, SearchSpace("sites", OTHER, {"strategy": ["er", "finetune"], "split_seed": range(3)})]
"""
"""A second search space, of another data set and with other measures."""


@pytest.mark.nightly
def test_a_report_of_two_search_spaces_is_about_both() -> None:
    output = _launch(PLAIN + SITES, "--seeds", "1")
    page = Path(output.splitlines()[-1].removeprefix("report: "))
    text = re.sub(r"<[^>]*>", "", page.read_text())
    assert re.search(r"Best in own: \S+, test balanced accuracy ", text)
    assert re.search(r"Best in sites: \S+, test AUC ", text)
    assert "Search space sites. Validation" in text
    assert "Search space own. Validation" in text
