"""Which running cluster `--address` means, and what is said where there is none."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import grpc
import pytest

from clops_sweep.errors import UsageError
from clops_sweep.execution.cluster import cluster_address
from clops_sweep.execution.cluster.cluster_address import running_cluster, temporary_folder


@pytest.fixture
def ray_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `ray start` leaves word of the cluster that it has started."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray"


def test_auto_without_a_cluster_is_refused_whatever_other_ray_runs_here(ray_folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^--address auto: no cluster was started on this machine with 'ray start'"):
        running_cluster("auto")


def test_auto_looks_where_ray_start_leaves_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_TMPDIR", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("localhost:1\n")
    with pytest.raises(UsageError, match=r"^--address auto: no Ray cluster answers there, at \S+:1 \(.*refused"):
        running_cluster("auto")
    assert temporary_folder() == tmp_path / "ray"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file that belongs to somebody else")
def test_a_cluster_of_somebody_else_is_taken_only_when_it_is_named(ray_folder: Path) -> None:
    (ray_folder / "ray_current_cluster").write_text("localhost:1")
    os.chown(ray_folder / "ray_current_cluster", 54321, 54321)
    with pytest.raises(
        UsageError, match="at localhost:1, belongs to user 54321; to use it, give --address localhost:1"
    ):
        running_cluster("auto")


@pytest.mark.parametrize("address", ["here", "host:", "host:99999", "ray://host:10001", "1.2.3.4", "a b:1", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="expected auto or HOST:PORT"):
        running_cluster(address)


@contextmanager
def grpc_server() -> Iterator[int]:
    """The port of a gRPC server without services."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    yield port
    server.stop(None)


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that gives one connection after another to a function, but not those without a byte."""
    listening = socket.create_server(("0.0.0.0", 0))
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                if connection.recv(1, socket.MSG_PEEK):
                    answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    port = listening.getsockname()[1]
    try:
        yield port
    finally:
        ended.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
        thread.join()
        listening.close()


def busy(port: int, seconds: float, connection: socket.socket) -> None:
    """Answer as another server does, after some seconds."""
    time.sleep(seconds)
    with socket.create_connection(("127.0.0.1", port)) as server:
        while True:
            readable, _, _ = select.select([connection, server], [], [])
            for one, other in ((connection, server), (server, connection)):
                if one in readable:
                    data = one.recv(2**16)
                    if not data:
                        return
                    other.sendall(data)


def as_web_page(connection: socket.socket) -> None:
    """Answer as a server that does not speak gRPC."""
    connection.recv(2**16)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_a_busy_cluster_gets_more_time_than_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_address, "SECONDS_TO_ANSWER", 0.5)
    monkeypatch.setattr(cluster_address, "SECONDS_IF_BUSY", 20.0)
    with grpc_server() as port, serving(partial(busy, port, 0.8)) as busy_port:
        assert running_cluster(f"127.0.0.1:{busy_port}").endswith(f":{busy_port}")
    with (
        serving(as_web_page) as port,
        pytest.raises(UsageError, match=r"no Ray cluster answers there, at .* \(waited 0\.5 s\)"),
    ):
        running_cluster(f"127.0.0.1:{port}")
