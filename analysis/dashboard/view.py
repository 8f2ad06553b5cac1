"""What the reader has chosen, as the query of an address: a view can be kept and sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

PAGES = {
    "progress": "Progress",
    "runs": "Runs",
    "heatmap": "Heatmap",
    "parallel": "Parallel coordinates",
    "instances": "Instances",
    "search": "Search",
}
"""Name to title, in the order in which they are linked."""

MOST_CELLS = 6
"""Configurations that are looked at beside one another."""

_LONGEST = 20_000


@dataclass(frozen=True)
class View:
    """What is looked at. What is empty is what the page begins with.

    Attributes:
        page: one of `PAGES`.
        experiment: its name.
        metric: a numeric column of `runs`.
        rows, columns: the axes of a heatmap.
        panel: the title of one of its panels.
        cells: configurations that are looked at closely, each by a run of it: its first seed's.
        where: a condition on the columns of `runs`.
        group: axes; runs that are alike in them are put together.
        show: columns of the table of runs beside its labels.
        sort: the column that a table goes by, with a minus before it for the highest first.
        at: the page of a table, from 1.
        run: whose instances.
        task: of which task.
        instance: which of them.
    """

    page: str = "progress"
    experiment: str = ""
    metric: str = ""
    rows: str = ""
    columns: str = ""
    panel: str = ""
    cells: tuple[str, ...] = ()
    where: str = ""
    group: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    sort: str = ""
    at: int = 1
    run: str = ""
    task: str = ""
    instance: int = -1

    @classmethod
    def read(cls, query: str) -> View:
        """The view that an address names; what it has that is no part of a view is passed over."""
        given: dict[str, Any] = {}
        for name, text in parse_qsl(query.removeprefix("?")[:_LONGEST], keep_blank_values=True, max_num_fields=None):
            default = _DEFAULTS.get(name)
            if isinstance(default, tuple):
                given[name] = (*given.get(name, ()), text)
            elif isinstance(default, int):
                given[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
            elif default is not None:
                given[name] = text
        view = cls(**given)
        known = view.page in PAGES
        return replace(view, page=view.page if known else cls.page, cells=view.cells[:MOST_CELLS], at=max(1, view.at))

    def address(self, **changes: Any) -> str:
        """The address of this view, or of one that is like it but for some changes."""
        other = replace(self, **changes)
        pairs: list[tuple[str, str]] = []
        for name, default in _DEFAULTS.items():
            value = getattr(other, name)
            if value != default:
                pairs += [(name, str(it)) for it in (value if isinstance(value, tuple) else (value,))]
        return f"?{urlencode(pairs)}"

    def after(self, name: str, value: str) -> str:
        """The address after something has been chosen from a list; two axes change places."""
        if name == "experiment":
            return View(page=self.page, experiment=value, metric=self.metric).address()
        changes: dict[str, Any] = {name: value, "at": 1}
        if name in _OTHER_AXIS:
            changes["panel"] = ""
            if value == getattr(self, _OTHER_AXIS[name]):
                changes[_OTHER_AXIS[name]] = getattr(self, name)
        if name == "run":
            changes["instance"] = -1
        return self.address(**changes)

    def with_cell(self, cell: str, alike: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen cells with one more, or without it if it is among them, be it under another of its runs."""
        same = {cell, *alike}
        others = tuple(it for it in self.cells if it not in same)
        return others if len(others) < len(self.cells) else (*others, cell)[-MOST_CELLS:]


_OTHER_AXIS = {"rows": "columns", "columns": "rows"}
_DEFAULTS = {field.name: field.default for field in fields(View)}
