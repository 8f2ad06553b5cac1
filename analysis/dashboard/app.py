"""The Flask application. Only this module needs Flask and Plotly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clops_sweep.errors import UsageError, one_line

from .pages import Pages

NOT_INSTALLED = (
    "the dashboard needs Flask, Plotly and waitress; install them with: pip install 'clops-sweep[dashboard]'"
)
_DAY = 24 * 3600
_AS_FILE = {"Content-Disposition": 'attachment; filename="runs.csv"'}


def make_app(pages: Pages) -> Any:
    """Return the application.

    `/` is the page of a view, `/version` changes whenever that page changes, `/runs.csv` is its table of runs,
    `/importance` is the slow part of a search's page, and `/plotly.js` draws the figures.

    Raises:
        UsageError: Flask or Plotly is not installed.
    """
    try:
        import plotly.offline
        from flask import Flask, Response, request
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    app = Flask(__name__, static_folder=str(Path(__file__).with_name("assets")), static_url_path="/assets")

    def query() -> str:
        return str(request.query_string, "ascii", "replace")

    def table() -> Response:
        try:
            return Response(pages.csv(query()), mimetype="text/csv", headers=_AS_FILE)
        except UsageError as error:
            return Response(f"{one_line(error)}\n", 400, content_type="text/plain; charset=utf-8")

    def script() -> Response:
        answer = Response(plotly.offline.get_plotlyjs(), mimetype="text/javascript")
        answer.cache_control.max_age = _DAY
        return answer

    app.add_url_rule("/", "page", lambda: pages.show(query()))
    app.add_url_rule("/version", "version", lambda: pages.refresh(query()))
    app.add_url_rule("/runs.csv", "csv", table)
    app.add_url_rule("/importance", "importance", lambda: pages.importance(query()))
    app.add_url_rule("/plotly.js", "script", script)
    return app
