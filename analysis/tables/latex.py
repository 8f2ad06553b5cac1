"""LaTeX output of tables: booktabs, columns grouped by metric; long tables are split by page.

For journals, whose text has two columns, a long table becomes several floats over both, since longtable fails in two
columns.

A table that is wider than a page of two columns becomes several: means first, then differences and their p-values, each
split by metric if it is still too wide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..formats import DASH, TextCell, TextTable, in_a_line, with_joined_options
from ..metrics import METRICS, metric_named

LONG = 40
"""Most rows of a table that is one float; longer ones break across pages."""

_MOST_FLOATS = 10
"""Floats after which LaTeX prints those that wait, since it keeps at most 18."""

MOST_COLUMNS_OF_LONG = 4
"""Most metric columns side by side in a table of several pages, which LaTeX cannot scale to the width of the text."""

PAGE = 506.0
"""Width of a page of two columns in points: 178 mm, as in most journals."""

_CHARACTER, _BETWEEN = 4.6, 8.0
"""Width of a character of 9 points, and of the space between two columns, in points."""

_LONG_LABEL = 24
"""Characters above which a label wraps in a table of several pages."""

_SENTENCE, _WRAPPED = 80, 280
"""Characters above which a label wraps in a float without columns of metrics, and its width then in points."""

_NAME, _WRAPPED_NAME = 40, 150
"""As `_SENTENCE` and `_WRAPPED`, beside columns of metrics."""

_METRICS = {metric.plain: metric for name in METRICS for metric in map(metric_named, (name, f"test_{name}"))}
_END_OF_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
_SENTENCES_OF_CAPTION = 2
_OF_A_METRIC = {
    "test": "test",
    "published": "published",
    "difference": "diff.",
    "p": "p",
}
"""Columns that belong to the preceding metric, with their headings; differences ("minus er") do so, too."""


class Group(NamedTuple):
    """Columns of one metric, as indices: its own, and differences and p-values, or some of these.

    Of a wide table that may be split (`TextTable.may_split`), each column that identifies no row is a group.
    """

    metric: str
    columns: tuple[int, ...]


# Not pandas.Styler: it splits no wide table by metric, and has no headings of several lines or notes below.
def to_latex(table: TextTable, study: str = "", *, journal: bool = False) -> str:
    """Return a table to paste into a document; the first line names the packages that it needs.

    The caption is the title with data, scenario and n, where the table knows them. The notes follow the table, in
    small print.

    Args:
        table: the table.
        study: name of the study, the first part of the label: tables of two studies fit into one document.
        journal: whether the text has two columns.
    """
    known, _ = _columns(table)
    table = with_joined_options(table, [position for position in known[1:] if table.header[position] != "n"])
    is_long = len(table.rows) > LONG and not journal
    labels, groups = _columns(table)
    if table.may_split and not is_long and _width(table, labels, []) > PAGE:
        groups = [Group(table.header[column], (column,)) for column in labels[table.n_label_columns :]]
        labels = labels[: table.n_label_columns]
    parts = _parts(table, labels, groups, MOST_COLUMNS_OF_LONG if is_long else len(table.header))
    lines = [f"% Needs the packages {'booktabs and longtable' if is_long else 'booktabs and graphicx'}."]
    if is_long:
        lines.append("% longtable fails in text of two columns: the report with --style journal has floats instead.")
    pages = [table] if is_long else _pages(table)
    number = 0
    for position, part in enumerate(parts):
        notes = _notes(table, parts, position)
        for page in pages:
            caption = _caption(table, number, len(parts) * len(pages), study)
            if is_long:
                lines += [*_long(page, labels, part, caption), *notes]
            else:
                lines += _floating(page, labels, part, caption, notes)
            notes = []
            number += 1
            if number % _MOST_FLOATS == 0:
                lines.append(r"\clearpage")
    return "\n".join(lines) + "\n"


def _pages(table: TextTable) -> list[TextTable]:
    """Split the rows of a table into floats of at most a page."""
    pages = []
    for first in range(0, max(1, len(table.rows)), LONG):
        rules = tuple(rule - first for rule in table.rules if first <= rule < first + LONG)
        pages.append(replace(table, rows=table.rows[first : first + LONG], rules=rules))
    return pages


def _columns(table: TextTable) -> tuple[list[int], list[Group]]:
    """Return the indices of the columns that identify rows, and each metric's columns."""
    labels: list[int] = []
    groups: list[Group] = []
    for position, name in enumerate(table.header):
        if groups and _of_a_metric(name) is not None:
            metric, columns = groups[-1]
            groups[-1] = Group(metric, (*columns, position))
        elif groups or name in _METRICS or name in table.metric_headings:
            groups.append(Group(name, (position,)))
        else:
            labels.append(position)
    return labels, groups


