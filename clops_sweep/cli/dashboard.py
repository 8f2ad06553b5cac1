"""`clops-sweep dashboard`: a page on which a store can be watched and looked through."""

from __future__ import annotations

import contextlib
import os
import secrets

import click

from clops_sweep.cli.asks import asks
from clops_sweep.cli.options import NotEmpty, plugins_option
from clops_sweep.planning.asked import Asked

TOKEN = "CLOPS_DASHBOARD_TOKEN"


@click.command()
@asks(required=False)
@plugins_option
@click.option("--port", type=click.IntRange(0, 65535), default=8050, show_default=True, help="0: any that is free.")
@click.option(
    "--host",
    type=NotEmpty(),
    help="An address of this machine, such as 0.0.0.0, that others reach it at; the printed address then carries a "
    f"token (that of {TOKEN}, if it is set).",
)
def dashboard(asked: Asked, port: int, host: str | None) -> None:
    """Serve a page that follows a store, also while a sweep runs elsewhere: read-only, for this machine alone.

    With search-space files it shows what they ask for, else everything in the store. Ctrl-C ends it.
    """
    from clops_sweep.analysis.dashboard.server import make_server
    from clops_sweep.analysis.dashboard.source import AskedSource

    if not asked.selection.given and (asked.selection.settings or asked.selection.seeds):
        raise click.UsageError("--set and --seeds change what a search-space file asks for, and none is given")
    if asked.selection.limit or asked.selection.where:
        raise click.UsageError("a dashboard shows whole search spaces: it takes neither --limit nor --where")
    _ = asked.selection.spaces  # a search-space file that is wrong is said first
    token = (os.environ.get(TOKEN) or secrets.token_urlsafe(24)) if host is not None else None
    server = make_server(asked.store, AskedSource(asked), host=host, port=port, token=token)
    click.echo(f"dashboard: {server.address}")
    click.echo("Ctrl-C ends it", err=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()
