"""Resolve the address of a running Ray cluster, and check that it answers."""

from __future__ import annotations

import os
import pwd
import re
import socket
import sys
from pathlib import Path

from clops_sweep.execution.ray_environment import is_on_loopback  # first: what it sets is read when Ray is imported

# isort: split

import grpc
import ray

from clops_sweep.errors import UsageError, option

SECONDS_TO_ANSWER = 10.0
SECONDS_IF_BUSY = 60.0
"""Seconds for a cluster that has accepted the connection and not answered yet: its machine may be busy."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def running_cluster(asked: str) -> str:
    """Return HOST:PORT of the cluster at `--address`, after checking that it answers.

    Ray itself tries for minutes to reach a missing cluster, and resolves `auto` to any Ray on this machine, such as the
    private one of another user's sweep.

    Raises:
        UsageError: no cluster answers there.
    """
    address = _automatic() if asked == "auto" else asked
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:/\s\[\]]+):(\d{1,5})", address)
    if match is None or int(match[2]) > 65535:
        raise UsageError(f"{option('address', asked)}: {address!r} is not an address; expected auto or HOST:PORT")
    if is_on_loopback():
        raise UsageError(
            f"{option('address', asked)}: this process has started a Ray of its own before; expected a new process"
        )
    if match[1] in _LOOPBACK:  # Ray uses the address that other machines know
        address = f"{ray.util.get_node_ip_address()}:{match[2]}"
    if os.environ.get("RAY_USE_TLS", "0") != "1":
        _check_answers(asked, address)
    return address


def _automatic() -> str:
    """Return the cluster of the surrounding Ray job, or of `ray start` on this machine."""
    if address := os.environ.get("RAY_ADDRESS", "").strip():
        if address == "auto":
            raise UsageError(
                f"{option('address', 'auto')}: RAY_ADDRESS is auto as well; expected HOST:PORT in one of them"
            )
        return address
    file = temporary_folder() / "ray_current_cluster"
    try:
        address, owner = file.read_text().strip(), file.stat().st_uid
    except OSError:
        address = ""
    if not address:
        raise UsageError(
            f"{option('address', 'auto')}: no cluster was started on this machine with 'ray start', and RAY_ADDRESS is "
            "not set"
        )
    if owner not in (os.getuid(), 0):
        raise UsageError(
            f"{option('address', 'auto')}: the cluster of this machine, at {address}, belongs to user {_user(owner)}; "
            f"to use it, give {option('address', address)}"
        )
    return address


def temporary_folder() -> Path:
    """Return Ray's folder for sockets and logs on this machine, unless an environment variable sets it."""
    names = ("RAY_TMPDIR", "TMPDIR") if sys.platform.startswith("linux") else ("RAY_TMPDIR",)
    return Path(next((os.environ[name] for name in names if name in os.environ), "/tmp")) / "ray"


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _check_answers(asked: str, address: str) -> None:
    """Check that a gRPC server answers at an address."""
    problem = f"{option('address', asked)}: no Ray cluster answers there"
    if address != asked:
        problem += f", at {address}"
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise UsageError(f"{problem} ({error})") from None
    waited = _waited_for_grpc(address)
    if waited:
        raise UsageError(f"{problem} (waited {waited:g} s)")


def _waited_for_grpc(address: str) -> float:
    """Return 0 once a gRPC server answers at an address, else the seconds waited for one."""
    states: set[grpc.ChannelConnectivity] = set()
    # As in Ray, bypass a web proxy.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        ready = grpc.channel_ready_future(channel)
        channel.subscribe(states.add)
        try:
            if _is_ready(ready, SECONDS_TO_ANSWER):
                return 0.0
            if grpc.ChannelConnectivity.TRANSIENT_FAILURE in states:
                return SECONDS_TO_ANSWER  # another server, such as that of a web page
            return 0.0 if _is_ready(ready, SECONDS_IF_BUSY - SECONDS_TO_ANSWER) else SECONDS_IF_BUSY
        finally:  # else a thread of gRPC asks for the state of the closed channel, and prints a traceback
            ready.cancel()
            channel.unsubscribe(states.add)


def _is_ready(ready: grpc.Future, seconds: float) -> bool:
    try:
        ready.result(timeout=seconds)
    except grpc.FutureTimeoutError:
        return False
    return True
