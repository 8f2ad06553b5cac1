"""What clients can do to a dashboard that is served: nothing that a traceback, its memory or its end would show."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from preloaded import Forked, Preloaded

from clops_sweep.store.run_store import RunStore

CALLS = "/_dash-update-component"
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

    def call(self, body: Any) -> tuple[int, str]:
        given = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", CALLS, given, Content_Type="application/json")

    def half_open(self) -> socket.socket:
        """A connection whose request has no end."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        return connection


def started(store: RunStore, folder: Path, environment: dict[str, str], commands: Preloaded) -> Served:
    pytest.importorskip("dash", reason="Dash is not installed: the dashboard is not served")
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


def request(output: str, *inputs: Any, state: Any = (), changed: Any = ("address.search",)) -> dict[str, Any]:
    """What a browser sends to have a callback called."""
    outputs = [dict(zip(("id", "property"), it.rsplit(".", 1), strict=True)) for it in output.strip(".").split("...")]
    multiple = output.startswith("..")
    return {
        "output": output,
        "outputs": outputs if multiple else outputs[0],
        "inputs": list(inputs),
        "state": list(state),
        "changedPropIds": list(changed),
    }


def given(name: str, of: str, value: Any) -> dict[str, Any]:
    return {"id": name, "property": of, "value": value}


SHOW = "..links.children...controls.children...content.children...said.children...sent.data.."
CHOICE = {"id": {"control": "where"}, "property": "value", "value": "auc > 0.5"}


def shown(query: Any = "", version: Any = 1, sent: Any = None) -> dict[str, Any]:
    address, seen = given("address", "search", query), given("version", "data", version)
    return request(SHOW, address, seen, state=[given("sent", "data", {} if sent is None else sent)])


def chosen(value: Any, query: Any = "", changed: Any = ('{"control":"where"}.value',)) -> dict[str, Any]:
    return request("address.search", value, [], state=[given("address", "search", query)], changed=changed)


def test_what_a_browser_sends_is_answered(served: Served) -> None:
    status, answer = served.call(shown())
    assert status == 200
    assert "runs finished" in answer
    status, answer = served.call(chosen([CHOICE], "?page=runs"))
    assert status == 200
    assert json.loads(answer)["response"]["address"]["search"] == "?page=runs&where=auc+%3E+0.5"
    follow = request("version.data", given("tick", "n_intervals", 3), state=[given("version", "data", 1)])
    status, answer = served.call(follow)
    assert status in (200, 204)
    assert "data" not in answer, "nothing is new"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 10_000,
        *(pytest.param(json.dumps(it).encode(), id=json.dumps(it)[:60]) for it in (None, [], 7, "x", {}, [[]])),
        {"output": "nothing.children"},
        {"output": [SHOW]},
        {"output": SHOW},
        {"output": SHOW, "inputs": 5, "state": {}, "outputs": "x", "changedPropIds": None},
        {"output": SHOW, "inputs": [1, 2], "state": [3]},
        {"output": SHOW, "inputs": [{}, {}], "state": [{}]},
        shown() | {"outputs": []},
        shown() | {"outputs": [{"id": "content", "property": "children"}]},
        shown() | {"inputs": []},
        shown() | {"changedPropIds": 3},
        shown(query=["a"]),
        shown(version="newest"),
        shown(version=None),
        shown(sent=[]),
        shown(sent={"links": {"a": 1}}),
        chosen({}),
        chosen("text"),
        chosen([CHOICE], query={}),
        chosen([CHOICE], changed=["{.value"]),
        chosen([CHOICE], changed=[None]),
        chosen([CHOICE], changed=[{}]),
        request("importance.children", given("importance-asked", "data", [1]), changed=["importance-asked.data"]),
    ],
    ids=lambda it: repr(it)[:60],
)
def test_a_malformed_request_is_refused(served: Served, body: Any) -> None:
    status, answer = served.call(body)
    assert status in (400, 415), answer[:300]
    assert "Traceback" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e/%2e%2e/collect.py",
        "/assets//etc/passwd",
        "/_dash-component-suites/dash/../../../etc/passwd",
        "/_dash-component-suites/os/os.py",
        "/_dash-component-suites/dash/nothing.js",
        "/_dash-component-suites/dash/%00.js",
        "/_dash-component-suites/nothing/at.all",
        "/%00",
        "/nowhere/at/all",
        "/?page=nothing&run=%00&at=-1&instance=1e9",
        f"/?{quote('x' * 30_000)}",
    ],
)
def test_no_path_leads_out_of_the_pages(served: Served, path: str) -> None:
    status, answer = served.ask("GET", path)
    assert status in (200, 400, 403, 404)
    assert "Traceback" not in answer
    assert "root:" not in answer
    assert "import " not in answer
    if status == 200:
        assert "<title>clops-sweep</title>" in answer


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "TRACE", "OPTIONS", "NOTHING"])
def test_other_methods_do_nothing(served: Served, method: str) -> None:
    assert served.ask(method, CALLS)[0] in (200, 405)


