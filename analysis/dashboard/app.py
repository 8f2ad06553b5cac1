"""The pages as an application of Dash. What Dash is needed for is in here alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clops_sweep.analysis.dashboard.element import Element
from clops_sweep.analysis.dashboard.pages import Pages
from clops_sweep.errors import BadInput

_CORE = {"Checklist", "Graph", "Input", "Store"}
_QUIET = 700
"""Milliseconds after which Plotly, which takes a second to load, is loaded before anybody has asked for a figure."""

_PARTS = ("links", "controls", "content", "said")
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
        BadInput: Dash is not installed.
    """
    try:
        import dash
    except ImportError:
        raise BadInput("the dashboard needs Dash; install it with: pip install 'clops-sweep[dashboard]'") from None
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
    return app


def components(parts: Sequence[Element]) -> list[Any]:
    """Elements as components of Dash."""
    return [_component(part) for part in parts]


def _component(part: Element | str) -> Any:
    from dash import dcc, html

    if isinstance(part, str):
        return part
    given = {name.replace("aria_", "aria-", 1): value for name, value in part.attributes.items()}
    if part.children:
        given["children"] = [_component(child) for child in part.children]
    return getattr(dcc if part.kind in _CORE else html, part.kind)(**given)


def _layout(pages: Pages, name: str, seconds: float) -> Any:
    from dash import dcc, html

    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="version", data=pages.version),
            dcc.Store(id="sent", data={}),
            dcc.Interval(id="tick", interval=round(1000 * seconds)),
            dcc.Interval(id="quiet", interval=_QUIET, max_intervals=1),
            html.Div(id="ahead", className="unseen", **{"aria-hidden": "true"}),
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
    from dash import ALL, Input, Output, State, ctx, dcc, no_update

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

    def load_ahead(ticks: int) -> Any:
        del ticks
        return dcc.Graph(figure={"data": [], "layout": {"width": 10, "height": 10}}, config={"staticPlot": True})

    def choose(values: list[Any], clicks: list[Any], query: str | None) -> Any:
        del values, clicks
        # All controls of a page that has just been made tell their values at once; a reader changes one at a time.
        if len(ctx.triggered) != 1 or not isinstance(ctx.triggered_id, dict):
            return no_update
        before, value = query or "", ctx.triggered[0]["value"]
        if "graph" in ctx.triggered_id:
            points = value.get("points") if isinstance(value, dict) else None
            after = pages.clicked(before, points[0].get("customdata")) if points else before
        else:
            after = pages.chosen(before, str(ctx.triggered_id.get("control")), value)
        return after if after != before else no_update

    def tell_importance(asked: dict[str, Any] | None) -> Any:
        return components(pages.importance(str(asked.get("query", "")))) if asked else no_update

    shown = [Output(it, "children") for it in _PARTS]
    app.callback(
        [*shown, Output("sent", "data")], Input("address", "search"), Input("version", "data"), State("sent", "data")
    )(show)
    app.callback(Output("ahead", "children"), Input("quiet", "n_intervals"), prevent_initial_call=True)(load_ahead)
    app.callback(
        Output("version", "data"), Input("tick", "n_intervals"), State("version", "data"), prevent_initial_call=True
    )(follow)
    app.callback(
        Output("address", "search"),
        Input({"control": ALL}, "value"),
        Input({"graph": ALL}, "clickData"),
        State("address", "search"),
        prevent_initial_call=True,
    )(choose)
    app.callback(Output("importance", "children"), Input("importance-asked", "data"), prevent_initial_call=True)(
        tell_importance
    )
