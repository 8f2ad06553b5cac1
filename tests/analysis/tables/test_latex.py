from __future__ import annotations

import re

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
