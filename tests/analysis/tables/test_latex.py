from __future__ import annotations

import re

import pytest

from clops_sweep.analysis.formats import TextCell, TextTable
from clops_sweep.analysis.tables.latex import LONG, to_latex

METRIC_NAMES = ("Average AUC", "BWT", "BWT_t", "BWT_lambda")
LABELS = ("storage fraction", "variant", "runs")


def published(rows: int) -> TextTable:
    """A table beside published values: the widest kind."""
    header = [*LABELS]
    for metric in METRIC_NAMES:
        header += [metric, "published", "difference"]
    texts = ["0.25", "Random storage", "5", *["0.123 ± 0.012", "-0.120 ± 0.020", "+0.243"] * len(METRIC_NAMES)]
    row = tuple(TextCell(text, text) for text in texts)
    return TextTable("grid-published", "Results of a_b", tuple(header), (row,) * rows, 2, (), ("100 % & more.",))


def bodies(text: str) -> list[tuple[str, str]]:
    """Alignment and content of each tabular and longtable."""
    return re.findall(
        r"\\begin{(?:tabular|longtable)}{((?:[lc]|p{\d+pt})+)}\n(.*?)\\end{(?:tabular|longtable)}", text, re.S
    )


def test_columns_stand_under_their_metric() -> None:
    text = to_latex(published(3))
    assert text.startswith("% Needs the packages booktabs and graphicx.\n")
    assert r"\multicolumn{3}{c}{$\mathrm{Average\ AUC}$} & \multicolumn{3}{c}{$\mathrm{BWT}$} \\" in text
    assert r"\cmidrule(lr){4-6}\cmidrule(lr){7-9}" in text
    assert r"variant & runs & ours & published & diff. & ours & published & diff. \\" in text
    assert r"\caption{Results of a\_b (1 of 2). 100 \% \& more.}\label{table:grid_published_1}" in text
    assert r"0.25 & Random storage & 5 & 0.123 $\pm$ 0.012 & $-0.120$ $\pm$ 0.020 & +0.243 &" in text


def test_a_wide_table_is_cut_by_metric() -> None:
    text = to_latex(published(3))
    found = bodies(text)
    assert text.count(r"\begin{table}") == text.count(r"\caption{") == 2
    assert text.count("more.") == 1, "the notes stand once"
    assert [alignment for alignment, _ in found] == ["lllcccccc", "lllcccccc"]
    assert "BWT}$" in found[0][1]
    assert "lambda" in found[1][1]
    assert text.count(r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%") == 2


def test_a_long_table_breaks_over_pages_with_its_head_on_each() -> None:
    text = to_latex(published(LONG + 1))
    assert text.startswith("% Needs the packages booktabs and longtable.\n")
    assert r"\begin{table}" not in text
    assert r"\resizebox" not in text
    parts = bodies(text)
    assert len(parts) > 1
    for _, content in parts:
        first, head, rest = re.split(r"\\endfirsthead|\\endhead", content)
        assert head.strip() in first
        assert rest.count("Random storage") == LONG + 1
    labels = re.findall(r"\\label{(.*?)}", text)
    assert len(set(labels)) == len(labels) == len(parts)
    assert text.count("more.") == 1, "the notes stand once"


def test_long_labels_become_paragraphs_and_numbers_stay_whole() -> None:
    name = "Random storage and acquisition, b = 0.25, a = 0.5"
    header = ("configuration", "minus", "pairs", "Average AUC", "p")
    row = tuple(TextCell(text, text) for text in (name, name, "5", "+0.012 [-0.003, 0.020]", "<0.001"))
    text = to_latex(TextTable("d", "Differences", header, (row,) * (LONG + 1), 2))
    ((alignment, content),) = bodies(text)
    assert alignment == "p{90pt}p{90pt}lcc"
    assert "b~=~0.25" in content
    assert r"& difference & p \\" in content


def test_a_table_of_plain_metrics_has_one_row_of_headings() -> None:
    texts = ("Fine-tuning by another space", "", "5", *["0.123 ± 0.012"] * 4)
    row = tuple(TextCell(text, text) for text in texts)
    text = to_latex(TextTable("t", "T", (*LABELS, *METRIC_NAMES), (row,), 2))
    assert r"Fine-tuning by another space &  & 5 & 0.123" in text
    assert r"\shortstack[l]{storage\\fraction} & variant & runs & $\mathrm{Average\ AUC}$" in text
    assert r"\cmidrule" not in text


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_without_metrics_is_one_tabular(rows: int) -> None:
    row = (TextCell("a_b"), TextCell("1"))
    text = to_latex(TextTable("t", "T", ("trial", "runs"), (row,) * rows))
    ((alignment, content),) = bodies(text)
    assert alignment == "ll"
    assert content.count(r"\\") == 1 + rows
