"""The Ray cluster that a sweep runs on: one of its own that only this machine can reach, or one that is running.

It is watched meanwhile: when it dies, Ray ends the driver without a word to the user.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import clops_sweep.sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray
from ray._private import ray_constants
from ray._private import utils as ray_utils
from ray._private.node import Node

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import BadInput, one_line
from clops_sweep.machine import available_cores
from clops_sweep.sweep.cluster_address import running_cluster, temporary_folder
from clops_sweep.sweep.fork_server import fork_server
from clops_sweep.sweep.jobs import Resources

_SECONDS_BETWEEN_LOOKS = 5.0
_MISSED_LOOKS = 2
_SECONDS_BETWEEN_LOOKS_HERE = 0.5
_LONGEST_TEMPORARY_FOLDER = 40
"""The paths of Ray's sockets in there may have 107 characters at most; batch systems have long names for TMPDIR."""


def places(resources: Resources) -> int:
    """How many trials the cluster that is running holds, as it is now."""
    there, needed = ray.cluster_resources(), {"CPU": resources.cpus_per_trial, "GPU": resources.gpus_per_trial}
    return int(min((there.get(name, 0) // share for name, share in needed.items() if share), default=1))


def start_in_words(resources: Resources) -> str:
    """What `cluster` is about to do."""
    if resources.address:
        return f"connecting to the Ray cluster at {resources.address}"
    return "using the Ray cluster of this process" if ray.is_initialized() else "starting Ray"


@contextmanager
def cluster(
    resources: Resources, frames: Mapping[DataKey, FrameSet], warn: Callable[[str], None] | None = None
) -> Iterator[None]:
    """A Ray cluster for the time of the sweep: the one at `address`, or one on this machine that only it can reach.

    Where this process is connected to a cluster and no address is given, it is that one, and stays connected.

    Args:
        resources: the address, and what a trial takes.
        frames: the prepared data that go into its object store.
        warn: called, in another thread, when the head of the cluster is gone.

    Raises:
        BadInput: no cluster at the address, or it cannot hold a single trial.
    """
    if ray.is_initialized() and not resources.address:  # as in a notebook whose user has connected to a cluster
        check_fits(resources, warn)
        yield
        return
    address = running_cluster(resources.address) if resources.address else None
    # Ray puts the current folder first where its workers look for modules, and a checkout of this package may be there.
    # They are to import the one that the driver has imported.
    with contextlib.ExitStack() as until_its_end:
        with contextlib.chdir(Path(__file__).parents[2]), _signals_kept(), _pandas_imported_meanwhile():
            try:
                if address:
                    ray.init(address=address, log_to_driver=True, logging_level=logging.ERROR)
                else:
                    until_its_end.enter_context(fork_server(_place_of_sockets()))
                    _start_here(frames)
            except SystemExit:  # from the handler of SIGTERM that Ray has put in the place of the sweep's own meanwhile
                raise KeyboardInterrupt from None
            except Exception as error:  # a node that was not there in time is no more than that to Ray
                hint = "; does the cluster ask for a token that is not at hand here? See docs/cluster.md"
                raise BadInput(f"Ray: {one_line(error)}{hint if address else ''}") from None
        try:
            check_fits(resources, warn)
            watched = contextlib.nullcontext() if warn is None else head_watched(warn) if address else ray_watched(warn)
            with watched:
                yield
        finally:
            ray.shutdown()


def _place_of_sockets() -> str | None:
    """Where the paths of sockets are short enough, if not in the folder of temporary files."""
    return None if len(str(temporary_folder())) <= _LONGEST_TEMPORARY_FOLDER else "/tmp"


def _start_here(frames: Mapping[DataKey, FrameSet]) -> None:
    """Starts a cluster on this machine whose every port is on the loopback interface."""
    # Ray's helpers look for a head that is gone; when the driver is killed, they too are to go soon.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
    # Tune starts workers of its own; those that Ray would start before, one a core, would have nothing to do.
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    with _on_loopback(), _without_dashboard():
        ray.init(
            address="local",
            num_cpus=available_cores(),
            include_dashboard=False,
            log_to_driver=True,
            logging_level=logging.ERROR,
            _temp_dir=None if _place_of_sockets() is None else "/tmp/ray",
            # What the frames take, and room for what passes between the processes.
            object_store_memory=sum(frame_set.frames.nbytes for frame_set in frames.values()) + 256 * 2**20,
        )


@contextmanager
def _pandas_imported_meanwhile() -> Iterator[None]:
    """Imports what is needed afterwards and imports no Ray, which mostly waits for its processes while it starts."""
    thread = threading.Thread(target=importlib.import_module, args=("pandas",), daemon=True)
    thread.start()
    yield
    thread.join()  # not after an interrupt: one that comes in the middle of an import keeps the lock of all imports


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Around the start of Ray: keeps SIGTERM's handler, which Ray replaces by one that exits, if it is no default one.

    What is started inside is deaf to SIGHUP: when a terminal is closed the whole group of processes gets one, and it
    is the driver that then ends the others, in good order.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        if callable(handlers[signal.SIGTERM]):
            signal.signal(signal.SIGTERM, handlers[signal.SIGTERM])
        signal.signal(signal.SIGHUP, handlers[signal.SIGHUP] or signal.SIG_DFL)


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Makes Ray take 127.0.0.1 for this machine's address, as it does by itself on macOS and Windows.

    Asked for that address in any other way, Ray replaces it with one that other machines can reach, and then listens
    on all interfaces.
    """
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _without_dashboard() -> Iterator[None]:
    """Makes Ray start neither autoscaler nor dashboard, of which a sweep here has no use: it starts seconds sooner.

    `include_dashboard=False` starts the dashboard's process all the same, and an agent with all that serves it.
    """

    def nowhere(node: Node, **options: Any) -> None:
        node._webui_url = ""
        # The agent asks every second where the dashboard is, until it is told.
        place = ray_constants.DASHBOARD_ADDRESS.encode(), b"127.0.0.1:0", True, ray_constants.KV_NAMESPACE_DASHBOARD
        node.get_gcs_client().internal_kv_put(*place)

    changes: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (Node, "start_monitor", lambda node: None),
        (Node, "start_api_server", nowhere),
        (ray_utils, "get_dashboard_dependency_error", lambda: ImportError("no dashboard is wanted")),
    )
    before = [getattr(place, name) for place, name, _ in changes]
    for place, name, instead in changes:
        setattr(place, name, instead)
    try:
        yield
    finally:
        for (place, name, _), was in zip(changes, before, strict=True):
            setattr(place, name, was)


def check_fits(resources: Resources, warn: Callable[[str], None] | None = None) -> None:
    """Sees whether a machine of the cluster that is running can hold a trial, which else waits for one that can.

    Args:
        resources: what a trial takes.
        warn: called if none can, yet the cluster may start machines by itself, as one at an address may.

    Raises:
        BadInput: none can, and none will.
    """
    for name, needed in (("CPU", resources.cpus_per_trial), ("GPU", resources.gpus_per_trial)):
        most = max((node["Resources"].get(name, 0) for node in ray.nodes() if node["Alive"]), default=0)
        sentence = f"--{name.lower()}s-per-trial {needed:g}: no machine of this cluster has more than {most:g} {name}s"
        if needed > most and not resources.address:
            raise BadInput(sentence)
        if needed > most and warn:
            warn(f"{sentence}; waiting for one that has")


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
