"""The report as a self-contained HTML file: figures are inline, and it makes no requests."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from clops_sweep.experiment.axis_names import axis_symbol
from clops_sweep.store.commands import rerun_command

from ..drawing.pictures import Picture
from ..formats import DASH, TextCell, TextTable

MOST_OPEN = 5
"""Most sections on a page that are shown unfolded."""


@dataclass(frozen=True)
class LinkedTable:
    """A table in the page: the anchor of each row's runs (empty: none), and the names of its files.

    `greyed` are the positions of rows that say little. On a narrow screen, each row of a `stacked` table is a card.
    """

    table: TextTable
    links: tuple[str, ...]
    files: tuple[str, ...]
    folded: bool = False
    greyed: frozenset[int] = frozenset()
    stacked: bool = False

    def __getattr__(self, name: str) -> object:
        return getattr(self.table, name)


@dataclass(frozen=True)
class RunEntry:
    """A run in the list: `replicate` names seed and split, `run_id` is empty if unknown.

    Only runs in the store have a command that repeats them.
    """

    replicate: str
    run_id: str
    remark: str = ""
    in_store: bool = True


@dataclass(frozen=True)
class RunList:
    """The runs of one configuration, folded, with an anchor.

    Long lists are replaced by `condition`, which selects them with `--where`, and `figure`, the anchor of their figure.
    """

    anchor: str
    title: str
    count: str
    runs: tuple[RunEntry, ...]
    condition: str = ""
    figure: str = ""


@dataclass(frozen=True)
class Section:
    """One search space on the page: figures, tables, more figures, notices, runs.

    The runs of a section `of_tuning` only chose configurations.
    """

    anchor: str
    title: str
    progress: str
    notices: tuple[str, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[LinkedTable, ...]
    more_pictures: tuple[Picture, ...]
    runs: tuple[RunList, ...]
    not_shown: tuple[str, ...] = ()
    of_tuning: bool = False


def render_page(
    title: str,
    lead: Sequence[str],
    best: LinkedTable | None,
    sections: Sequence[Section],
    methods: Sequence[tuple[str, str]],
    claims: Section | None,
    results: str,
    setup: LinkedTable,
    overview: Sequence[Picture],
    by_task: Sequence[LinkedTable] = (),
    plugins: Mapping[str, Sequence[str]] = MappingProxyType({}),
    prepared_root: str | None = None,
    commands: Sequence[tuple[str, str]] = (),
    path_in_store: str = "",
) -> str:
    """Return the page as HTML. All text is escaped; equal input gives an equal page.

    Args:
        title: heading of the page.
        lead: the paragraphs below it: claims, the best configuration, and the runs.
        best: the best configurations.
        sections: one section per search space.
        methods: names and texts; adjacent texts of equal names share a heading.
        claims: the section of the claims.
        results: the store, as `--results` takes it, for the commands that repeat runs.
        setup: the set-up of the experiments.
        overview: figures of the best configurations.
        by_task: their scores by task.
        plugins: run id to the files that such a command must name.
        prepared_root: the folder of prepared frames that such a command must name.
        commands: purposes and commands of the last section; a command that repeats a run is added.
        path_in_store: path of the page inside the store, by which a page finds a store that was moved; empty elsewhere.
    """

    def rerun(run_id: str) -> str:
        return rerun_command(run_id, results, plugins=plugins.get(run_id, ()), prepared_root=prepared_root)

    first = _first_stored(sections)
    if first:
        purpose = 'Repeat a run, here the first; "All runs" of a section has the command of each'
        commands = [*commands, (purpose, rerun(first))]
    return from_template(
        "report",
        title=title,
        lead=lead,
        best=best,
        sections=sections,
        methods=methods,
        claims=claims,
        rerun=rerun,
        folded=_folded(sections),
        commands=commands,
        results=results,
        path_in_store=path_in_store,
        setup=setup,
        overview=overview,
        by_task=by_task,
        numbers=numbered(setup, best, overview, [*sections, *([claims] if claims else [])], by_task),
    )


def _folded(sections: Sequence[Section]) -> frozenset[str]:
    """Return the anchors of the folded sections: with many sections those of tuning, and all if results are many."""
    if len(sections) <= MOST_OPEN:
        return frozenset()
    of_tuning = [section.anchor for section in sections if section.of_tuning]
    if len(sections) - len(of_tuning) <= MOST_OPEN:
        return frozenset(of_tuning)
    return frozenset(section.anchor for section in sections)


def _first_stored(sections: Sequence[Section]) -> str:
    """Return the id of the first run of the page that the store has; empty without one."""
    for section in sections:
        for runs in section.runs:
            for entry in runs.runs:
                if entry.in_store and entry.run_id:
                    return entry.run_id
    return ""


def numbered(
    setup: LinkedTable,
    best: LinkedTable | None,
    overview: Sequence[Picture],
    sections: Sequence[Section],
    by_task: Sequence[LinkedTable] = (),
) -> dict[str, str]:
    """Return the numbers of figures and tables in the order of the page, such as "Figure 3", by name."""
    figures = [picture.name for picture in overview]
    tables = [best.table.name] if best is not None else []
    tables += [*(linked.table.name for linked in by_task), setup.table.name]
    for section in sections:
        figures += [picture.name for picture in (*section.pictures, *section.more_pictures)]
        tables += [linked.table.name for linked in section.tables]
    numbers = {name: f"Figure {number}" for number, name in enumerate(figures, 1)}
    numbers |= {name: f"Table {number}" for number, name in enumerate(tables, 1)}
    return numbers


def from_template(folder: str, **content: object) -> str:
    """Return the page of a folder of `analysis`, with style and script of the report."""
    styles = (_text(f"{of}/page.css") for of in dict.fromkeys(("report", folder)))
    script = Markup(_text("report/page.js"))
    return rendered(f"{folder}/page.html.jinja", style=Markup("".join(styles)), script=script, **content)


def rendered(template: str, **content: object) -> str:
    """Return a template of `analysis`, filled in; text is escaped."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", _ENVIRONMENT.get_template(template).render(content))


