"""What stands in for the two agents of a Ray of one's own, each of which takes a second of processor time to start.

Ray starts them with every raylet, and is not there before they are. The one of the dashboard does nothing where there
is no dashboard. The one of runtime environments makes those that somebody asks for: a sweep does not, but its workers
may. So this file is run in the place of each. It says at once what Ray waits for; when somebody connects to the agent
of runtime environments, Ray's own is started, and what passes is handed on.

This file imports little: Ray waits for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

_COMMANDS = ("--dashboard_agent_command=", "--runtime_env_agent_command=")
_NEEDED = ("--node-id=", "--session-dir=")
_PORT = "--runtime-env-agent-port="
_NOT_THERE = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
_SECONDS_BETWEEN_LOOKS = 1.0


def with_idle_agents(command: Sequence[str]) -> list[str]:
    """The command that starts a raylet, with this file before the commands of its agents.

    Earlier versions of Ray wait for something else, and do not tell their agents where: there it is as it was.
    """
    from subprocess import list2cmdline

    agents = [word for word in command if word.startswith(_COMMANDS)]
    if not all(f" {option}" in word for word in agents for option in _NEEDED):
        return list(command)
    ours = list2cmdline([sys.executable, "-I", "-S", os.path.abspath(__file__)])
    return [word.replace("=", f"={ours} ", 1) if word in agents else word for word in command]


def _main(command: list[str]) -> None:
    """Stands in for an agent until its raylet has gone.

    Args:
        command: what would start Ray's own.
    """
    options = dict(word[2:].partition("=")[::2] for word in command if word.startswith("--"))
    raylet = int(os.environ["RAY_RAYLET_PID"])
    if _PORT[2:-1] not in options:
        for name in _NOT_THERE:
            _persist(options, name, -1)
        while os.getppid() == raylet:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return
    host = options["node-ip-address"]
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listening:
        connected = _connections(host, command)
        _persist(options, "runtime_env_agent_port", listening.getsockname()[1])
        while os.getppid() == raylet:
            if select.select([listening], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
                threading.Thread(target=_hand_on, args=(listening.accept()[0], connected), daemon=True).start()


def _persist(options: dict[str, str], name: str, port: int) -> None:
    """Writes a port where Ray waits for it; -1 says that nobody listens."""
    path = os.path.join(options["session-dir"], f"{name}_{options['node-id']}")
    with open(f"{path}.new", "w") as file:
        file.write(str(port))
    os.replace(f"{path}.new", path)


def _connections(host: str, command: Sequence[str]) -> Callable[[], socket.socket]:
    """Makes connections to Ray's own agent, which is started with the first of them.

    Its port is one that is free now, and it takes this process for its raylet: it ends with that.
    """
    from subprocess import Popen

    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        port = probe.getsockname()[1]
    lock, started = threading.Lock(), list[Popen[bytes]]()

    def connected() -> socket.socket:
        with lock:
            if not started or started[0].poll() is not None:
                there = [f"{_PORT}{port}" if word.startswith(_PORT) else word for word in command]
                started[:] = [Popen(there, env={**os.environ, "RAY_RAYLET_PID": str(os.getpid())})]
        while True:
            try:
                return socket.create_connection((host, port))
            except ConnectionRefusedError:
                if started[0].poll() is not None:
                    raise
                time.sleep(0.05)

    return connected


def _hand_on(asking: socket.socket, connected: Callable[[], socket.socket]) -> None:
    """Hands on what passes between who asks and Ray's own agent."""
    with contextlib.suppress(OSError), asking, connected() as answering:
        back = threading.Thread(target=_copy, args=(answering, asking), daemon=True)
        back.start()
        _copy(asking, answering)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    _main(sys.argv[1:])
