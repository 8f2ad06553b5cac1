"""Every table in LaTeX: its headings and numbers are those of its data."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from types import ModuleType

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.metrics import METRICS, metric_named
from clops_sweep.analysis.report.write import write_report
from clops_sweep.store.run_store import RunStore

COLUMNS = {metric_named(name).latex: name for metric in METRICS for name in (metric, f"test_{metric}")}
DATA = {
    "mean": "{}_mean",
    "ours": "{}_mean",
    "validation": "{}_mean",
    "test": "test_{}_mean",
    "published": "{}_published_mean",
    "diff.": "{}_difference",
    "difference": "{}_difference",
    "p": "{}_p_holm",
}
"""The column of the data of a column of a metric, by its heading."""

BEST = {"mean": "mean", "minus fine-tuning": "minus_fine_tuning", "p": "p_holm"}
"""As `DATA`, of the best configurations, which have a row for each metric."""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]


def tabulars(text: str) -> list[tuple[list[tuple[str, str]], list[list[str]]]]:
    """Return the columns of each tabular, as metric and heading, and its rows."""
    found = []
    for content in re.findall(r"begin{tabular}{[^\n]*\n(.*?)\\end{tabular}", text, re.S):
        head, body = content.split(r"\midrule", 1)
        lines = [line for line in head.splitlines() if line.endswith(r"\\")]
        names = cells(lines[-1])
        groups = [""] * len(names)
        if len(lines) > 1:
            groups = []
            for cell in cells(lines[0]):
                span = re.fullmatch(r"\\multicolumn{(\d+)}{c}{(.*)}", cell)
                groups += [span[2]] * int(span[1]) if span else [cell]
        else:
            groups = [name if name in COLUMNS else "" for name in names]
            names = ["mean" if name in COLUMNS else name for name in names]
        rows = [cells(line) for line in body.splitlines() if line.endswith(r"\\")]
        found.append((list(zip(groups, names, strict=True)), rows))
    return found


def number_in(cell: str) -> str:
    """Return the first number of a cell, as it is printed; a dash without one."""
    found = re.search(r"[-+]?\d+\.\d+", cell.replace("$", ""))
    return found[0].lstrip("+") if found else "--"


def as_printed(value: str) -> str:
    if not value:
        return "--"
    return f"{max(float(value), 0.001) if 0 < float(value) < 0.0005 else float(value):z.3f}"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> Path:
    """Tables of a report of all kinds: the paper's cells, fine-tuning trained alike, and other methods."""
    folder = tmp_path_factory.mktemp("latex")
    base = RunConfig(dataset="cardiology")
    spaces = [
        SearchSpace("grid", base, {"storage_fraction": [0.25, 0.5]}, seeds=range(4)),
        SearchSpace("methods", base, {"strategy": ["finetune", "er"]}, seeds=range(4)),
    ]
    store = RunStore(folder / "results")
    rows = []
    for number, request in enumerate(request for space in spaces for request in space.requests()):
        value = 0.5 + 0.07 * (number % 5) + 0.01 * number
        columns = {"auc": value, "bwt": 0.1 - value / 3, "bwt_t": 0.02 * number, "bwt_lambda": -0.01 * number}
        rows.append((request.config, columns | {f"test_{name}": it - 0.05 for name, it in columns.items()}))
    generated.write_given_runs(store, rows)
    write_report(spaces, store, folder / "report")
    return folder / "report" / "tables"


def test_headings_and_numbers_are_those_of_the_data(tables: Path) -> None:
    compared: dict[str, int] = {}
    for path in sorted(tables.glob("*.tex")):
        with path.with_suffix(".csv").open() as file:
            data = list(csv.DictReader(file))
        for columns, rows in tabulars(path.read_text()):
            for place, (group, heading) in enumerate(columns):
                if group not in COLUMNS:
                    continue
                metric = COLUMNS[group]
                if path.stem == "best":
                    of_metric = [row for row in data if row["metric"] == metric]
                    expected = [row[BEST[heading]] for row in of_metric]
                else:
                    expected = [row[DATA[heading].format(metric)] for row in data]
                shown = [number_in(row[place]) for row in rows]
                if heading == "p":
                    shown = ["" if it == "--" else it for it in shown]
                assert shown == [as_printed(it) if heading != "p" or it else "" for it in expected], (
                    path.name,
                    heading,
                )
                compared[path.stem] = compared.get(path.stem, 0) + 1
    assert {"best", "grid-results", "grid-differences", "methods-results"} <= compared.keys(), compared


def test_the_paper_s_table_has_validation_and_test(tables: Path) -> None:
    ((columns, _), *_) = tabulars((tables / "grid-published.tex").read_text())
    headings = [name for group, name in columns if group == metric_named("auc").latex]
    assert headings == ["validation", "test", "published", "diff."]


@pytest.mark.parametrize("ending", ["tex", "md"])
def test_each_table_of_metrics_says_whose_they_are(tables: Path, ending: str) -> None:
    for path in tables.glob(f"*.{ending}"):
        text = path.read_text()
        if "AUC" in text and not path.stem.startswith("claims"):
            assert "validation set" in text, path.name
