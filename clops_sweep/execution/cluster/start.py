"""The Ray cluster of a sweep: a private one that only this machine can reach, or a running one.

It is watched during the sweep, because Ray ends the driver silently when the cluster dies. Only public names of Ray are
used; `docs/architecture.md` lists what this relies on.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError, one_line, option
from clops_sweep.execution.cluster.cluster_address import running_cluster, temporary_folder
from clops_sweep.execution.cluster.start_check import SECONDS_OF_RAY, object_store_bytes
from clops_sweep.execution.jobs import Resources
from clops_sweep.execution.worker.scratch import private_folder
from clops_sweep.machine import available_cores, usable_gpus

_SECONDS_BETWEEN_LOOKS = 5.0
_MISSED_LOOKS = 2
_SECONDS_BETWEEN_LOOKS_HERE = 0.5
_TRIES_TO_START = 3  # a busy machine needs longer than the 30 s for which Ray waits
_NICENESS = "RAY_worker_niceness"
_LONGEST_TEMPORARY_FOLDER = 24
"""Longest path of the folder: paths of Ray's sockets have at most 107 characters, and TMPDIR may be long."""


def places(resources: Resources) -> int:
    """Return how many trials the running cluster can currently hold."""
    there, needed = ray.cluster_resources(), {"CPU": resources.cpus_per_trial, "GPU": resources.gpus_per_trial}
    return int(min((there.get(name, 0) // share for name, share in needed.items() if share), default=1))


def start_in_words(resources: Resources) -> str:
    """Describe what `cluster` is about to do."""
    if resources.address:
        return f"connecting to the Ray cluster at {resources.address}"
    if ray.is_initialized():
        return "using the Ray cluster of this process"
    return f"starting Ray (about {SECONDS_OF_RAY:.0f} s)"


@contextmanager
def cluster(
    resources: Resources, frames: Mapping[DataKey, FrameSet], warn: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Provide a Ray cluster during the sweep: the one at `address`, or a private one on this machine.

    If this process is already connected to a cluster and no address is given, that cluster is used and stays connected.

    Args:
        resources: the address, and the resources of a trial.
        frames: the prepared data for its object store.
        warn: called with a sentence if other machines can reach the cluster of this machine, and from another thread if
            a process of the cluster is gone.

    Raises:
        UsageError: no cluster at the address, or it cannot hold a single trial.
    """
    if ray.is_initialized() and not resources.address:  # such as a notebook that is connected to a cluster
        check_fits(resources, warn)
        yield
        return
    address = running_cluster(resources.address) if resources.address else None
    # Ray puts the current folder first on the module path of workers; it may contain a checkout of this package.
    # Workers must import the same package as the driver.
    with contextlib.ExitStack() as until_its_end:
        # No thread may load libraries meanwhile: Ray forks, and its child would wait forever for the loader's lock.
        with contextlib.chdir(Path(__file__).parents[3]), signals_kept():
            folder = None if address else until_its_end.enter_context(private_folder(_base()))
            until_its_end.callback(ray.shutdown)
            try:
                if address:
                    ray.init(address=address, log_to_driver=True, logging_level=logging.ERROR)
                else:
                    _start_here(resources, frames, str(folder))
            except SystemExit:  # from Ray's handler of SIGTERM, which has replaced the sweep's
                raise KeyboardInterrupt from None
            except TimeoutError:
                raise
            except Exception as error:  # Ray does not distinguish a node that was late
                hint = "; does the cluster ask for a token that is not at hand here? See docs/cluster.md"
                raise UsageError(f"Ray: {one_line(error)}{hint if address else ''}") from None
        check_fits(resources, warn)
        if not address and warn and not ipaddress.ip_address(here := ray.util.get_node_ip_address()).is_loopback:
            warn(f"Ray {ray.__version__} listens at {here}, where other machines can reach it, and not at 127.0.0.1")
        with contextlib.nullcontext() if warn is None else watched(warn, here=address is None):
            yield


def _base() -> Path:
    """Return where the private folder of a launch is made, so that paths of sockets in it are valid."""
    base = temporary_folder().parent
    return base if str(base).isascii() and len(str(base)) <= _LONGEST_TEMPORARY_FOLDER else Path("/tmp")


def _start_here(resources: Resources, frames: Mapping[DataKey, FrameSet], folder: str) -> None:
    """Start a cluster on this machine with all ports on the loopback interface and all files in a folder.

    Raises:
        TimeoutError: the machine is too busy.
    """
    defaults = {
        # Ray's helper processes check for a dead head: they should end soon after the driver is killed.
        "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        # Tune starts its own workers; those that Ray prestarts, one per core, would be idle.
        "RAY_prestart_worker_first_driver": "0",
        "RAY_gcs_server_port_wait_time_s": "180",
        _NICENESS: "0",  # instead of 15
    }
    asked = {"RAY_TMPDIR": folder, **({_NICENESS: str(resources.nice)} if resources.nice else {})}
    with _set(defaults | {name: os.environ[name] for name in defaults.keys() & os.environ.keys()} | asked):
        for tries_left in reversed(range(_TRIES_TO_START)):
            try:
                ray.init(
                    address="local",
                    num_cpus=available_cores(),
                    num_gpus=len(usable_gpus()) if resources.gpus_per_trial else None,
                    include_dashboard=False,
                    log_to_driver=True,
                    logging_level=logging.ERROR,
                    object_store_memory=object_store_bytes(frames),
                )
                return
            except (OSError, ValueError):  # such as a folder that Ray cannot write to
                raise
            except Exception as error:
                ray.shutdown()
                if not tries_left:
                    raise TimeoutError(
                        f"Ray has not started on this machine ({one_line(error)}); it is too busy, or ends Ray's "
                        "processes, as a limit on virtual memory (ulimit -v) does"
                    ) from None


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in the block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
            if name in before:
                os.environ[name] = before[name]


@contextmanager
def signals_kept() -> Iterator[None]:
    """Keep signals that stop the sweep from the processes that Ray starts in the block; the driver handles them.

    A closed terminal, `timeout` and batch systems send them to a whole process group. The processes of Ray get groups
    of their own (Linux), and inherit blocked SIGHUP and SIGUSR1: a batch system may send these to every process. They
    must accept SIGTERM, by which the driver ends them. The driver receives signals sent meanwhile afterwards, and keeps
    its handler of SIGTERM, which Ray replaces by one that exits.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    blocked = {getattr(signal, name) for name in ("SIGHUP", "SIGUSR1") if hasattr(signal, name)}  # not on Windows
    if blocked:
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        with _groups_of_their_own():
            yield
    finally:
        if before is not None:  # one that Python has installed
            signal.signal(signal.SIGTERM, before)
        if blocked:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)


_get_own_groups = False
"""Whether processes that this one starts get process groups of their own."""


@contextmanager
def _groups_of_their_own() -> Iterator[None]:
    """Give process groups of their own to the processes that Ray starts in the block.

    On Linux alone: elsewhere, a process of Ray ends the others, by their group, once the driver is gone.
    """
    global _get_own_groups
    _get_own_groups = sys.platform.startswith("linux")
    try:
        yield
    finally:
        _get_own_groups = False


def _leave_group() -> None:
    if _get_own_groups:
        os.setpgrp()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_group)  # also called by `subprocess` with a `preexec_fn`, as Ray has one


def check_fits(resources: Resources, warn: Callable[[str], None] | None = None) -> None:
    """Check that a machine of the running cluster can hold a trial, which would otherwise wait forever.

    Args:
        resources: the resources of a trial.
        warn: called if none can but the cluster may add machines, as one at an address may, and if the GPUs of such a
            cluster stay idle.

    Raises:
        UsageError: no machine can, and none will be added.
    """
    for name, needed in (("CPU", resources.cpus_per_trial), ("GPU", resources.gpus_per_trial)):
        most = max((node["Resources"].get(name, 0) for node in ray.nodes() if node["Alive"]), default=0)
        sentence = f"--{name.lower()}s-per-trial {needed:g}: no machine of this cluster has more than {most:g} {name}s"
        if needed > most and not resources.address:
            raise UsageError(sentence)
        if needed > most and warn:
            warn(f"{sentence}; waiting for one that has")
    idle = 0 if resources.gpus_per_trial or not resources.address else ray.cluster_resources().get("GPU", 0)
    if idle and warn:
        warn(f"the cluster's GPUs ({idle:g}) stay idle; {option('device', 'gpu')} uses them")


@contextmanager
def watched(warn: Callable[[str], None], *, here: bool) -> Iterator[None]:
    """Warn when the head of the cluster is gone; Ray ends the driver silently a minute later.

    Of a cluster `here`, on this machine, the scheduler (raylet) is also watched, and Ray ends the driver at once.
    """
    places = {"head": str(ray.get_runtime_context().gcs_address)}
    if here:
        (node,) = ray.nodes()
        places["scheduler"] = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
    between, most = (_SECONDS_BETWEEN_LOOKS_HERE, 1) if here else (_SECONDS_BETWEEN_LOOKS, _MISSED_LOOKS)
    ended = threading.Event()

    def watch() -> None:
        missed = dict.fromkeys(places, 0)
        while not ended.wait(between):
            for name, address in places.items():
                missed[name] = 0 if _answers(address) else missed[name] + 1
                if missed[name] == most and not ended.is_set():  # a look may outlast the cluster
                    warn(
                        f"the {name} of the Ray cluster, at {address}, no longer answers; if it is not back, this "
                        "command ends (what is finished is recorded, and the same command goes on with the rest)"
                    )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_BETWEEN_LOOKS).close()
    except OSError:
        return False
    return True
