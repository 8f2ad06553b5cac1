"""The dashboard's server and its access control. It writes nothing and fetches nothing."""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, one_line
from clops_sweep.store.run_store import RunStore

from .app import NOT_INSTALLED, Dashboard, make_app
from .snapshot import FollowedStore, Source

LOOPBACK = "127.0.0.1"
_NAMES_OF_LOOPBACK = {"localhost", LOOPBACK, "[::1]"}
_SECONDS, _SECONDS_ELSEWHERE = 3.0, 15.0
"""Seconds between checks of a store in a folder, and of an object store."""

_LEAST_TOKEN = 16
_LIMITS = {
    "threads": 8,
    "connection_limit": 400,  # further connections wait until one is closed
    "channel_timeout": 20,  # seconds until an idle connection is closed
    "cleanup_interval": 5,
    "outbuf_overflow": 1 << 26,  # keeps answers in memory: a browser that disconnects would leave a file open
    "max_request_header_size": 1 << 16,
    "max_request_body_size": 1 << 18,  # browsers send a few kilobytes
    "asyncore_use_poll": True,  # select() fails from descriptor 1024 on
    "log_socket_errors": False,
}
"""Limits on clients, as settings of waitress."""


@dataclass(frozen=True)
class Server:
    """A server that listens on its port. `address` is for a browser, `app` the Flask application that answers."""

    address: str
    app: Any
    _dashboard: Dashboard
    _server: Any
    _connections: dict[int, Any]

    def serve(self) -> None:
        """Answer requests until interrupted; pending requests then have a few seconds to finish."""
        try:
            self._server.run()
        finally:
            self.close()

    def stop(self) -> None:
        """End `serve` from another thread."""
        self._server.trigger.pull_trigger(self.close)

    def close(self) -> None:
        """Close all connections and release the port."""
        from waitress import wasyncore

        self._server.task_dispatcher.shutdown(timeout=0)
        wasyncore.close_all(self._connections)
        self._dashboard.close()


def make_server(
    store: RunStore,
    source: Source,
    *,
    host: str | None,
    port: int,
    token: str | None,
    notices: Sequence[str] = (),
    files: Sequence[str] = (),
    data: PreparedData | None = None,
    claims: Callable[[], Sequence[str]] = tuple,
    changes: Callable[[], Sequence[str]] = tuple,
    edited: Callable[[], str] = str,
) -> Server:
    """Read the store and open a port.

    Args:
        store: the store.
        source: the source of its experiments.
        host: address to listen on; None: this machine only.
        port: the port; 0: any free one.
        token: token that browsers must present; required with a host.
        notices: sentences for the overview.
        files: the search-space files that commands on the pages name.
        data: the prepared data sets, for the commands of update reports.
        claims: returns the verdicts on the claims of the search-space files now, a sentence each.
        changes: returns what changed since the runs of the search-space files were computed, a sentence each.
        edited: returns which search-space files were edited since they were read, without a full stop; else empty.

    Raises:
        UsageError: a package is not installed, the store or host does not exist, the port is in use, or no token.
    """
    if host is not None and (token is None or len(token) < _LEAST_TOKEN):
        raise UsageError(f"a dashboard for other machines needs a token of at least {_LEAST_TOKEN} characters")
    seconds = _SECONDS if store.files.local else _SECONDS_ELSEWHERE
    store.files.check_is_there()
    try:
        import waitress
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    taken = _listening(host or LOOPBACK, port)
    try:
        followed = FollowedStore(store, source, seconds)
        dashboard = Dashboard(followed, notices, files, data, claims, changes, edited)
        for path in ("", "methods"):  # what they show of a large store is computed once
            dashboard.page(path, {})
        app = make_app(dashboard)
        actual = int(taken.getsockname()[1])
        guard(app, token if host is not None else None, actual)
        logging.getLogger("waitress").setLevel(logging.ERROR)  # it warns whenever a request waits for a thread
        connections: dict[int, Any] = {}
        server = waitress.create_server(app, map=connections, sockets=[taken], **_LIMITS)
    except BaseException:
        taken.close()
        raise
    name = host or LOOPBACK
    if name in ("0.0.0.0", "::"):
        name = socket.gethostname()
    query = f"?{urlencode({'token': token})}" if host is not None else ""
    return Server(
        f"http://{f'[{name}]' if ':' in name else name}:{actual}/{query}", app, dashboard, server, connections
    )


def guard(app: Any, token: str | None, port: int) -> None:
    """Admit requests with the token, in the address and then as a cookie; without a token, requests to loopback names.

    A foreign site whose name resolves to this machine (DNS rebinding) still sends its own name as the host.
    """
    from flask import Response, redirect, request

    cookie = f"clops-sweep-{port}"

    def refused(said: str) -> Response:
        return Response(f"{said}\n", 403, content_type="text/plain; charset=utf-8")

    def check() -> Any:
        if token is None:
            name = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
            return (
                None
                if name in _NAMES_OF_LOOPBACK
                else refused("This dashboard answers only requests from this machine.")
            )
        if _same(request.cookies.get(cookie, ""), token):
            return None
        if not _same(request.args.get("token", ""), token):
            return refused("This dashboard requires the complete address that the command printed, with its token.")
        others = [(name, value) for name, value in request.args.items(multi=True) if name != "token"]
        answer = redirect(f"{request.path}?{urlencode(others)}" if others else request.path)
        answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
        return answer

    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        )
    )

    def with_headers(answer: Any) -> Any:
        answer.headers.setdefault("Content-Security-Policy", policy)  # an update report has its own
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer

    app.before_request(check)
    app.after_request(with_headers)


def _same(given: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "backslashreplace"), token.encode())


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: {one_line(error)}; expected a name or an address of this machine") from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen()
    except OSError as error:
        taken.close()
        raise UsageError(
            f"port {port} of {host}: {error.strerror}; name another with --port, or 0 for any that is free"
        ) from None
    return taken
