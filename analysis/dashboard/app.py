"""The pages as an application of Flask: an address is a view. Flask and Plotly are needed in here alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clops_sweep.errors import UsageError

from .pages import Pages

NOT_INSTALLED = (
    "the dashboard needs Flask, Plotly and waitress; install them with: pip install 'clops-sweep[dashboard]'"
)
_DAY = 24 * 3600


def make_app(pages: Pages) -> Any:
    """Return the application.

    `/` is the page at a view's address, `/version` counts up when the store has changed, `/importance` is the part of
    a search's page that takes longer, and `/plotly.js` draws the figures.

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

    def script() -> Response:
        answer = Response(plotly.offline.get_plotlyjs(), mimetype="text/javascript")
        answer.cache_control.max_age = _DAY
        return answer

    app.add_url_rule("/", "page", lambda: pages.show(query()))
    app.add_url_rule("/version", "version", lambda: str(pages.refresh()))
    app.add_url_rule("/importance", "importance", lambda: pages.importance(query()))
    app.add_url_rule("/plotly.js", "script", script)
    return app
