"""The pages as an application of Dash. What Dash is needed for is in here alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import validate_call

from clops_sweep.errors import UsageError

from .pages.element import Element
from .pages.pages import Pages

NOT_INSTALLED = "the dashboard needs Dash and waitress; install them with: pip install 'clops-sweep[dashboard]'"
_CORE = {"Checklist", "Graph", "Input", "Store"}
_CALLS = "/_dash-update-component"
"""Where Dash receives what a reader has chosen."""

_FILLED_LATER = {"importance"}
"""Ids of elements that another callback fills."""

_IN_HTML = {"className": "class", "htmlFor": "for"}
_PARTS = ("links", "controls", "content", "said")
_NO_FIGURE = {"data": [], "layout": {"width": 10, "height": 10}}
_UNHEARD = {"aria-hidden": "true"}
_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<link rel="icon" href="data:,">
<title>{%title%}</title>
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""


def make_app(pages: Pages, name: str, seconds: float) -> Any:
    """The application.

    Args:
        pages: what is shown.
        name: of the store, as it may be printed.
        seconds: how often a browser asks for news.

    Raises:
        UsageError: Dash is not installed.
    """
    try:
        import dash
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    app = dash.Dash(
        "clops_sweep.analysis.dashboard",
        assets_folder=str(Path(__file__).with_name("assets")),
        title="clops-sweep",
        update_title=None,
        index_string=_INDEX,
        serve_locally=True,
        suppress_callback_exceptions=True,
        add_log_handler=False,
    )
    app.layout = lambda: _layout(pages, name, seconds)
    _connect(app, pages)
    _refuse_malformed(app)
    return app


def _refuse_malformed(app: Any) -> None:
    """Answer a malformed request in a sentence, not with a traceback.

    Errors of the callbacks are `_CallbackError`s. Whatever else Dash raises is about the request.
    """
    from dash.exceptions import DependencyException, PreventUpdate
    from flask import Response
    from werkzeug.exceptions import HTTPException

    def said(text: str, status: int) -> Response:
        return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")

    dispatch = app.server.view_functions[_CALLS]

    def checked() -> Any:
        try:
            return dispatch()
        except (HTTPException, PreventUpdate, _CallbackError):
            raise
        except Exception:  # of any type, as Dash does not check what it is sent
            return said("malformed request", 400)

    app.server.view_functions[_CALLS] = checked
    app.server.register_error_handler(DependencyException, lambda error: said("no such file", 404))


class _CallbackError(Exception):
    """An error in a callback, not in what it was sent."""


def _checked(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback that checks the types of what it is sent."""
    from werkzeug.exceptions import HTTPException

    @functools.wraps(callback)
    def called(*given: Any) -> Any:
        try:
            return callback(*given)
        except HTTPException:
            raise
        except Exception as error:
            raise _CallbackError(callback.__name__) from error

    return validate_call(called)


def components(parts: Sequence[Element]) -> list[Any]:
    """Elements as components of Dash."""
    return [_component(part) for part in parts]


def _component(part: Element | str) -> Any:
    """A component; what has none of Dash's core components in it becomes one: 400 would take half a second.

    Its elements are made by `assets/dashboard.js` of what `_tree` says, as text and attributes, never as markup.
    """
    from dash import dcc, html

    if isinstance(part, str):
        return part
    if not _needs_dash(part):
        tree = json.dumps(_tree(part), separators=(",", ":"), ensure_ascii=False)
        return html.Div(className="made", **{"data-tree": tree})
    given = {name.replace("aria_", "aria-", 1): value for name, value in part.attributes.items()}
    if part.children:
        given["children"] = [_component(child) for child in part.children]
    return getattr(dcc if part.kind in _CORE else html, part.kind)(**given)


def _needs_dash(part: Element | str) -> bool:
    if isinstance(part, str):
        return False
    its_own = part.kind in _CORE or part.attributes.get("id") in _FILLED_LATER
    return its_own or any(map(_needs_dash, part.children))


def _tree(part: Element | str) -> Any:
    """An element of HTML as [name, attributes, children]."""
    if isinstance(part, str):
        return part
    given = {
        _IN_HTML.get(name, name.lower().replace("_", "-")): value if isinstance(value, str) else _attribute(value)
        for name, value in part.attributes.items()
        if value is not False
    }
    return [part.kind.lower(), given, [_tree(child) for child in part.children]]


def _attribute(value: Any) -> str:
    if isinstance(value, dict):
        return ";".join(f"{name}:{it}" for name, it in value.items())
    return "" if value is True else str(value)


def _layout(pages: Pages, name: str, seconds: float) -> Any:
    from dash import dcc, html

    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="version", data=pages.version),
            dcc.Store(id="sent", data={}),
            dcc.Interval(id="tick", interval=round(1000 * seconds)),
            # Plotly takes a second to load, which nobody waits for once the page is there.
            html.Div(dcc.Graph(figure=_NO_FIGURE, config={"staticPlot": True}), className="unseen", **_UNHEARD),
            html.A("Skip to the content", href="#content", className="skip"),
            html.Header(
                [
                    html.H1(["clops-sweep ", html.Code(name)]),
                    html.Nav(html.Ul(id="links"), **{"aria-label": "Pages"}),
                    html.Div(id="said", role="status", **{"aria-live": "polite"}),
                ]
            ),
            html.Div(id="controls", role="group", **{"aria-label": "What is shown"}),
            html.Main(id="content", tabIndex="-1"),
        ]
    )


def _connect(app: Any, pages: Pages) -> None:
    from dash import ALL, Input, Output, State, ctx, no_update
    from flask import abort

    def show(query: str | None, version: int, sent: dict[str, str]) -> list[Any]:
        del version
        parts = pages.show(query or "")
        new = parts.signatures()
        shown = [no_update if sent.get(it) == new[it] else components(getattr(parts, it)) for it in _PARTS]
        return [*shown, new]

    def follow(ticks: int, version: int) -> Any:
        del ticks
        now = pages.refresh()
        return now if now != version else no_update

    def choose(values: list[Any], clicks: list[Any], query: str | None) -> Any:
        del values, clicks
        try:
            control = ctx.triggered_id
        except (ValueError, AttributeError):  # the name that the browser gives is not JSON or not text
            abort(400)
        # All controls of a new page send their values at once; a reader changes one at a time.
        if len(ctx.triggered) != 1 or not isinstance(control, dict):
            return no_update
        before, value = query or "", ctx.triggered[0]["value"]
        if "graph" in control:
            points = value.get("points") if isinstance(value, dict) else None
            after = pages.clicked(before, points[0].get("customdata")) if points else before
        else:
            after = pages.chosen(before, str(control.get("control")), value)
        return after if after != before else no_update

    def tell_importance(asked: dict[str, Any] | None) -> Any:
        return components(pages.importance(str(asked.get("query", "")))) if asked else no_update

    shown = [Output(it, "children") for it in _PARTS]
    app.callback(
        [*shown, Output("sent", "data")], Input("address", "search"), Input("version", "data"), State("sent", "data")
    )(_checked(show))
    app.callback(
        Output("version", "data"), Input("tick", "n_intervals"), State("version", "data"), prevent_initial_call=True
    )(_checked(follow))
    app.callback(
        Output("address", "search"),
        Input({"control": ALL}, "value"),
        Input({"graph": ALL}, "clickData"),
        State("address", "search"),
        prevent_initial_call=True,
    )(_checked(choose))
    app.callback(Output("importance", "children"), Input("importance-asked", "data"), prevent_initial_call=True)(
        _checked(tell_importance)
    )
