"""Which running Ray cluster an address means, and whether one answers there."""

from __future__ import annotations

import os
import pwd
import re
import socket
import sys
from pathlib import Path

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import grpc
import ray

from clops_sweep.errors import UsageError

_SECONDS_TO_ANSWER = 10
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def running_cluster(asked: str) -> str:
    """The HOST:PORT of the cluster that `--address` means, where one answers.

    Left to itself, Ray tries for minutes to reach what is not there, and takes `auto` for any Ray that runs on this
    machine, for example the private one of another user's sweep.

    Raises:
        UsageError: no cluster answers there.
    """
    address = _automatic() if asked == "auto" else asked
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:/\s\[\]]+):(\d{1,5})", address)
    if match is None or int(match[2]) > 65535:
        raise UsageError(f"--address {asked}: {address!r} is no address; expected auto or HOST:PORT")
    if match[1] in _LOOPBACK:  # Ray goes by the address that other machines know
        address = f"{ray.util.get_node_ip_address()}:{match[2]}"
    if os.environ.get("RAY_USE_TLS", "0") != "1":
        _check_answers(asked, address)
    return address


def _automatic() -> str:
    """The cluster that a job of it or `ray start` on this machine makes known."""
    if address := os.environ.get("RAY_ADDRESS", "").strip():
        if address == "auto":
            raise UsageError("--address auto: RAY_ADDRESS is auto as well; expected HOST:PORT in one of them")
        return address
    file = temporary_folder() / "ray_current_cluster"
    try:
        address, owner = file.read_text().strip(), file.stat().st_uid
    except OSError:
        address = ""
    if not address:
        raise UsageError(
            "--address auto: no cluster was started on this machine with 'ray start', and RAY_ADDRESS is not set"
        )
    if owner not in (os.getuid(), 0):
        raise UsageError(
            f"--address auto: the cluster of this machine, at {address}, belongs to user {_user(owner)}; "
            f"if you mean it, say --address {address}"
        )
    return address


def temporary_folder() -> Path:
    """Where Ray keeps its sockets and logs on this machine, unless a variable says otherwise."""
    names = ("RAY_TMPDIR", "TMPDIR") if sys.platform.startswith("linux") else ("RAY_TMPDIR",)
    return Path(next((os.environ[name] for name in names if name in os.environ), "/tmp")) / "ray"


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _check_answers(asked: str, address: str) -> None:
    """Refuse an address at which nothing speaks gRPC, as Ray does."""
    problem = f"--address {asked}: no Ray cluster answers there"
    if address != asked:
        problem += f", at {address}"
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise UsageError(f"{problem} ({error})") from None
    # As Ray does, past a proxy that may be set for the web.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_SECONDS_TO_ANSWER)
        except grpc.FutureTimeoutError:
            raise UsageError(f"{problem} (waited {_SECONDS_TO_ANSWER} s)") from None
