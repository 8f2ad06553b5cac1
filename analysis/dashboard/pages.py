"""The HTML page of an address. All text is escaped."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from clops_sweep.errors import UsageError, one_line, reason
from clops_sweep.store.rows import printable

from ..axis_names import axis_title
from ..collect import label_text
from ..drawing.style import readable_on
from ..figures.importance import describe_importance, importance
from ..formats import DASH, plural
from ..metrics import metric_named
from .contexts import CONTEXTS, Context, objective_of, shown_columns, time_text
from .figures import importance_figure
from .records.overview import counts
from .records.runs_table import runs_csv
from .scene import Scene
from .snapshot import FollowedStore, Snapshot
from .view import PAGES, View

_KEPT_BY_PAGES = {"experiment", "metric", "rows", "columns", "slice", "cells", "where", "group", "show"}
"""Choices that are kept when the page changes."""

_WITHOUT_RUNS = {"overview", "run"}
"""Pages with content before any run has ended."""


class Pages:
    """The pages of a store.

    Args:
        followed: the store.
        name: name of the store for display.
        seconds: interval at which browsers check for changes.
    """

    def __init__(self, followed: FollowedStore, name: str = "", seconds: float = 3.0) -> None:
        self._followed = followed
        self._name, self._seconds = name, seconds

    def refresh(self, query: str = "") -> str:
        """Read the store if it has changed; return the version of the page at an address."""
        return _version(View.read(query), self._followed.refresh())

    def show(self, query: str) -> str:
        """Return the page at an address."""
        view, snapshot = View.read(query), self._followed.snapshot
        counted, running = snapshot.once("counts", lambda: counts(snapshot)), len(snapshot.running)
        if "missing" in counted:
            counted = counted | {"missing": max(0, counted["missing"] - running)}
        given = {
            "name": self._name,
            "seconds": self._seconds,
            "version": _version(view, snapshot),
            "problem": snapshot.problem,
            "counts": counted,
            "running": running,
            "view": view,
            "pages": {name: (title, _address_of_page(view, name, snapshot)) for name, title in PAGES.items()},
            "notice": "",
        }
        try:
            scene = Scene.of(view, snapshot, self._followed.store)
            if scene is not None:
                given |= {"view": scene.view, "scene": scene}
            elif view.page not in _WITHOUT_RUNS:
                raise UsageError(f"This store holds no {'search' if view.page == 'search' else 'run'} yet.")
            made = CONTEXTS[view.page](scene or Scene.empty(view, snapshot, self._followed.store))
            return _rendered(view.page, {"scene": None} | given | made)
        except (UsageError, OSError) as error:
            notice = one_line(error)
        except Exception as error:  # a store is untrusted input, and an error must not leave the previous page in place
            logging.getLogger(__name__).exception("the page at %s", view.address())
            notice = f"This page cannot be shown: {reason(error)}"
        return _rendered("notice", given | {"notice": notice})

    def csv(self, query: str) -> str:
        """Return the table of runs at an address, all rows of it.

        Raises:
            UsageError: there is no run, or the condition is invalid.
        """
        scene = Scene.of(View.read(query), self._followed.snapshot, self._followed.store)
        if scene is None:
            raise UsageError("This store holds no run yet.")
        view = scene.view
        return runs_csv(scene.experiment, condition=view.where, group=view.group, sort=view.sort)

    def importance(self, query: str) -> str:
        """Return which parameters matter for the objective of the search at an address."""
        scene = Scene.of(View.read(query), self._followed.snapshot, self._followed.store)
        if scene is None or scene.followed.study is None:
            return ""
        objective = objective_of(scene)

        def make() -> str:
            try:
                record = importance(scene.experiment, objective)
            except ValueError as error:  # includes UsageError
                return _rendered("importance", {"notice": one_line(error)})
            drawn = {"figure": importance_figure(record), "alt": describe_importance(record)}
            return _rendered("importance", {"notice": ""} | drawn)

        return scene.snapshot.once(("importance", scene.name, objective), make)


def _version(view: View, snapshot: Snapshot) -> str:
    """Return the version of a page. Only the overview and the page of a running run change with its epochs."""
    follows = view.page == "overview" or (view.page == "run" and (not view.run or view.run in snapshot.running))
    return f"{snapshot.version}.{snapshot.epochs}" if follows else str(snapshot.version)


def _address_of_page(view: View, name: str, snapshot: Snapshot) -> str:
    kept = {field: getattr(view, field) for field in _KEPT_BY_PAGES}
    if kept["experiment"] not in snapshot.followed:
        kept["experiment"] = ""
    return replace(View(), **kept).address(page=name)


# --- HTML -------------------------------------------------------------------------------------------------------------


def _text(value: object) -> object:
    """Remove control characters from text; markup made by a template is kept."""
    return printable(value) if type(value) is str else value


def _value(value: object) -> str:
    """Format a value of a table of instances."""
    if value is None or value != value:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else label_text(value)


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.globals |= {
    "DASH": DASH,
    "View": View,
    "axis_title": axis_title,
    "label_text": label_text,
    "metric_title": lambda name: metric_named(name).plain,
    "one_line": one_line,
    "plural": plural,
    "readable_on": readable_on,
    "shown_columns": shown_columns,
    "time_text": time_text,
    "value_text": _value,
    "short_hash": lambda text: f"{crc32(text.encode('utf-8', 'backslashreplace')):08x}",
}


def _rendered(template: str, given: Context) -> str:
    return _ENVIRONMENT.get_template(f"{template}.html.jinja").render(given)
