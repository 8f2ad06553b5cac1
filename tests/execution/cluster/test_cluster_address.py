"""Which running cluster `--address` means, and what is said where there is none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from ray.util import get_node_ip_address

from clops_sweep.errors import UsageError
from clops_sweep.execution import cluster_address
from clops_sweep.execution.cluster import start as cluster
from clops_sweep.execution.cluster_address import running_cluster, temporary_folder


@pytest.fixture
def ray_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `ray start` leaves word of the cluster that it has started."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


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


def test_a_proxy_for_the_web_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    address = f"{get_node_ip_address()}:{port}"
    assert running_cluster(address) == address
    server.stop(None)


def test_a_ray_that_does_not_start_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(**arguments: object) -> None:
        raise Exception("The current node timed out\nduring startup.")  # as Ray says it

    monkeypatch.setattr(cluster.ray, "init", late)
    with (
        pytest.raises(TimeoutError, match=r"^Ray has not started on this machine \(The current node timed out during "),
        cluster.cluster(cluster.Resources(), {}),
    ):
        raise AssertionError("it has not started")


def test_auto_means_what_a_job_is_told_before_what_was_started_here(
    ray_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ray_folder / "ray_current_cluster").write_text("localhost:1\n")
    with pytest.raises(UsageError, match=r"^--address auto: no Ray cluster answers there, at \S+:1 \(.*refused"):
        running_cluster("auto")
    monkeypatch.setenv("RAY_ADDRESS", "localhost:2")
    with pytest.raises(UsageError, match=r"^--address auto: no Ray cluster answers there, at \S+:2 \(.*refused"):
        running_cluster("auto")
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(UsageError, match="RAY_ADDRESS is auto as well"):
        running_cluster("auto")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file that belongs to somebody else")
def test_a_cluster_of_somebody_else_is_taken_only_when_it_is_named(ray_folder: Path) -> None:
    (ray_folder / "ray_current_cluster").write_text("localhost:1")
    os.chown(ray_folder / "ray_current_cluster", 54321, 54321)
    with pytest.raises(
        UsageError, match="at localhost:1, belongs to user 54321; to use it, give --address localhost:1"
    ):
        running_cluster("auto")


def test_whoever_answers_must_be_a_cluster(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_address, "_SECONDS_TO_ANSWER", 1)
    with pytest.raises(UsageError, match=rf"^--address {silent}: no Ray cluster answers there, at \S+ \(waited 1 s\)$"):
        running_cluster(silent)


@pytest.mark.parametrize("address", ["here", "host:", "host:99999", "ray://host:10001", "1.2.3.4", "a b:1", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="expected auto or HOST:PORT"):
        running_cluster(address)
