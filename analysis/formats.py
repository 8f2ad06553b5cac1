"""Tables: cells to show and the data behind them, and their output as Markdown and CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from clops_sweep.errors import one_line
from clops_sweep.store.rows import printable

from .metrics import PAPER, metric_named
from .results import ResultTable, Row
from .statistics import Estimate, PairedDifference

DASH = "\N{EN DASH}"


@dataclass(frozen=True)
class TextCell:
    """A table cell: text, the number to sort by (NaN sorts last in both directions), and emphasis.

    `rows` are the indices of its configurations, for links to their runs. A page shows `whole`, what the text is the
    beginning of, as a tooltip.
    """

    text: str
    value: float | str = math.nan
    bold: bool = False
    whole: str = ""


@dataclass(frozen=True)
class TextTable:
    """A titled table: cells to show, and `data` in full precision for its CSV file.

    A line is drawn after each row in `rules`; `notes` are printed below the table. `data` may have rows and columns
    that are not shown. `of_metric` says what the column with a metric's name holds, such as "difference", where other
    columns of the metric follow. `metric_headings` are headings of metrics other than their names.
    `may_split` says that LaTeX may put columns that identify no row into several tables, if they fit on no page.
    `notes_on_differences` are those of the notes that explain differences and their p-values.
    `about` names data, scenario and n for the caption of a manuscript, where no page around the table does.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[TextCell, ...], ...]
    n_label_columns: int = 1
    rules: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    data: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)
    of_metric: str = "mean"
    metric_headings: frozenset[str] = frozenset()
    about: str = ""
    may_split: bool = False
    notes_on_differences: frozenset[str] = frozenset()


def with_joined_options(table: TextTable, options: Sequence[int]) -> TextTable:
    """Return a table in whose rows options of methods share a column, if each row has one of them at most.

    So methods that are tuned in different options do not widen the table by a column each, full of dashes.

    Args:
        table: the table.
        options: positions of the columns with options.
    """
    given = []
    for row in table.rows:
        given.append([position for position in options if row[position].text != DASH])
    if len(options) < 2 or any(len(of_row) > 1 for of_row in given):
        return table
    first, *others = options
    header = [name for position, name in enumerate(table.header) if position not in others]
    header[first] = "option"
    rows = []
    for row, of_row in zip(table.rows, given, strict=True):
        texts = [f"{table.header[position]} {row[position].text}" for position in of_row]
        cells = [cell for position, cell in enumerate(row) if position not in others]
        cells[first] = TextCell(texts[0] if texts else DASH)
        rows.append(tuple(cells))
    n_label_columns = table.n_label_columns - sum(position < table.n_label_columns for position in others)
    return replace(table, header=tuple(header), rows=tuple(rows), n_label_columns=max(n_label_columns, first + 1))


def in_a_line(text: str) -> str:
    """Return a text on one line, with control characters escaped as in Python."""
    text = one_line(text)
    return text if text.isprintable() else printable(text)


def number(value: float, digits: int = 3) -> str:
    """Format a number with three decimals and no negative zero; a dash if missing."""
    if not math.isfinite(value):
        return DASH
    return f"{value if abs(value) >= 0.5 * 10**-digits else 0.0:.{digits}f}"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: "1 run" or "2,000 runs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit: "4 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"


def plus_minus(mean: float, sd: float | None) -> str:
    """Format mean ± standard deviation; undefined parts are left out."""
    spread = f" ± {number(sd)}" if sd is not None and math.isfinite(sd) else ""
    return number(mean) + spread


def with_interval(mean: float, low: float, high: float) -> str:
    """Format a difference with its sign and, if defined, its interval."""
    return f"{'+' if mean >= 0.0005 else ''}{number(mean)}{interval_text(low, high)}"


def mean_text(mean: PairedDifference) -> str:
    """Format a mean with its interval or, without one, with the lowest and highest value; a dash without values."""
    if not mean.n:
        return DASH
    if math.isfinite(mean.low):
        return number(mean.mean) + interval_text(mean.low, mean.high)
    if mean.n == 1:
        return number(mean.mean)
    return f"{number(mean.mean)} ({number(min(mean.of_units))} to {number(max(mean.of_units))})"


def interval_text(low: float, high: float) -> str:
    """Format an interval to follow its value; empty if it is undefined."""
    return f" [{number(low)}, {number(high)}]" if math.isfinite(low) else ""


def p_text(value: float) -> str:
    """Format a p-value with three decimals; a dash if missing."""
    if not math.isfinite(value):
        return DASH
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def label_cell(text: str) -> TextCell:
    """Return a cell that sorts by its text."""
    return TextCell(text, text)


def count_cell(count: int, text: str = "") -> TextCell:
    """Return a cell with a count, or with a text about it."""
    return TextCell(text or f"{count:,}", float(count))


def p_cell(value: float) -> TextCell:
    """Return a cell with a p-value."""
    return TextCell(p_text(value), value)


def result_text(
    table: ResultTable, name: str, title: str, notes: Sequence[str] = (), metrics: Sequence[str] = ()
) -> TextTable:
    """Return a table of results: mean and standard deviation of each metric per configuration."""
    metrics = metrics or table.metrics
    header = (*_label_header(table), "runs", *(metric_named(metric).plain for metric in metrics))
    own = sum(not row.is_reference for row in table.rows)
    rules = (own - 1,) if 0 < own < len(table.rows) else ()
    rows = []
    for row in table.rows:
        of_metrics = [_metric_cell(row, metric) for metric in metrics]
        rows.append((*_label_cells(row), *of_metrics))
    return TextTable(name, title, header, tuple(rows), len(table.label_names), rules, tuple(notes), _results(table))


