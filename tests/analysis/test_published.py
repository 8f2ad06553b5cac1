from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import RunConfig
from clops_sweep.analysis import published
from clops_sweep.analysis.metrics import METRICS
from clops_sweep.analysis.published import PublishedValue, published_values


@pytest.fixture(scope="module")
def source() -> str:
    path = os.environ.get("CLOPS_PAPER")
    if path is None:
        pytest.skip("the paper's source is not at hand: set CLOPS_PAPER to CLOPS.tex")
    return Path(path).read_text("utf-8")


def tables(source: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Label and rows of cells of every table of the source, comments taken out."""
    text = re.sub(r"(?<!\\)%.*", "", source)
    for table in re.findall(r"\\begin{table}(.*?)\\end{table}", text, re.DOTALL):
        label = re.search(r"\\label{(.*?)}", table)
        body = re.search(r"\\begin{tabular}{.*?}(.*?)\\end{tabular}", table, re.DOTALL)
        rows = [re.sub(r"\\(top|mid|bottom)rule", "", row) for row in body.group(1).split(r"\\")]
        yield (
            label.group(1) if label else "",
            [[cell.strip() for cell in row.split("&")] for row in rows if row.strip()],
        )


def value(cell: str) -> PublishedValue | None:
    """A cell such as (0.020) $\\pm$ 0.005 or (0.107 $\\pm$ 0.035): parentheses make the mean negative."""
    found = re.search(r"(\()?(\d\.\d{3})\)?\s*\$\\pm\$\s*(\d\.\d{3})", cell)
    if not found:
        return None
    mean = float(found.group(2))
    return PublishedValue(-mean if found.group(1) else mean, float(found.group(3)))


def plain(cell: str) -> str:
    return re.sub(r"[$\\{}]|mathrm|textbf", "", cell).strip()


def test_every_row_of_every_table_of_results(source: str) -> None:
    read = []
    for label, rows in tables(source):
        if not any("Average" in cell for cell in rows[0]):
            continue
        for row in rows[1:]:
            values = dict(zip(METRICS, map(value, row[1:]), strict=False))
            kept = {metric: found for metric, found in values.items() if found}
            if kept:
                read.append((label, plain(row[0]), kept))
    ours = [(row.table, row.row, dict(row.values)) for row in published.RESULTS]
    assert len(read) == 40
    assert ours == read


@pytest.mark.parametrize("dataset", ["synthetic", "synthetic_paper", "mitbih", "chapman"])
def test_nothing_is_published_of_other_data(dataset: str) -> None:
    """Beside numbers of other recordings the paper's say nothing, whatever the settings are."""
    assert published_values(RunConfig(dataset=dataset)) == {}
    assert published_values(RunConfig(dataset="cardiology")) != {}
