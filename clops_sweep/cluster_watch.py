"""Watches over a Ray cluster that a sweep runs on: when it dies, Ray ends the driver without a word to the user."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import clops_sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray

_SECONDS_BETWEEN_LOOKS = 5.0
_MISSED_LOOKS = 2
_SECONDS_BETWEEN_LOOKS_HERE = 0.5


@contextmanager
def head_watched(warn: Callable[[str], None]) -> Iterator[None]:
    """Says so when the head of the cluster is gone. Ray ends the driver a minute later, without a word to the user."""
    address: str = ray.get_runtime_context().gcs_address
    host, _, port = address.rpartition(":")
    left = threading.Event()

    def watch() -> None:
        missed = 0
        while not left.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_BETWEEN_LOOKS).close()
                missed = 0
            except OSError:
                missed += 1
            if missed == _MISSED_LOOKS:
                warn(
                    f"the head of the Ray cluster, at {address}, no longer answers; if it is not back within a minute, "
                    "this command ends (what is finished is recorded, and the same command goes on with the rest)"
                )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        left.set()


@contextmanager
def ray_watched(warn: Callable[[str], None]) -> Iterator[None]:
    """Says so when a process of this sweep's own Ray has died, of which Ray ends the driver without a word."""
    node = ray._private.worker._global_node
    assert node is not None  # it has just been started
    left = threading.Event()

    def watch() -> None:
        while not left.wait(_SECONDS_BETWEEN_LOOKS_HERE):
            gone = [name for name, _ in node.dead_processes()]
            if gone:
                warn(
                    f"a process of Ray on this machine has died ({', '.join(gone)}), and this command may end with it; "
                    "what is finished is recorded, and the same command goes on with the rest"
                )
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        left.set()