def part(macro: str, *given: object) -> Markup:
    """Return the HTML of a macro of `parts.html.jinja`, such as a figure or a section."""
    return Markup(getattr(_ENVIRONMENT.get_template("report/parts.html.jinja").module, macro)(*given))


def _text(name: str) -> str:
    return _LOADER.get_source(_ENVIRONMENT, name)[0]


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters of terminals and of writing direction, which could disguise a text."""


def breakable(name: str) -> Markup:
    """Return a name as HTML that a narrow place breaks after an underscore."""
    return Markup("_<wbr>").join(name.split("_"))


_LONGEST_WORD = 36
"""Most characters of a word that is not broken: as many as fit a screen of 390 pixels."""


def as_command(command: str) -> Markup:
    """Return a command as HTML. A line breaks between its words, not at the hyphens of an option."""
    words = []
    for word in command.split(" "):
        if len(word) <= _LONGEST_WORD:
            words.append(Markup("<span>{}</span>").format(word))
        else:
            words.append(escape(word))
    return Markup('<code class="command">{}</code>').format(Markup(" ").join(words))


def free_name(name: str, taken: Sequence[str], longer: str) -> str:
    """Return a name, made longer until it is not taken."""
    while name in taken:
        name += longer
    return name


def no_links(table: TextTable, files: Sequence[str]) -> LinkedTable:
    """Return a table whose rows have no links to runs."""
    return LinkedTable(table, ("",) * len(table.rows), tuple(files))


def table_rows(table: LinkedTable) -> Markup:
    """Return the rows of a table's body as HTML; with ten thousand rows, a template would be slow."""
    inner, labels, lines = table.table, table.table.n_label_columns, []
    for place, (row, target) in enumerate(zip(inner.rows, table.links, strict=True)):
        cells = []
        for position, cell in enumerate(row):
            text: str = escape(_KEPT_TOGETHER.sub("\N{NO-BREAK SPACE}", cell.text))
            kind, name = "value", ""
            if cell.bold:
                text = f"<b>{text}</b>"
            if position < labels:
                kind = "label"
                if position == 0 and labels > 1:
                    name = f' data-name="{escape(row_name(row, inner))}"'
                    text = text if cell.bold else f"<span>{text}</span>"
            elif target and cell.text != DASH:
                text = f'<a href="#{escape(target)}">{text}</a>'
            if table.stacked:
                name = f' data-head="{escape(inner.header[position])}"'
            if cell.whole:
                name += f' title="{escape(cell.whole)}"'
            cells.append(f'<td class="{kind}" data-sort="{escape(_sort_key(cell.value))}"{name}>{text}</td>')
        grey = ' class="few"' if place in table.greyed else ""
        lines.append(f"<tr{grey}>{''.join(cells)}</tr>\n")
    return Markup("".join(lines))


_KEPT_TOGETHER = re.compile(r"(?<=[=,\u00b1+]) (?=[\d.-])| (?=[\u00b1=])|(?<=\d) (?=split|fold|seed)")
"""Spaces inside numbers and intervals, which do not break: narrow tables break lines between them instead."""


def row_name(row: Sequence[TextCell], table: TextTable) -> str:
    """Return all labels of a row as one text, "b = 0.1, CLOPS", for narrow screens."""
    parts = []
    for cell, heading in zip(row[: table.n_label_columns], table.header, strict=False):
        if heading == "minus" or isinstance(cell.value, float):
            symbol = axis_symbol(heading.replace(" ", "_")).replace("_", " ")
            together = "minus {}" if heading == "minus" else symbol + "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{}"
            parts.append(together.format(cell.text))
        elif cell.text:
            parts.append(cell.text)
    return ", ".join(parts)


def _sort_key(value: float | str) -> str:
    return "" if isinstance(value, float) and math.isnan(value) else str(value)


_LOADER = FileSystemLoader(Path(__file__).parents[1])
_ENVIRONMENT = Environment(
    loader=_LOADER, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.filters |= {"table_rows": table_rows, "breakable": breakable, "as_command": as_command}
