"""Tables in LaTeX: booktabs, columns grouped by metric, and never wider or longer than a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from clops_sweep.analysis.formats import DASH, TextCell, TextTable, in_a_line
from clops_sweep.analysis.latex_layout import Columns, Layout, Size, one_name
from clops_sweep.analysis.metrics import METRICS

LONG = 40
"""Rows up to which a table is one float; one of more breaks over pages."""


def to_latex(table: TextTable) -> str:
    """A table to paste into a document; the first line says which packages it needs.

    Columns stand under their metric. A table of more than 40 rows breaks over pages, with its head on each. One that
    would be too wide to read is cut by metric into several, each with all rows.
    """
    is_long = len(table.rows) > LONG
    layout = Layout.of(table, breaks=is_long)
    packages = "booktabs and longtable" if is_long else "booktabs and graphicx"
    lines = [f"% Needs the packages {packages}."]
    parts = layout.parts()
    if len(table.rows) * len(parts) <= LONG:
        return "\n".join([*lines, *_floating(table, layout, parts, _caption(table))]) + "\n"
    for position, part in enumerate(parts):
        caption = _caption(table, position, len(parts))
        lines += _long(table, layout, part, caption) if is_long else _floating(table, layout, [part], caption)
    return "\n".join(lines) + "\n"


def _floating(table: TextTable, layout: Layout, parts: Sequence[Sequence[Columns]], caption: str) -> Iterator[str]:
    """A float with a tabular for each part; each becomes as wide as the text at most, whatever the style."""
    size = min((layout.size(part) for part in parts), key=lambda size: size.points)
    yield from (r"\begin{table}[tp]", r"\centering", caption, *_font(size))
    for position, part in enumerate(parts):
        if position:
            yield from ("", r"\medskip")
        yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
        yield rf"\begin{{tabular}}{{{layout.alignment(part, size)}}}"
        yield from _head(table, layout, part)
        yield from _body(table, layout, part)
        yield from (r"\bottomrule", r"\end{tabular}}")
    yield r"\end{table}"


def _long(table: TextTable, layout: Layout, part: Sequence[Columns], caption: str) -> Iterator[str]:
    size, head = layout.size(part), list(_head(table, layout, part))
    yield from (r"\begingroup", *_font(size), rf"\begin{{longtable}}{{{layout.alignment(part, size)}}}")
    yield caption + r" \\"
    yield from (*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot")
    yield from _body(table, layout, part)
    yield from (r"\end{longtable}", r"\endgroup")


def _font(size: Size) -> tuple[str, str]:
    return rf"\{size.name}", rf"\setlength{{\tabcolsep}}{{{size.gap:g}pt}}"


def _head(table: TextTable, layout: Layout, part: Sequence[Columns]) -> Iterator[str]:
    """The rules and rows over the body: metrics, and below them what of a metric a column has."""
    names = [_stacked(table.header[i]) for i in layout.labels]
    yield r"\toprule"
    if any(columns.beside for columns in part):
        above, rules, position = [""] * len(names), "", len(names) + 1
        for columns in part:
            span = len(columns.positions)
            above.append(rf"\multicolumn{{{span}}}{{c}}{{{_metric(columns.heading)}}}")
            rules += rf"\cmidrule(lr){{{position}-{position + span - 1}}}"
            position += span
        yield from (_row(above), rules)
        yield _row([*names, *(escaped(name) for columns in part for name in columns.names)])
    else:
        yield _row([*names, *(_metric(columns.heading) for columns in part)])
    yield r"\midrule"


def _body(table: TextTable, layout: Layout, part: Sequence[Columns]) -> Iterator[str]:
    shown = [*layout.labels, *(i for columns in part for i in columns.positions)]
    n = table.n_label_columns
    for position, row in enumerate(table.rows):
        cells = [_cell(row[i]) for i in shown]
        if one_name(table, row):
            cells[:n] = [rf"\multicolumn{{{n}}}{{l}}{{{cells[0]}}}"]
        yield _row(cells)
        if position in table.rules:
            yield r"\midrule"


def _caption(table: TextTable, part: int = 0, parts: int = 1) -> str:
    """Title and notes; of several parts, only the first has the notes."""
    which, ending = (f" ({part + 1} of {parts})", f"_{part + 1}") if parts > 1 else ("", "")
    sentences = [f"{table.title}{which}.", *(table.notes if part == 0 else ())]
    label = re.sub("[^A-Za-z0-9]+", "_", table.name).strip("_") + ending
    return rf"\caption{{{' '.join(map(escaped, sentences))}}}\label{{table:{label}}}"


def _stacked(heading: str) -> str:
    """A heading with a word in each line: that of a number is longer than the number."""
    lines = r"\\".join(map(_after_a_break, map(escaped, heading.split())))
    return rf"\shortstack[l]{{{lines}}}" if " " in heading else lines


def _metric(name: str) -> str:
    return next((metric.latex for metric in METRICS.values() if metric.plain == name), escaped(name))


def _row(cells: Sequence[str]) -> str:
    return _after_a_break(" & ".join(cells)) + r" \\"


def _after_a_break(line: str) -> str:
    r"""A line that stands behind a ``\\`` or a rule, which would take a bracket or an asterisk for its own."""
    return "{}" + line if line.startswith(("[", "*")) else line


def _cell(cell: TextCell) -> str:
    # A hyphen before a digit is a minus sign, which LaTeX only makes in mathematics.
    text = re.sub(r"(?<![\w.])-(\d[\d.]*)", r"$-\1$", escaped(cell.text)).replace(" = ", "~=~")
    return rf"\textbf{{{text}}}" if cell.bold else text


def escaped(text: str) -> str:
    """Text with every character that LaTeX would take for a command as itself, on one line."""
    return in_a_line(text).translate(_CHARACTERS)


_CHARACTERS = str.maketrans(
    {
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
        **{DASH: "--", "<": "$<$", ">": "$>$", "\N{MULTIPLICATION SIGN}": r"$\times$"},
        **{"λ": r"$\lambda$", "τ": r"$\tau$", "η": r"$\eta$"},
        **{character: "\\" + character for character in "&%$#_{}"},
    }
)