def _of_a_metric(name: str) -> str | None:
    """Return the heading of a column that belongs to the preceding metric; None of other columns."""
    return escaped(name) if name.startswith("minus ") else _OF_A_METRIC.get(name)


def _parts(table: TextTable, labels: Sequence[int], groups: Sequence[Group], most: int) -> list[list[Group]]:
    """Split the columns of metrics into parts that fit on a page: means, then differences with their p-values.

    Args:
        table: the table.
        labels: the columns that identify rows, which each part has.
        groups: the columns of each metric.
        most: most columns of metrics of a part.
    """

    def fits(part: Sequence[Group]) -> bool:
        return sum(len(group.columns) for group in part) <= most and _width(table, labels, part) <= PAGE

    if fits(groups):
        return [list(groups)]
    means: list[Group] = []
    differences: list[Group] = []
    for metric, columns in groups:
        first = next((place for place, at in enumerate(columns) if _is_difference(table, at)), len(columns))
        means.append(Group(metric, columns[:first]))
        differences.append(Group(metric, columns[first:]))
    parts = []
    for kind in (means, differences):
        part: list[Group] = []
        for group in kind:
            if part and not fits([*part, group]):
                parts.append(part)
                part = []
            part += [group] * bool(group.columns)
        parts += [part] * bool(part)
    return parts or [[]]


def _has_differences(table: TextTable, part: Sequence[Group]) -> bool:
    return any(_is_difference(table, column) for group in part for column in group.columns)


def _is_difference(table: TextTable, column: int) -> bool:
    return table.header[column].startswith("minus ")


def _width(table: TextTable, labels: Sequence[int], part: Sequence[Group]) -> float:
    """Return about how wide a table is in points: as many characters as the longest text of each column."""
    width = 0.0
    most, least = _wrapping(part)
    for column in labels:
        longest = max((len(row[column].text) for row in table.rows), default=0)
        words = max(map(len, table.header[column].split()), default=0)
        name = least if longest > most else _CHARACTER * longest
        width += max(name, _CHARACTER * words) + _BETWEEN
    for metric, columns in part:
        of_columns = 0.0
        for column in columns:
            texts = [row[column].text for row in table.rows]
            heading = "" if table.header[column] == metric else table.header[column]
            of_columns += _CHARACTER * max(map(len, [*texts, heading])) + _BETWEEN
        heading = max(_lines_of(table, metric, columns), key=len)
        width += max(of_columns, _CHARACTER * len(heading) + _BETWEEN)
    return width


def _floating(
    table: TextTable, labels: Sequence[int], part: Sequence[Group], caption: str, notes: Sequence[str]
) -> Iterator[str]:
    yield from (r"\begin{table*}[tp]", r"\centering", caption, r"\small", r"\setlength{\tabcolsep}{4pt}")
    yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    most, wrapped = _wrapping(part)
    kinds = _kinds(table, labels, most, f"p{{{wrapped}pt}}")
    yield rf"\begin{{tabular}}{{{kinds}{'c' * _count(part)}}}"
    yield from (*_head(table, labels, part), *_body(table, labels, part))
    yield from (r"\bottomrule", r"\end{tabular}}", *notes, r"\end{table*}")


