"""What stands in for the agents of a Ray of one's own is there at once, and gives way to Ray's own when it is asked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from launching import wait_for

from clops_sweep.sweep import idle_agents
from clops_sweep.sweep.idle_agents import with_idle_agents

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Ray starts its own agents there")

AGENT = """
import os, pathlib, socket, sys
options = dict(word[2:].split("=") for word in sys.argv[1:])
assert int(os.environ["RAY_RAYLET_PID"]) == os.getppid()  # what it ends with
folder = pathlib.Path(options["session-dir"])
with open(folder / "started", "a") as file:
    file.write("once ")
with socket.create_server(("127.0.0.1", int(options["runtime-env-agent-port"]))) as listening:
    while True:
        connection, _ = listening.accept()
        with connection:
            asked = b"".join(iter(lambda: connection.recv(1000), b""))
            connection.sendall(asked[::-1])
"""


def _start(folder: Path, *arguments: str, raylet: int | None = None) -> subprocess.Popen[bytes]:
    (folder / "agent.py").write_text(AGENT)
    own = [sys.executable, str(folder / "agent.py"), f"--session-dir={folder}", "--node-id=abc", *arguments]
    raylet = os.getpid() if raylet is None else raylet
    command = [sys.executable, "-I", "-S", idle_agents.__file__, *own]
    return subprocess.Popen(command, env={**os.environ, "RAY_RAYLET_PID": str(raylet)})


def _ask(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1000), b""))


def test_the_command_of_a_raylet_has_it_before_those_of_its_agents() -> None:
    agent = "python agent.py --node-id=abc --session-dir=/tmp/x"
    command = ["raylet", "--node_id=abc", f"--dashboard_agent_command={agent}", "--head"]
    ours = subprocess.list2cmdline([sys.executable, "-I", "-S", idle_agents.__file__])
    changed = f"--dashboard_agent_command={ours} {agent}"
    assert with_idle_agents(command) == ["raylet", "--node_id=abc", changed, "--head"]


def test_agents_that_are_not_told_what_ray_waits_for_are_left_alone() -> None:
    """As those of Ray 2.50."""
    one = "--dashboard_agent_command=python agent.py --node-id=abc --session-dir=/tmp/x"
    other = "--runtime_env_agent_command=python agent.py --runtime-env-agent-port=1234"
    assert with_idle_agents(["raylet", one, other]) == ["raylet", one, other]


def test_rays_own_agent_of_runtime_environments_is_started_once_with_the_first_who_asks(tmp_path: Path) -> None:
    agent = _start(tmp_path, "--node-ip-address=127.0.0.1", "--runtime-env-agent-port=0")
    try:
        told = tmp_path / "runtime_env_agent_port_abc"
        wait_for(told.exists, "the port")
        assert not (tmp_path / "started").exists()
        for request in (b"some request", b"x" * 200_000 + b"y"):
            assert _ask(int(told.read_text()), request) == request[::-1]
        assert (tmp_path / "started").read_text() == "once "
    finally:
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
        own = children.read_text().split() if children.exists() else []
        agent.kill()
        agent.wait()
        for number in own:
            os.kill(int(number), 9)


def test_of_a_dashboard_s_agent_it_is_said_that_nobody_listens_until_the_raylet_has_gone(tmp_path: Path) -> None:
    agent = _start(tmp_path, "--minimal", raylet=1)  # one that this process is not
    assert agent.wait() == 0
    found = {path.name: path.read_text() for path in tmp_path.glob("*_abc")}
    assert found == {f"{name}_port_abc": "-1" for name in ("metrics_agent", "metrics_export", "dashboard_agent_listen")}
