"""What clients can do to a dashboard that is served: nothing that a traceback, its memory or its end would show."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from clops_sweep.store.run_store import RunStore
from tests.helpers.preloaded import Forked, Preloaded

HALF_OPEN = 300


class Served:
    """A dashboard in a process of its own."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        line = process.stdout.readline()
        found = re.fullmatch(r"dashboard: http://127\.0\.0\.1:(\d+)/\n", line)
        assert found, line
        self.port = int(found[1])

    def status(self, name: str) -> int:
        """A number of the operating system about the process: `Threads`, or `VmRSS` in kB."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+)", told, re.MULTILINE)
        assert found
        return int(found[1])

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def half_open(self) -> socket.socket:
        """A connection whose request has no end."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        return connection


def started(store: RunStore, folder: Path, environment: dict[str, str], commands: Preloaded) -> Served:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    return Served(commands.start(folder, environment, "dashboard", "--results", str(store.uri), "--port", "0"))


@pytest.fixture(scope="module")
def served(
    store: RunStore, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], commands: Preloaded
) -> Iterator[Served]:
    """The dashboard of a store; whatever it is sent, it prints nothing and ends when it is interrupted."""
    found = started(store, tmp_path_factory.mktemp("served"), environment, commands)
    try:
        yield found
        found.process.send_signal(signal.SIGINT)
        printed = found.process.communicate(20)
        assert (found.process.returncode, *printed) == (0, "", "Press Ctrl-C to stop.\n")
    finally:
        found.process.kill()


def test_what_a_browser_asks_for_is_answered(served: Served) -> None:
    status, answer = served.ask("GET", "/runs?sort=-auc")
    assert (status, "Download CSV" in answer) == (200, True)
    found = re.search(r'data-version="([^"]+)"', answer)
    assert found
    assert served.ask("GET", "/runs?sort=-auc", If_None_Match=found[1]) == (304, "")
    status, answer = served.ask("GET", "/runs.csv")
    assert (status, answer.startswith("run_id,status,")) == (200, True)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e/%2e%2e/collect.py",
        "/assets//etc/passwd",
        "/assets/%00.js",
        "/%00",
        "/nowhere/at/all",
        "/runs?experiment=%00&at=-1&status=1e9",
        f"/?{quote('x' * 30_000)}",
    ],
)
def test_no_path_leads_out_of_the_pages(served: Served, path: str) -> None:
    status, answer = served.ask("GET", path)
    assert status in (200, 308, 400, 403, 404)
    assert status == 200 or "Traceback" not in answer
    assert "root:" not in answer
    assert "import " not in answer
    if status == 200:
        assert "<title>clops-sweep</title>" in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "OPTIONS", "NOTHING"])
def test_other_methods_do_nothing(served: Served, method: str) -> None:
    assert served.ask(method, "/", b"x" * 100)[0] in (200, 405)


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of a process are counted in /proc")
def test_connections_that_say_nothing_cost_no_thread_and_keep_nobody_out(served: Served) -> None:
    with contextlib.ExitStack() as connections:
        for _ in range(HALF_OPEN):
            connections.enter_context(served.half_open())
        assert served.ask("GET", "/")[0] == 200
        assert served.status("Threads") < 40