@pytest.mark.parametrize(
    "query",
    [
        "x=" * 10_000,
        f"where={'(' * 9_000}",
        f"where={'not ' * 3_000}auc",
        f"where={quote('auc > ' + '9' * 6_000)}",
        f"where={quote(' and '.join(['auc > 0'] * 900))}",
        "group=a&" * 2_000,
        "show=seed&" * 1_500,
        "cells=a&" * 2_000,
        "experiment=%00&metric=__class__&rows=%F0%9F%92%A9&columns=../..&sort=-__dict__&task=%2e%2e%2f",
        "at=999999999",
    ],
    ids=lambda it: it[:40],
)
@pytest.mark.parametrize("page", ["progress", "runs", "heatmap", "parallel", "instances", "search"])
def test_a_hostile_address_is_answered_in_words(served: Served, page: str, query: str) -> None:
    started = time.monotonic()
    status, answer = served.call(shown(f"?page={page}&{query}"))
    assert status == 200
    assert "This cannot be shown" not in answer
    assert time.monotonic() - started < 20


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_large_body_is_refused_before_it_has_come(served: Served) -> None:
    before = served.status("VmRSS")
    for headers, part in (
        (b"Content-Length: 150000000\r\n\r\n", b"x" * 65_536),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            connection.sendall(b"POST /_dash-update-component HTTP/1.1\r\nHost: localhost\r\n" + headers)
            sent = 0
            with contextlib.suppress(ConnectionError):  # it does not wait for the rest
                while sent < 150_000_000:
                    connection.sendall(part)
                    sent += len(part)
            assert sent < 50_000_000
    assert served.status("VmRSS") - before < 40_000


def test_twenty_browsers_at_once_are_answered(served: Served) -> None:
    with ThreadPoolExecutor(20) as browsers:
        answers = list(browsers.map(lambda page: served.call(shown(f"?page={page}")), ["progress", "heatmap"] * 30))
    assert {status for status, _ in answers} == {200}
    assert len({answer for _, answer in answers}) == 2


def test_headers_have_a_limit(served: Served) -> None:
    assert served.ask("GET", "/", X_Long="x" * 100_000)[0] == 431


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of a process are counted in /proc")
def test_connections_that_say_nothing_cost_no_thread_and_keep_nobody_out(served: Served) -> None:
    with contextlib.ExitStack() as connections:
        for _ in range(HALF_OPEN):
            connections.enter_context(served.half_open())
        assert served.ask("GET", "/")[0] == 200
        assert served.status("Threads") < 40


def test_an_interrupt_ends_it_at_once_with_connections_that_say_nothing(
    store: RunStore, tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    served = started(store, tmp_path, environment, commands)
    try:
        with contextlib.ExitStack() as connections:
            for _ in range(HALF_OPEN):
                connections.enter_context(served.half_open())
            assert served.ask("GET", "/")[0] == 200
            began = time.monotonic()
            served.process.send_signal(signal.SIGINT)
            printed = served.process.communicate(20)
            assert time.monotonic() - began < 10
            assert (served.process.returncode, *printed) == (0, "", "Press Ctrl-C to stop.\n")
    finally:
        served.process.kill()