def _wrapping(part: Sequence[Group]) -> tuple[int, int]:
    """Return the characters above which a label wraps in a float, and its width then in points."""
    return (_NAME, _WRAPPED_NAME) if part else (_SENTENCE, _WRAPPED)


def _count(part: Sequence[Group]) -> int:
    """Return the number of columns of metrics."""
    return sum(len(group.columns) for group in part)


def _kinds(table: TextTable, labels: Sequence[int], most: int, wrapped: str) -> str:
    """Return LaTeX's kind of each column of labels: `wrapped` if a text has more than `most` characters, else l."""
    kinds = ""
    for column in labels:
        longest = max((len(row[column].text) for row in table.rows), default=0)
        kinds += wrapped if longest > most else "l"
    return kinds


def _long(table: TextTable, labels: Sequence[int], part: Sequence[Group], caption: str) -> Iterator[str]:
    kinds = _kinds(table, labels, _LONG_LABEL, "p{90pt}")
    head = list(_head(table, labels, part))
    yield from (r"\begingroup", r"\footnotesize", r"\setlength{\tabcolsep}{3pt}")
    yield from (rf"\begin{{longtable}}{{{kinds}{'c' * _count(part)}}}", caption + r" \\")
    yield from (*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot")
    yield from (*_body(table, labels, part), r"\end{longtable}", r"\endgroup")


def _head(table: TextTable, labels: Sequence[int], part: Sequence[Group]) -> Iterator[str]:
    """Return the head of the table: metrics, and below them the headings of their columns."""
    names = [_stacked(table.header[i]) for i in labels]
    metrics = []
    for name, columns in part:
        lines = _lines_of(table, name, columns)
        metrics.append(_metric(name) if len(lines) == 1 else _on_lines(lines, "c" if _is_metric(table, name) else "l"))
    yield r"\toprule"
    if any(len(columns) > 1 or _is_difference(table, columns[0]) for _, columns in part):
        spans, rules = [], []
        end = len(labels)
        for metric, (_, columns) in zip(metrics, part, strict=True):
            begin, end = end + 1, end + len(columns)
            spans.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{metric}}}")
            rules.append(rf"\cmidrule(lr){{{begin}-{end}}}")
        yield from (_row([*[""] * len(labels), *spans]), "".join(rules))
        metrics = []
        for metric, columns in part:
            for column in columns:
                name = table.header[column]
                metrics.append(table.of_metric if name == metric else _of_a_metric(name) or "")
    yield from (_row([*names, *metrics]), r"\midrule")


def _body(table: TextTable, labels: Sequence[int], part: Sequence[Group]) -> Iterator[str]:
    shown = [*labels]
    for group in part:
        shown += group.columns
    for position, row in enumerate(table.rows):
        yield _row([_cell(row[i]) for i in shown])
        if position in table.rules:
            yield r"\midrule"


def _caption(table: TextTable, part: int, parts: int, study: str) -> str:
    """Return the title, and the label that a text refers to."""
    which = f" ({part + 1} of {parts})" if parts > 1 else ""
    ending = f"_{part + 1}" if part else ""
    text = f"{table.title}{which}" + (f": {table.about}" if table.about else "")
    return rf"\caption{{{escaped(f'{text}.')}}}\label{{{label_of('table', study, table.name)}{ending}}}"


def figure_to_latex(
    name: str, title: str, caption: str, study: str, *, full_width: bool, in_two_columns: bool = False
) -> str:
    """Return a figure to paste into a document, beside which its PDF file lies.

    The caption is the title and the first two sentences of that on the page.

    Args:
        name: name of the file, without its ending.
        title: the title.
        caption: the caption on the page.
        study: name of the study, the first part of the label.
        full_width: whether the figure is scaled to the width of the text; if not, it keeps its own.
        in_two_columns: whether it spans both columns of a page of two.
    """
    sentences = _END_OF_SENTENCE.split(caption)[:_SENTENCES_OF_CAPTION]
    options = r"[width=\linewidth]" if full_width else ""
    environment = "figure*" if in_two_columns else "figure"
    lines = [
        r"% Needs the package graphicx, and \graphicspath{} with the folder of this file.",
        rf"\begin{{{environment}}}[tp]",
        r"\centering",
        rf"\includegraphics{options}{{{name}.pdf}}",
        rf"\caption{{{escaped(' '.join([f'{title}.', *sentences]))}}}\label{{{label_of('figure', study, name)}}}",
        rf"\end{{{environment}}}",
    ]
    return "\n".join(lines) + "\n"


