"""The Ray cluster that a sweep runs on: one of its own that only this machine can reach, or one that is running."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import clops_sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray
from ray._private import ray_constants

from clops_sweep.cluster_address import running_cluster, temporary_folder
from clops_sweep.cluster_watch import head_watched, ray_watched
from clops_sweep.config import DataKey
from clops_sweep.cores import available_cores
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import BadInput
from clops_sweep.files import reason

_RUNS_ON_A_GPU = 40  # beyond that a step takes longer in proportion, and a death of the worker costs more
_LONGEST_TEMPORARY_FOLDER = 40
"""The paths of Ray's sockets in there may have 107 characters at most; batch systems have long names for TMPDIR."""


@dataclass(frozen=True)
class Resources:
    """What a trial takes, and where it runs.

    Attributes:
        address: of a running Ray cluster; None starts one on this machine for the time of the sweep.
        cpus_per_trial: CPUs reserved for a trial, which computes on one.
        gpus_per_trial: share of a GPU reserved for a trial.
        stack: how many runs may be trained in lockstep in a trial, if they can be; None for one on a CPU, where that
            gains nothing, and 40 on a GPU.
        max_retries: how often a run that raised, or whose worker died, is taken up again.
        checkpoint_every: epochs between two checkpoints, beside those at the end of a task; 0 for none.
    """

    address: str | None = None
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0
    stack: int | None = None
    max_retries: int = 2
    checkpoint_every: int = 0

    @property
    def runs_per_job(self) -> int:
        """How many runs a job may hold."""
        return self.stack or (_RUNS_ON_A_GPU if self.gpus_per_trial else 1)

    def places(self) -> int:
        """How many trials the cluster that is running holds, as it is now."""
        there, needed = ray.cluster_resources(), {"CPU": self.cpus_per_trial, "GPU": self.gpus_per_trial}
        return int(min((there.get(name, 0) // share for name, share in needed.items() if share), default=1))


@contextmanager
def cluster(
    resources: Resources, frames: Mapping[DataKey, FrameSet], warn: Callable[[str], None] | None = None
) -> Iterator[None]:
    """A Ray cluster for the time of the sweep: the one at `address`, or one on this machine that only it can reach.

    Args:
        resources: the address, and what a trial takes.
        frames: the prepared data that go into its object store.
        warn: told, in another thread, when the head of the cluster is gone.

    Raises:
        BadInput: no cluster at the address, or it cannot hold a single trial.
    """
    address = running_cluster(resources.address) if resources.address else None
    # Ray puts the current folder first where its workers look for modules, and a checkout of this package may be there.
    # They are to import the one that the driver has imported.
    with contextlib.chdir(Path(__file__).parents[1]), _signals_kept(), _pandas_imported_meanwhile():
        try:
            if address:
                ray.init(address=address, log_to_driver=True, logging_level=logging.ERROR)
            else:
                _start_here(frames)
        except Exception as error:  # a node that was not there in time is no more than that to Ray
            hint = "; does the cluster ask for a token that is not at hand here? See docs/cluster.md" if address else ""
            raise BadInput(f"Ray: {reason(error)}{hint}") from None
    try:
        check_fits(resources, warn)
        watched = contextlib.nullcontext() if warn is None else head_watched(warn) if address else ray_watched(warn)
        with watched:
            yield
    finally:
        ray.shutdown()


def _start_here(frames: Mapping[DataKey, FrameSet]) -> None:
    """Starts a cluster on this machine whose every port is on the loopback interface."""
    # Ray's helpers look for a head that is gone; when the driver is killed, they too are to go soon.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=available_cores(),
            include_dashboard=False,
            log_to_driver=True,
            logging_level=logging.ERROR,
            _temp_dir=None if len(str(temporary_folder())) <= _LONGEST_TEMPORARY_FOLDER else "/tmp/ray",
            # What the frames take, and room for what passes between the processes.
            object_store_memory=sum(frame_set.frames.nbytes for frame_set in frames.values()) + 256 * 2**20,
        )


@contextmanager
def _pandas_imported_meanwhile() -> Iterator[None]:
    """Imports what is needed afterwards and imports no Ray, which mostly waits for its processes while it starts."""
    thread = threading.Thread(target=importlib.import_module, args=("pandas",))
    thread.start()
    try:
        yield
    finally:
        thread.join()


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


def check_fits(resources: Resources, warn: Callable[[str], None] | None = None) -> None:
    """Sees whether a machine of the cluster that is running can hold a trial, which else waits for one that can.

    Args:
        resources: what a trial takes.
        warn: told if none can, yet the cluster may start machines by itself, as one at an address may.

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
