"""What the page shows for an address, and which address follows from a choice: all that the browser asks for."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import Any

from clops_sweep.errors import UsageError, one_line, reason

from ..scene import Scene
from ..snapshot import FollowedStore, Snapshot
from ..view import PAGES, View
from .element import Element, element, link, notice, signature
from .heatmap_page import heatmap_controls, heatmap_page
from .instances_page import instances_controls, instances_page
from .parallel_page import parallel_controls, parallel_page
from .progress_page import progress_page
from .runs_page import runs_controls, runs_page
from .search_page import importance_part, search_controls, search_page

_MADE = {
    "runs": (runs_controls, runs_page),
    "heatmap": (heatmap_controls, heatmap_page),
    "parallel": (parallel_controls, parallel_page),
    "instances": (instances_controls, instances_page),
    "search": (search_controls, search_page),
}
_KEPT_BY_PAGES = {"experiment", "metric", "rows", "columns", "panel", "cells", "where", "group", "show"}
"""What stays as it is when another page is gone to."""

_FRESH = View()


@dataclass(frozen=True)
class Parts:
    """The parts of the page. `links` are those to all pages, `said` is read out when it changes."""

    links: tuple[Element, ...]
    controls: tuple[Element, ...]
    content: tuple[Element, ...]
    said: tuple[Element, ...]

    def signatures(self) -> dict[str, str]:
        """By which it is seen which parts are as they were."""
        return {part.name: signature(getattr(self, part.name)) for part in fields(self)}


class Pages:
    """The pages of a store that is followed."""

    def __init__(self, followed: FollowedStore) -> None:
        self._followed = followed

    @property
    def version(self) -> int:
        """Of what is shown."""
        return self._followed.snapshot.version

    def refresh(self) -> int:
        """Looks whether the store has changed; the version of what is there."""
        return self._followed.refresh().version

    def show(self, query: str) -> Parts:
        """The page at an address."""
        view, snapshot = View.read(query), self._followed.snapshot
        links = tuple(_page_link(view, name, snapshot) for name in PAGES)
        controls, content = self._made(view, snapshot)
        return Parts(links, controls, content, _said(snapshot))

    def importance(self, query: str) -> tuple[Element, ...]:
        """The importance of the parameters of the search at an address."""
        scene = Scene.of(View.read(query), self._followed.snapshot, self._followed.store)
        return importance_part(scene) if scene is not None and scene.followed.study is not None else ()

    def chosen(self, query: str, name: str, value: Any) -> str:
        """The address after boxes have been ticked or a condition written; what is neither leaves it as it is."""
        view = View.read(query)
        if name in ("group", "show") and isinstance(value, list):
            return view.address(**{name: tuple(map(str, value)), "at": 1})
        if name == "where" and isinstance(value, str | None):
            return view.address(where=(value or "").strip(), at=1)
        return query

    def clicked(self, query: str, key: Any) -> str:
        """The address after a click on a line of the parallel coordinates."""
        view = View.read(query)
        return view.address(page="heatmap", cells=view.with_cell(key)) if isinstance(key, str) else query

    def _made(self, view: View, snapshot: Snapshot) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
        try:
            if view.page not in _MADE:
                return (), progress_page(view, snapshot)
            scene = Scene.of(view, snapshot, self._followed.store)
            if scene is None:
                what = "search" if view.page == "search" else "run"
                return (), (notice(f"There is no {what} here yet."),)
            controls, content = _MADE[view.page]
            return controls(scene), content(scene)
        except (UsageError, OSError) as error:
            return (), (notice(f"{one_line(error)}."),)
        except Exception as error:  # a store is input, and what is not shown would pass for what was there before
            logging.getLogger(__name__).exception("the page at %s", view.address())
            return (), (notice(f"This cannot be shown: {reason(error)}."),)


def _page_link(view: View, name: str, snapshot: Snapshot) -> Element:
    kept = {field: getattr(view, field) for field in _KEPT_BY_PAGES}
    if kept["experiment"] and snapshot.followed.get(kept["experiment"]) is None:
        kept["experiment"] = ""
    here = view.page == name
    address, current = replace(_FRESH, **kept).address(page=name), "page" if here else None
    target = link(PAGES[name], address, id=f"page-{name}", aria_current=current)
    return element("Li", target, className="here" if here else None)


def _said(snapshot: Snapshot) -> tuple[Element, ...]:
    if snapshot.problem:
        return (notice(f"The store cannot be read just now, so this is what it held before: {snapshot.problem}"),)
    counts = snapshot.runs["status"].value_counts()
    failed = f", {counts['failed']:,} failed" if "failed" in counts else ""
    return (element("P", f"{counts.get('finished', 0):,} runs finished{failed}.", className="muted"),)
