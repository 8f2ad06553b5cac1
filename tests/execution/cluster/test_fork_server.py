"""The process that workers are forked from comes and goes with a sweep, and a worker can do without it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import wait_for

from clops_sweep.execution.cluster import forked_worker
from clops_sweep.execution.cluster.fork_server import fork_server

ASK = [sys.executable, str(Path(forked_worker.__file__))]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's, of which there are 107 characters."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux alone")
def test_it_is_there_inside_and_gone_afterwards(short: Path) -> None:
    from ray._private.parameter import RayParams

    def completed() -> RayParams:
        params = RayParams()
        params.update_if_absent(worker_path="/ray/default_worker.py", setup_worker_path="/ray/setup_worker.py")
        return params

    with fork_server(short):
        (place,) = short.iterdir()
        assert os.environ[forked_worker.PLACE] == str(place)
        wait_for(_servers, "the process that workers are forked from")  # it may be between its start and its name
        (server,) = _servers()
        assert completed().setup_worker_path == forked_worker.__file__
        assert completed().worker_path == "/ray/default_worker.py"
    assert forked_worker.PLACE not in os.environ
    assert not server.exists()
    assert list(short.iterdir()) == []
    assert completed().setup_worker_path == "/ray/setup_worker.py"


def test_one_that_the_environment_names_is_used(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private.parameter import RayParams

    monkeypatch.setenv(forked_worker.PLACE, "somewhere")
    with fork_server(short):
        assert list(short.iterdir()) == []
        params = RayParams()
        params.update_if_absent(setup_worker_path="/ray/setup_worker.py")
        assert params.setup_worker_path == forked_worker.__file__
    assert os.environ[forked_worker.PLACE] == "somewhere"


def test_without_a_socket_a_sweep_goes_without_it(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with fork_server(deep):
        assert forked_worker.PLACE not in os.environ
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize("place", ["", "nowhere/socket"])
def test_where_nobody_answers_a_worker_starts_as_ray_has_it(tmp_path: Path, place: str) -> None:
    (tmp_path / "setup_worker.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    told = [str(tmp_path / "default_worker.py"), "--node-ip-address=127.0.0.1", "--language=PYTHON"]
    environment = os.environ | ({forked_worker.PLACE: str(tmp_path / place)} if place else {})
    done = subprocess.run([*ASK, "-s", *told], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == told


def _servers() -> list[Path]:
    """Those that this process has started, in /proc; another test's process may have one as well."""
    command, of_us = f"{forked_worker.__file__}\0serve\0".encode(), f"\nPPid:\t{os.getpid()}\n".encode()
    here = (path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if command in _read(path))
    return [process for process in here if of_us in _read(process / "status")]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""
