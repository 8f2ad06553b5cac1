"""Charts of methods: the mean of each with its interval, and its difference from the best one.

They draw the numbers of the tables of methods. `customdata` holds addresses: a click on a point lists the runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import shorten
from urllib.parse import urlencode

import numpy as np

from ..formats import plural
from ..statistics import PairedDifference
from .chart_parts import ONLY, OTHER, Chart, layout_of
from .methods import MethodRow, MethodTable, Score

MOST_ROWS = 12
"""Most methods of a chart."""

MOST_CHARTS = 2
"""Most data sets and scenarios whose methods the overview draws."""

_BEST = "#0b57a4"
_LONGEST_NAME = 52
"""Most characters of a name: as many as fit a screen of 390 pixels."""


@dataclass(frozen=True)
class MethodCharts:
    """The charts of the methods on one data set and scenario.

    Attributes:
        title: data set and scenario.
        name: id of the charts.
        means: the means as JSON.
        differences: the differences from the best method as JSON; empty without any.
        in_words: the means in words.
        height: height of a chart in rem.
        caption: what the charts show, how sure it is, and what they leave out.
    """

    title: str
    name: str
    means: str
    differences: str
    in_words: str
    height: float
    caption: str


def method_charts(tables: Sequence[MethodTable], experiments: Sequence[str]) -> tuple[list[MethodCharts], int]:
    """Return charts of the methods for the overview, and the number of tables that it leaves to the page Methods.

    Args:
        tables: methods by data set and scenario; of one method, there is nothing to compare.
        experiments: names of the experiments of the overview, those that changed last first.
    """
    place = {name: position for position, name in enumerate(experiments)}
    compared = []
    for table in tables:
        rows = [row for row in table.rows if row.experiment in place and _mean(row) is not None]
        if len(rows) > 1:
            compared.append((min(place[row.experiment] for row in rows), table, rows))
    compared.sort(key=lambda item: item[0])
    charts = [_charts(table, rows, at) for at, (_, table, rows) in enumerate(compared[:MOST_CHARTS])]
    return charts, len(compared) - len(charts)


def _charts(table: MethodTable, rows: Sequence[MethodRow], number: int) -> MethodCharts:
    """Return the charts of a table."""
    shown = rows[:MOST_ROWS]
    metric, better = table.metrics[0], table.better[0]
    direction = f"({better} is better)" if better else "[95 %]"
    means = _forest(shown, [row.scores[0] for row in shown], (metric, direction))
    in_words = f"{metric}, mean and 95 % interval: " + "; ".join(_in_words(row) for row in shown)
    differences = ""
    if len({row.experiment for row in shown}) == 1 and any(row.minus_best.number is not None for row in shown):
        level = f", {table.level}" if table.level else ""
        chart = _forest(shown, [row.minus_best for row in shown], (f"{metric} minus best", f"[95 %{level}]"))
        chart["layout"]["xaxis"] |= {"zeroline": True, "zerolinecolor": "#555", "zerolinewidth": 1.5}
        chart["layout"]["xaxis"]["rangemode"] = "tozero"
        differences = json.dumps(chart)
    return MethodCharts(
        title=table.title,
        name=f"methods-{number}",
        means=json.dumps(means),
        differences=differences,
        in_words=in_words,
        height=5 + 4 * len(shown),
        caption=" ".join(_caption(table, rows, shown, is_paired=bool(differences))),
    )


def _forest(rows: Sequence[MethodRow], scores: Sequence[Score], title: Sequence[str]) -> Chart:
    """Return a chart with a row for each method: its value, and its interval as a line.

    Args:
        rows: the methods.
        scores: their values.
        title: the lines of the title of the horizontal axis; as many in all charts, whose rows are then side by side.
    """
    known = [(at, row, score.number) for at, (row, score) in enumerate(zip(rows, scores, strict=True))]
    points = [(at, row, number) for at, row, number in known if number is not None]
    colours = [_colour(row) for _, row, _ in points]
    below, above = zip(*(_ends(number) for _, _, number in points), strict=True)
    trace: Chart = {"type": "scatter", "mode": "markers", "name": escape(title[0])}
    trace["x"] = [number.mean for _, _, number in points]
    trace["y"] = [at for at, _, _ in points]
    trace["hovertext"] = [_hover(row, scores[at]) for at, row, _ in points]
    trace["hoverinfo"] = "text"
    trace["customdata"] = [f"/runs?{urlencode(row.query)}" for _, row, _ in points]
    trace["marker"] = {"color": colours, "size": 10}
    # Plotly has one colour for all the intervals of a trace.
    trace["error_x"] = {"type": "data", "symmetric": False, "thickness": 2, "width": 5, "color": "#777"}
    trace["error_x"] |= {"array": list(above), "arrayminus": list(below)}
    layout = layout_of("<br>".join(map(escape, title)), "")
    layout["yaxis"] |= {"tickvals": list(range(len(rows))), "showticklabels": False, "fixedrange": True}
    layout["yaxis"]["range"] = [len(rows) - 0.7, -0.9]
    layout["margin"] = {"l": 10, "r": 25, "t": 10, "b": 45}
    layout["showlegend"] = False
    layout["annotations"] = []
    for at, (row, score) in enumerate(zip(rows, scores, strict=True)):
        layout["annotations"].append(_words_above(at, _label(row, score)))
    return {"data": [trace], "layout": layout}


def _words_above(at: int, text: str) -> Chart:
    """Return words above a row, from the left edge of a chart on: beside it, they would narrow the chart of a phone."""
    words: Chart = {"text": text, "align": "left", "showarrow": False, "font": {"size": 12}, "bgcolor": "#fffc"}
    words |= {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": at, "yanchor": "bottom", "yshift": 6}
    return words


def _mean(row: MethodRow) -> PairedDifference | None:
    """Return the mean of the first metric of a method; None without a value."""
    return row.scores[0].number if row.scores else None


def _ends(mean: PairedDifference) -> tuple[float, float]:
    """Return the lengths of an interval below and above its mean; 0 without one."""
    if not np.isfinite(mean.low):
        return 0.0, 0.0
    return mean.mean - mean.low, mean.high - mean.mean


def _colour(row: MethodRow) -> str:
    """Return the colour of a method, as in the table: the best one, the others, and those that are not ranked."""
    if row.is_best:
        return _BEST
    return ONLY if row.is_ranked else OTHER


def _label(row: MethodRow, score: Score) -> str:
    """Return two lines: the name of a method; its value, units and rank."""
    name = escape(shorten(row.name, _LONGEST_NAME, placeholder="…"))
    if row.is_best:
        name = f"<b>{name}</b>"
    value = f"{_value(score)}, " if score.number is not None else ""
    return f"{name}<br>{escape(f'{value}{row.n}{_rank(row)}')}"


def _value(score: Score) -> str:
    """Return a value with its interval and p-value."""
    value = f"{score.mean} {score.interval}".strip()
    if score.p:
        value += f", p {'' if score.p.startswith('<') else '= '}{score.p}"
    return value


def _rank(row: MethodRow) -> str:
    """Return what follows the units of a method: its rank, or why it has none."""
    if row.is_best:
        return f", {'tied for the best' if row.is_tied else 'best'}{' by validation' if row.is_by_validation else ''}"
    return "" if row.is_ranked else ", incomplete"


def _hover(row: MethodRow, score: Score) -> str:
    """Return what is shown beside the mouse for a method."""
    lines = [row.name, _value(score), f"{row.n}, {row.finished} of {plural(row.asked, 'run')}{_rank(row)}"]
    return "<br>".join(map(escape, lines))


def _in_words(row: MethodRow) -> str:
    """Return a method with its mean, interval and units as text."""
    score = row.scores[0]
    parts = [row.name, score.mean, score.interval, f"({row.n}{_rank(row)})"]
    return " ".join(part for part in parts if part)


def _caption(
    table: MethodTable, rows: Sequence[MethodRow], shown: Sequence[MethodRow], *, is_paired: bool
) -> list[str]:
    """Return sentences on what the charts show, how sure it is, and what they leave out."""
    paired = ", and its paired difference from the best one" if is_paired else ""
    without = [row for row in shown if not row.scores[0].interval]
    if len(without) == len(shown):
        sentences = [f"Mean of each method{paired}, without intervals: they take three patient splits or seeds."]
        sentences.append("The order may be chance.")
    else:
        sentences = [f"Mean of each method with its 95 % interval, unadjusted{paired}."]
    if without and len(without) < len(shown):
        sentences.append(
            f"{plural(len(without), 'method')} without an interval: it takes three patient splits or seeds."
        )
    if table.on_one_split and len(without) < len(shown):
        sentences.append("Where n counts seeds, the interval is about one patient split, not over people.")
    if len(shown) > 1 and table.metrics[0].startswith("test "):
        sentences.append("The best test score comes first, and is partly luck.")
    if is_paired and _are_resolved(shown):
        sentences.append("The intervals of all differences from the best method exclude 0.")
    elif is_paired and (alike := _alike(shown)):
        sentences.append(f"The data do not tell the best method apart from {alike}.")
    if len(rows) > len(shown):
        sentences.append(f"The first {len(shown)} of {plural(len(rows), 'method')}.")
    if len({row.experiment for row in shown}) > 1:
        sentences.append("Rows of several experiments may be trained differently.")
    return sentences


def _differences(rows: Collection[MethodRow]) -> list[tuple[str, PairedDifference]]:
    """Return the differences from the best method that have an interval, with the names of their methods."""
    known = []
    for row in rows:
        difference = row.minus_best.number
        if difference is not None and np.isfinite(difference.low):
            known.append((row.name, difference))
    return known


def _are_resolved(rows: Sequence[MethodRow]) -> bool:
    """Return whether the intervals of all methods but the best one exclude 0."""
    known = _differences(rows)
    others = [row for row in rows if not row.is_best]
    return bool(known) and len(known) == len(others) and all(difference.excludes_zero for _, difference in known)


def _alike(rows: Sequence[MethodRow]) -> str:
    """Return the names of the methods whose difference from the best one may be 0; empty without any."""
    names = [name for name, difference in _differences(rows) if not difference.excludes_zero]
    if len(names) > 2:
        return plural(len(names), "other method")
    return " or ".join(names)
