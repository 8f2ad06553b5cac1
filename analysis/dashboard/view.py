"""What the reader has chosen, as the query of an address: a view can be kept and sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

PAGES = {
    "overview": "Overview",
    "runs": "Runs",
    "compare": "Compare",
    "heatmap": "Heatmap",
    "parallel": "Parallel coordinates",
    "run": "Run",
    "instances": "Instances",
    "search": "Search",
}
"""Name to title, in the order in which they are linked."""

MOST_CELLS = 6
"""Runs or configurations that are looked at beside one another."""

_LONGEST = 20_000


@dataclass(frozen=True)
class View:
    """What is looked at. What is empty is what the page begins with.

    Attributes:
        page: one of `PAGES`.
        experiment: its name.
        metric: a numeric column of `runs`.
        rows, columns: the axes of a heatmap.
        slice: the labels that a heatmap shows of the other axes, each as `slice_of` writes it, the last chosen last.
        cells: what is looked at closely, each by a run: that run, or its configuration.
        reference: what others are compared with, by a run of it.
        where: a condition on the columns of `runs`.
        find: words that the name of a run or its id contains.
        group: axes; runs that are alike in them are put together.
        show: columns of the table of runs beside its labels.
        sort: the column that a table goes by, with a minus before it for the highest first.
        at: the page of a table, from 1.
        run: whose instances or log.
        task: of which task.
        instance: which of them.
    """

    page: str = "overview"
    experiment: str = ""
    metric: str = ""
    rows: str = ""
    columns: str = ""
    slice: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    reference: str = ""
    where: str = ""
    find: str = ""
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

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The names and values in the address of this view, or of one that is like it but for some changes."""
        other = replace(self, **changes)
        pairs: list[tuple[str, str]] = []
        for name, default in _DEFAULTS.items():
            value = getattr(other, name)
            if value != default:
                pairs += [(name, str(it)) for it in (value if isinstance(value, tuple) else (value,))]
        return pairs

    def address(self, **changes: Any) -> str:
        """The address of this view, or of one that is like it but for some changes."""
        return f"?{urlencode(self.pairs(**changes))}"

    def ticked(self, name: str, chosen: Collection[str], option: str, options: Iterable[str]) -> str:
        """The address after an option has been ticked, or no longer is."""
        return self.address(**{name: tuple(it for it in options if (it in chosen) != (it == option)), "at": 1})

    def after(self, name: str, value: str) -> str:
        """The address after something has been chosen from a list; two axes change places."""
        if name == "experiment":
            return View(page=self.page, experiment=value, metric=self.metric, cells=self.cells).address()
        changes: dict[str, Any] = {name: value, "at": 1}
        if name in _OTHER_AXIS and value == getattr(self, _OTHER_AXIS[name]):
            changes[_OTHER_AXIS[name]] = getattr(self, name)
        if name == "run":
            changes["instance"] = -1
        return self.address(**changes)

    def sliced(self, shown: Mapping[str, str], axis: str, label: str) -> str:
        """The address with another label of one axis of the heatmap; the others stay as they are shown."""
        others = [slice_of(*it) for it in shown.items() if it[0] != axis]
        kept = sorted(others, key=lambda it: self.slice.index(it) if it in self.slice else -1)
        return self.address(slice=(*kept, slice_of(axis, label)))

    def with_cell(self, cell: str, alike: Iterable[str] = ()) -> tuple[str, ...]:
        """The chosen cells with one more, or without it if it is among them, be it under another of its runs."""
        same = {cell, *alike}
        others = tuple(it for it in self.cells if it not in same)
        return others if len(others) < len(self.cells) else (*others, cell)[-MOST_CELLS:]


def slice_of(axis: str, label: str) -> str:
    """How an address names a label of an axis."""
    return f"{axis}={label}"


_OTHER_AXIS = {"rows": "columns", "columns": "rows"}
_DEFAULTS = {field.name: field.default for field in fields(View)}