def published_text(table: ResultTable, name: str, title: str, notes: Sequence[str] = ()) -> TextTable:
    """Return the configurations that the paper reports, by metric.

    The columns are our value on validation people, that on test people, the published one, and the difference of the
    first and the published one.
    """
    published = set().union(*(row.published for row in table.rows))
    metrics = [metric for metric in PAPER if metric in published]
    header = [*_label_header(table), "runs"]
    for metric in metrics:
        tested = ["test"] if f"test_{metric}" in table.tested else []
        header += [metric_named(metric).plain, *tested, "published", "difference"]
    body = tuple(_published_row(row, metrics, table.tested) for row in table.rows)
    of_metric = "validation" if table.tested else "ours"
    labels, data = len(table.label_names), _results(table)
    return TextTable(name, title, tuple(header), body, labels, (), tuple(notes), data, of_metric)


def _results(table: ResultTable) -> pd.DataFrame:
    """Return a table of results as data: a row per configuration.

    `departures` lists the settings in which a configuration differs from the published one, with their values here.
    """
    parts = ("mean", "sd", "n", "published_mean", "published_sd", "difference", "clearly_best")
    rows = []
    for row in table.rows:
        values: dict[str, object] = dict(zip(table.label_names, row.labels, strict=True))
        values |= {name: getattr(row, name) for name in ("asked", "finished", "failed")}
        for metric in (*table.metrics, *table.validated):
            ours, theirs = row.estimates[metric], row.published.get(metric)
            published = (theirs.mean, theirs.sd) if theirs else (None, None)
            numbers = (ours.mean, ours.sd, ours.n, *published, row.difference(metric), metric in row.best_in)
            values |= {f"{metric}_{part}": value for part, value in zip(parts, numbers, strict=True)}
        for metric in table.tested:
            tested = row.estimates[metric]
            values |= {f"{metric}_mean": tested.mean, f"{metric}_sd": tested.sd, f"{metric}_n": tested.n}
        unlike = "; ".join(f"{departure.field}={departure.ours}" for departure in row.departures)
        rows.append(values | {"departures": unlike, "run_ids": " ".join(row.run_ids)})
    return pd.DataFrame(rows, dtype=object)


def as_csv(rows: pd.DataFrame) -> str:
    """Return rows as CSV in full precision that is safe to open in a spreadsheet; missing numbers are empty.

    Text that looks like a formula gets an apostrophe in front, as OWASP advises ("CSV Injection").
    """
    return rows.rename(columns=_csv_cell).map(_csv_cell).to_csv(index=False, lineterminator="\n")


def to_markdown(table: TextTable) -> str:
    """Return a table as GitHub-flavoured Markdown: title, aligned columns, notes."""
    header = [_escape_markdown(name) for name in table.header]
    widths = [max(3, len(name)) for name in header]
    body = []
    for row in table.rows:
        texts = [_markdown(cell) for cell in row]
        widths = [max(width, len(text)) for width, text in zip(widths, texts, strict=True)]
        body.append(texts)
    lines = [f"### {_no_markup(table.title)}", "", _line(header, widths)]
    rule = []
    for column, width in enumerate(widths):
        rule.append("-" * width if column < table.n_label_columns else "-" * (width - 1) + ":")
    lines += [_line(rule, widths), *(_line(row, widths) for row in body)]
    if table.notes:
        lines += ["", *map(_no_markup, table.notes)]
    return "\n".join(lines) + "\n"


def runs_text(row: Row) -> str:
    """Format the number of finished runs: 5, 3/5, or 3/5 (1 failed)."""
    text = f"{row.finished}" if row.finished == row.asked else f"{row.finished}/{row.asked}"
    return text + (f" ({row.failed} failed)" if row.failed else "")


def _label_header(table: ResultTable) -> list[str]:
    return [name.replace("_", " ") for name in table.label_names]


def _label_cells(row: Row) -> list[TextCell]:
    return [*(TextCell(label, _sort_key(label)) for label in row.labels), TextCell(runs_text(row), float(row.finished))]


def _published_row(row: Row, metrics: Sequence[str], tested: Sequence[str]) -> tuple[TextCell, ...]:
    cells = _label_cells(row)
    for metric in metrics:
        theirs = row.published.get(metric)
        difference = row.difference(metric)
        sign = "+" if difference >= 0.0005 else ""
        cells += [
            *(_metric_cell(row, name) for name in (metric, f"test_{metric}") if name == metric or name in tested),
            TextCell(plus_minus(theirs.mean, theirs.sd), theirs.mean) if theirs else TextCell(DASH),
            TextCell(sign + number(difference), difference),
        ]
    return tuple(cells)


def _metric_cell(row: Row, metric: str) -> TextCell:
    ours: Estimate = row.estimates[metric]
    undefined = f" (n = {ours.n})" if 0 < ours.n < row.finished else ""
    return TextCell(plus_minus(ours.mean, ours.sd) + undefined, ours.mean, metric in row.best_in)


def _sort_key(label: str) -> float | str:
    try:
        return float(label)
    except ValueError:
        return label


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf|nan", re.IGNORECASE)


def _csv_cell(value: object) -> object:
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if not isinstance(value, str):
        return repr(float(value)) if isinstance(value, float) else value
    text = value if value.isprintable() else printable(value)
    formula = value.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}"))
    return f"'{text}" if formula and not _NUMBER.fullmatch(value) else text


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _markdown(cell: TextCell) -> str:
    text = _escape_markdown(cell.text)
    return f"**{text}**" if cell.bold else text


def _escape_markdown(text: str) -> str:
    return in_a_line(text).translate(_ESCAPED)


def _no_markup(text: str) -> str:
    return re.sub(r"([<`\[\]])", r"\\\1", in_a_line(text))


_ESCAPED = str.maketrans({character: "\\" + character for character in "|*_<\\`[]"})
