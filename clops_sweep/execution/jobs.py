"""Jobs, their resources, and the settings of workers. Imports neither torch nor Tune."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from clops_sweep.data.catalog import DataKey, DatasetInfo
from clops_sweep.data.origins import Origin
from clops_sweep.errors import UsageError, either, option, shown
from clops_sweep.execution.observers.requested import check_observers
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.limits import OF_RESOURCES, Device, check_limits
from clops_sweep.experiment.plugins.declarations import Plugin
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.planning.plan import PlannedRun

if TYPE_CHECKING:
    import ray

    from clops_sweep.data.frames import FrameSet
    from clops_sweep.execution.plugins import PackedPlugin


@dataclass(frozen=True)
class Job:
    """One run to compute.

    Attributes:
        run_id: its id.
        config: its config.
        until: number of tasks after which it pauses with a checkpoint, unless these are all tasks; None to compute all.
        name: its name for display, without the seed (see `PlannedRun`); may be empty.
    """

    run_id: str
    config: RunConfig
    until: int | None = None
    name: RunName = field(default_factory=RunName)

    @classmethod
    def of(cls, run: PlannedRun) -> Job:
        """Return the job of a run that has an id."""
        return cls(str(run.run_id), run.config, name=run.name)

    def __hash__(self) -> int:
        return hash((self.run_id, self.until))  # hashing the config would be slow

    def __repr__(self) -> str:
        return f"Job({self.run_id})"

    def __deepcopy__(self, memo: dict[int, object]) -> Job:
        """Return itself: it is immutable, and Tune copies it several times."""
        return self


Jobs = tuple[Job, ...]
"""The jobs that one worker computes one after another: one trial of Tune. Several short ones save time between them."""


class LeftOut(NamedTuple):
    """A run of a search that is over without the end of a job.

    Attributes:
        run_id: its id; None if the parameters of its trial are not valid together.
        config: its config.
    """

    run_id: str | None
    config: RunConfig


WorkersAsked = Literal["auto", "ray", "this process"]
"""What the user wants to compute all jobs: Ray, or this process without Ray. With "auto", Ray starts if it pays."""


def workers_asked(ray: object) -> WorkersAsked:
    """Return the workers that the argument `ray` asks for.

    Raises:
        UsageError: it is neither True nor False nor None.
    """
    if ray is None:
        return "auto"
    if not isinstance(ray, bool):
        raise UsageError(f"ray = {shown(ray)}: expected True, False, or None to start Ray if it pays")
    return "ray" if ray else "this process"


def without_ray() -> str:
    """Return what the user gives for a launch in this process alone, for a sentence."""
    return either("--no-ray", "ray=False")


@dataclass(frozen=True)
class Resources:
    """Resources of a trial, and the cluster or process that runs it.

    Attributes:
        address: address of a running Ray cluster; None starts one on this machine for the duration of the sweep.
        cpus_per_trial: CPUs reserved for a trial, which computes on one.
        gpus_per_trial: share of a GPU reserved for a trial; 0 leaves the device and the share to `devices.choose`.
        max_retries: number of retries of a run that raised or whose worker died.
        checkpoint_every: epochs between checkpoints, in addition to those by time; 0 for none.
        epoch_timeout: time limit of an epoch in seconds, after which its run fails; None for no limit.
        observe: observers of its runs, as NAME or NAME:TARGET.
        workers: what computes the jobs (see `WorkersAsked`).
        device: "cpu", "gpu", or "auto" for the faster one.
        nice: niceness of the workers of a Ray that the launch starts.

    Raises:
        UsageError: a number is out of bounds, `address` is not text, an observer is unknown, two devices are given,
            this process alone is combined with a feature of Ray, or `nice` with workers that the launch does not start.
    """

    address: str | None = None
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0
    max_retries: int = 2
    checkpoint_every: int = 0
    epoch_timeout: float | None = None
    observe: Sequence[str] = ()
    workers: WorkersAsked = "auto"
    device: Device = "auto"
    nice: int = 0

    def __post_init__(self) -> None:
        check_limits(self, OF_RESOURCES)
        if self.address is not None and not (isinstance(self.address, str) and self.address.strip()):
            raise UsageError(f"address = {shown(self.address)}: expected auto or HOST:PORT")
        check_observers(self.observe)
        is_alone = self.workers == "this process"
        if is_alone and self.address is not None:
            raise UsageError(f"{without_ray()} and {option('address')} are both given; expected one of them")
        if is_alone and self.epoch_timeout is not None:
            raise UsageError(
                f"{option('epoch_timeout')} ends a worker of Ray, and {without_ray()} has none; expected one of them"
            )
        if self.device not in get_args(Device):
            raise UsageError(f"device = {shown(self.device)}: expected auto, cpu or gpu")
        if self.device == "cpu" and self.gpus_per_trial:
            raise UsageError(
                f"{option('device', 'cpu')} and {option('gpus_per_trial', self.gpus_per_trial)} are both given; "
                "expected one of them"
            )
        if self.nice and (is_alone or self.address):
            how = "start the command with nice -n" if is_alone else "set RAY_worker_niceness where `ray start` runs"
            raise UsageError(f"{option('nice')} is for the workers of a Ray that the launch starts; instead, {how}")

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers may be on other machines, or on a Ray that was started with other resources."""
        ray = sys.modules.get("ray")
        has_ray = self.address is not None or (ray is not None and ray.is_initialized())
        return has_ray and self.workers != "this process"


@dataclass(frozen=True)
class Workplace:
    """The settings of all workers of a sweep.

    Attributes:
        frames: the prepared data, or references to Ray's object store, which has one copy per node.
        data_hashes: content hashes of the data.
        store_uri: URI of the store.
        keep: optional results to store, in addition to the four tables.
        on_gpu: whether jobs are computed on a GPU.
        witness: a file in the results that every node of the cluster must see; empty for none.
        software: software versions, determined by the driver.
        plugins: plug-ins registered by the search-space file, by registry and name.
        checkpoint_every: epochs between checkpoints, in addition to those by time; 0 for none.
        epoch_timeout: time limit of an epoch in seconds; None for no limit.
        datasets: declarations of the search-space file's data sets, so that configs can name them.
        origins: origins of the code of data sets and plug-ins, by config field and name.
        is_observed: whether workers send events for observers.
    """

    frames: SharedFrames
    data_hashes: Mapping[DataKey, str]
    store_uri: str = field(repr=False)  # it may contain a password
    software: Mapping[str, Any]
    plugins: Mapping[str, Mapping[str, Plugin | PackedPlugin]]
    checkpoint_every: int
    epoch_timeout: float | None = None
    datasets: Sequence[DatasetInfo] = ()
    origins: Mapping[tuple[str, str], Origin] = field(default_factory=dict)
    is_observed: bool = False
    keep: frozenset[str] = frozenset()
    on_gpu: bool = False
    witness: str = ""

    def data_hash(self, config: RunConfig) -> str:
        """Return the content hash of a config's data."""
        return self.data_hashes[config.data_key]


SharedFrames = Mapping[DataKey, "ray.ObjectRef[FrameSet] | FrameSet"]
MakeWorkplace = Callable[[SharedFrames], Workplace]
