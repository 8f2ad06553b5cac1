"""Parts that several pages have: controls with their labels, tables, captions, the links to a table's pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...formats import TextTable
from ...metrics import metric_named
from ..figures import Figure
from ..view import View
from .element import Element, element, link


def choice(
    view: View, name: str, title: str, options: Iterable[str], value: str, texts: Iterable[str] | None = None
) -> Element:
    """A list that one thing is chosen from; each leads to its view."""
    listed = list(options)
    made = [
        element("Option", text, value=view.after(name, it), selected=it == value)
        for it, text in zip(listed, texts or listed, strict=True)
    ]
    key = f"choose-{name}"
    return element("Div", element("Label", title, htmlFor=key), element("Select", *made, id=key), className="control")


def choices(name: str, title: str, options: Iterable[str], value: Sequence[str], none: str) -> Element:
    """A list that some things are chosen from; `none` says what holds without any."""
    said = ", ".join(value) or none
    boxes = element("Checklist", id=control_id(name), options=list(options), value=list(value))
    key = f"choices-{name}"
    folded = element("Details", element("Summary", said, aria_label=f"{title}: {said}"), boxes, id=key)
    return element(
        "Div", element("Span", title, className="label"), folded, className="control", role="group", aria_label=title
    )


def entry(name: str, title: str, value: str, example: str) -> Element:
    """A line to write into."""
    key = json.dumps(control_id(name), separators=(",", ":"))  # as Dash writes it into the page
    box = element(
        "Input", id=control_id(name), value=value, type="text", debounce=True, placeholder=example, spellCheck=False
    )
    return element("Div", element("Label", title, htmlFor=key), box, className="control")


def control_id(name: str) -> dict[str, str]:
    """The id of the control of a part of the view."""
    return {"control": name}


def metric_choice(view: View, metrics: Sequence[str]) -> Element:
    """The choice of a metric."""
    return choice(view, "metric", "Metric", metrics, view.metric, [metric_named(name).plain for name in metrics])


def experiment_choice(view: View, name: str, names: Sequence[str]) -> Element:
    """The choice of an experiment."""
    return choice(view, "experiment", "Experiment", names, name)


def table(
    caption: str, header: Sequence[Element | str], rows: Iterable[Sequence[Element | str]], **given: Any
) -> Element:
    """A table whose rows begin with their name; a cell that is no element of a table is put into one."""
    body = [element("Tr", *(_cell(it, first=at == 0) for at, it in enumerate(row))) for row in rows]
    head = element("Tr", *(it if _is_cell(it) else element("Th", it, scope="col") for it in header))
    drawn = element("Table", element("Thead", head), element("Tbody", *body), aria_label=caption, **given)
    # A caption of HTML is no wider than its table, and most of these tables are narrow.
    titled = (element("P", caption, className="caption", **{"aria-hidden": "true"}), drawn)
    return element("Div", *titled, className="scroll", tabIndex="0", role="region", aria_label=caption)


def text_table(found: TextTable) -> Element:
    """A table of the report."""
    rows = [[element("B", cell.text) if cell.bold else cell.text for cell in row] for row in found.rows]
    notes = element("P", " ".join(found.notes), className="muted")
    return element("Div", table(found.title, found.header, rows), notes)


def sorted_by(view: View, name: str, title: str, sort: str) -> Element:
    """A head of a table that sorts by its column; once more, the other way round."""
    falling = sort == f"-{name}"
    state = "descending" if falling else "ascending" if sort == name else "none"
    order = name if falling else f"-{name}"
    arrow = {"descending": " ↓", "ascending": " ↑", "none": ""}[state]
    return element(
        "Th", link(title + arrow, view.address(sort=order, at=1), id=f"sort-{name}"), scope="col", aria_sort=state
    )


def pager(view: View, at: int, pages: int, what: str) -> Element | None:
    """Links to the pages before and after."""
    if pages < 2:
        return None
    before = (
        link("← previous", view.address(at=at - 1), id="previous")
        if at > 1
        else element("Span", "← previous", className="muted")
    )
    after = (
        link("next →", view.address(at=at + 1), id="next")
        if at < pages
        else element("Span", "next →", className="muted")
    )
    return element(
        "Nav",
        before,
        element("Span", f"page {at} of {pages:,}"),
        after,
        className="pager",
        aria_label=f"Pages of {what}",
    )


def graph(figure: Figure, description: str, name: str) -> Element:
    """A figure, and what it shows for those who do not see it."""
    config = {"displayModeBar": False, "responsive": True}
    drawn = element("Graph", id={"graph": name}, figure=figure, config=config)
    return element("Div", drawn, role="img", aria_label=description, className="graph")


def rerun(command: str) -> Element:
    """A command that can be copied."""
    return element("Code", command)


def _is_cell(it: Element | str) -> bool:
    return isinstance(it, Element) and it.kind in ("Th", "Td")


def _cell(it: Element | str, first: bool) -> Element:
    if isinstance(it, Element) and _is_cell(it):
        return it
    return element("Th", it, scope="row") if first else element("Td", it)