def label_of(kind: str, study: str, name: str) -> str:
    """Return the label of a figure or table, such as "table:quickstart:best"."""
    parts = [re.sub("[^A-Za-z0-9]+", "_", part).strip("_") for part in (kind, study, name)]
    return ":".join(part for part in parts if part)


def _notes(table: TextTable, parts: Sequence[Sequence[Group]], number: int) -> list[str]:
    """Return the lines with the notes below a part of a table.

    Those on differences are below the first part with differences, and all others below the first part.
    """
    of_differences = next((position for position, part in enumerate(parts) if _has_differences(table, part)), 0)
    notes = []
    for note in table.notes:
        position = of_differences if note in table.notes_on_differences else 0
        if position == number:
            notes.append(note)
    if not notes:
        return []
    text = " ".join(map(escaped, notes))
    return [r"\par\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize\raggedright {text}}}"]


def _stacked(heading: str) -> str:
    """Return a heading with one word per line, since headings are wider than numbers."""
    return _on_lines(heading.split(), "l")


def _lines_of(table: TextTable, name: str, columns: Sequence[int]) -> list[str]:
    """Return the lines of the heading of some columns.

    A metric has one line; if it is wider than the only column below it, "test" or "validation" stands above the rest.
    Other headings have a line for each word.
    """
    if not _is_metric(table, name):
        return name.split()
    whose, _, measure = name.partition(" ")
    if len(columns) != 1 or whose not in ("test", "validation") or not measure or _metric(name) != escaped(name):
        return [name]
    longest = max((len(row[columns[0]].text) for row in table.rows), default=0)
    return [name] if len(name) <= longest else [whose, measure]


def _on_lines(lines: Sequence[str], align: str) -> str:
    """Return the lines of a heading as LaTeX."""
    texts = r"\\".join(map(_after_a_break, map(escaped, lines)))
    return rf"\shortstack[{align}]{{{texts}}}" if len(lines) > 1 else texts


def _is_metric(table: TextTable, name: str) -> bool:
    return name in _METRICS or name in table.metric_headings


def _metric(name: str) -> str:
    return _METRICS[name].latex if name in _METRICS else escaped(name)


def _row(cells: Sequence[str]) -> str:
    return _after_a_break(" & ".join(cells)) + r" \\"


def _after_a_break(line: str) -> str:
    r"""Protect a line after ``\\`` or a rule, which would read a bracket or an asterisk as its argument."""
    return "{}" + line if line.startswith(("[", "*")) else line


def _cell(cell: TextCell) -> str:
    # A hyphen before a digit is a minus sign, which LaTeX typesets only in mathematics.
    text = re.sub(r"(?<![\w.])-(\d[\d.]*)", r"$-\1$", escaped(cell.text)).replace(" = ", "~=~")
    return rf"\textbf{{{text}}}" if cell.bold else text


def escaped(text: str) -> str:
    """Escape a text for LaTeX, on one line."""
    return in_a_line(text).translate(_CHARACTERS)


_CHARACTERS = str.maketrans(
    {
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
        **{DASH: "--", "<": "$<$", ">": "$>$", "\N{MULTIPLICATION SIGN}": r"$\times$"},
        **{"λ": r"$\lambda$", "τ": r"$\tau$", "η": r"$\eta$"},
        **{character: "\\" + character for character in "&%$#_{}"},
    }
)
