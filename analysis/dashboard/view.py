"""Views: the reader's choices, encoded in the address, so that they can be bookmarked and shared."""

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
"""Pages: name to title, in navigation order."""

MOST_CELLS = 6
"""Most runs or configurations that are compared."""

_LONGEST = 20_000


@dataclass(frozen=True)
class View:
    """The reader's choices. Empty values mean the page's defaults.

    Attributes:
        page: one of `PAGES`.
        experiment: name of the experiment.
        metric: a numeric column of `runs`.
        rows, columns: the axes of a heatmap.
        slice: labels of a heatmap's other axes, encoded by `slice_of`, the last choice last.
        cells: selected runs or configurations, each as a run id.
        reference: the configuration to compare with, as a run id.
        where: a condition on the columns of `runs`.
        find: words in the name or id of a run.
        group: axes to group runs by.
        show: columns of the table of runs, in addition to its labels.
        sort: the column to sort by, with a leading minus for descending order.
        at: page of a table, from 1.
        run: id of the run whose instances or log are shown.
        task: task of the instances.
        instance: number of the instance.
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
        """Parse an address; unknown parameters are ignored."""
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
        """Return the names and values in the address of this view, with some changes."""
        other = replace(self, **changes)
        pairs: list[tuple[str, str]] = []
        for name, default in _DEFAULTS.items():
            value = getattr(other, name)
            if value != default:
                pairs += [(name, str(it)) for it in (value if isinstance(value, tuple) else (value,))]
        return pairs

    def address(self, **changes: Any) -> str:
        """Return the address of this view, with some changes."""
        return f"?{urlencode(self.pairs(**changes))}"

    def ticked(self, name: str, chosen: Collection[str], option: str, options: Iterable[str]) -> str:
        """Return the address with an option added or removed."""
        return self.address(**{name: tuple(it for it in options if (it in chosen) != (it == option)), "at": 1})

    def after(self, name: str, value: str) -> str:
        """Return the address after a choice from a list; choosing the other axis swaps both."""
        if name == "experiment":
            return View(page=self.page, experiment=value, metric=self.metric, cells=self.cells).address()
        changes: dict[str, Any] = {name: value, "at": 1}
        if name in _OTHER_AXIS and value == getattr(self, _OTHER_AXIS[name]):
            changes[_OTHER_AXIS[name]] = getattr(self, name)
        if name == "run":
            changes["instance"] = -1
        return self.address(**changes)

    def sliced(self, shown: Mapping[str, str], axis: str, label: str) -> str:
        """Return the address with another label of one axis of the heatmap; other labels are kept."""
        others = [slice_of(*it) for it in shown.items() if it[0] != axis]
        kept = sorted(others, key=lambda it: self.slice.index(it) if it in self.slice else -1)
        return self.address(slice=(*kept, slice_of(axis, label)))

    def with_cell(self, cell: str, alike: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the selected cells with one added, or removed if it was selected under any of its runs."""
        same = {cell, *alike}
        others = tuple(it for it in self.cells if it not in same)
        return others if len(others) < len(self.cells) else (*others, cell)[-MOST_CELLS:]


def slice_of(axis: str, label: str) -> str:
    """Return the encoding of an axis label in addresses."""
    return f"{axis}={label}"


_OTHER_AXIS = {"rows": "columns", "columns": "rows"}
_DEFAULTS = {field.name: field.default for field in fields(View)}
