"""Jobs, their resources, and the settings of workers. Imports neither torch nor Tune."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, get_args

from clops_sweep.data.catalog import DataKey, DatasetInfo
from clops_sweep.data.origins import Origin
from clops_sweep.errors import UsageError, shown
from clops_sweep.execution.observers.requested import check_observers
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.limits import OF_RESOURCES, Device, check_limits
from clops_sweep.experiment.plugins.declarations import Plugin
from clops_sweep.learning.lockstep import lockstep_key
from clops_sweep.machine import available_cores, check_gpu
from clops_sweep.planning.plan import PlannedRun

if TYPE_CHECKING:
    import ray

    from clops_sweep.data.frames import FrameSet
    from clops_sweep.execution.plugins import PackedPlugin


@dataclass(frozen=True)
class Job:
    """The runs of one trial of Tune, with their ids: one or several locksteps, computed one after another.

    With `until`, they are trained on that many tasks only and end as "paused" with a checkpoint, unless these are all
    tasks. `names` are names for display (see `PlannedRun`); `locksteps` are the sizes of locksteps, if several.
    """

    configs: tuple[RunConfig, ...]
    run_ids: tuple[str, ...]
    until: int | None = None
    names: tuple[str, ...] = ()
    locksteps: tuple[int, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[PlannedRun]) -> Job:
        """Return the job of some runs, all with an id."""
        return cls(
            tuple(run.config for run in runs),
            tuple(str(run.run_id) for run in runs),
            names=tuple(run.name for run in runs),
        )

    @classmethod
    def joined(cls, parts: Sequence[Job]) -> Job:
        """Join several jobs without `until` into one, which computes them one after another."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            tuple(config for part in parts for config in part.configs),
            tuple(run_id for part in parts for run_id in part.run_ids),
            names=tuple(name for part in parts for name in part.names),
            locksteps=tuple(len(part.run_ids) for part in parts),
        )

    def parts(self) -> tuple[Job, ...]:
        """Return its locksteps in order, each as a job."""
        ends = list(accumulate(self.locksteps))
        return tuple(self.part(range(first, end)) for first, end in pairwise([0, *ends])) if ends else (self,)

    def __hash__(self) -> int:
        return hash((self.run_ids, self.until))  # hashing the configs would be slow

    def __repr__(self) -> str:
        return f"Job({', '.join(self.run_ids[:2])}{', ...' * (len(self.run_ids) > 2)})"

    def __deepcopy__(self, memo: dict[int, object]) -> Job:
        """Return itself: it is immutable, and Tune copies it several times."""
        return self

    @property
    def runs(self) -> dict[str, RunConfig]:
        """Its runs by id."""
        return dict(zip(self.run_ids, self.configs, strict=True))

    def part(self, runs: Iterable[int]) -> Job:
        """Return the job of some of its runs, by index."""
        kept = tuple(runs)
        configs, run_ids = tuple(self.configs[run] for run in kept), tuple(self.run_ids[run] for run in kept)
        return Job(configs, run_ids, self.until, tuple(self.names[run] for run in kept if self.names))


RUNS_ON_A_GPU = 40  # larger locksteps gain no speed, and more is lost when a worker dies


@dataclass(frozen=True)
class Resources:
    """Resources of a trial, and the cluster or process that runs it.

    Attributes:
        address: address of a running Ray cluster; None starts one on this machine for the duration of the sweep.
        cpus_per_trial: CPUs reserved for a trial, which computes on one.
        gpus_per_trial: share of a GPU reserved for a trial; 0 leaves the device and the share to `devices.choice`.
        lockstep: maximum number of runs computed together; None for 1 on a CPU, where lockstep gains nothing, and 40 on
            a GPU.
        max_retries: number of retries of a run that raised or whose worker died.
        checkpoint_every: epochs between checkpoints, in addition to those after each task; 0 for none.
        epoch_timeout: time limit of an epoch in seconds, after which its run fails; None for no limit.
        observe: observers of its runs, as NAME or NAME:TARGET.
        no_ray: whether this process alone computes the jobs, one after another.
        device: "cpu", "gpu", or "auto" for the faster one.
        nice: niceness of the workers of a Ray that the launch starts.

    Raises:
        UsageError: a number is out of bounds, `address` is not text, an observer is unknown, two devices are given,
            `no_ray` is combined with a feature of Ray, or `nice` with workers that the launch does not start.
    """

    address: str | None = None
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0
    lockstep: int | None = None
    max_retries: int = 2
    checkpoint_every: int = 0
    epoch_timeout: float | None = None
    observe: Sequence[str] = ()
    no_ray: bool = False
    device: Device = "auto"
    nice: int = 0

    def __post_init__(self) -> None:
        check_limits(self, OF_RESOURCES)
        if self.address is not None and not (isinstance(self.address, str) and self.address.strip()):
            raise UsageError(f"address = {shown(self.address)}: expected auto or HOST:PORT")
        check_observers(self.observe)
        if not isinstance(self.no_ray, bool):
            raise UsageError(f"no_ray = {shown(self.no_ray)}: expected True or False")
        if self.no_ray and self.address is not None:
            raise UsageError("--no-ray and --address are both given; expected one of them")
        if self.no_ray and self.epoch_timeout is not None:
            raise UsageError("--epoch-timeout ends a worker of Ray, and --no-ray has none; expected one of them")
        if self.device not in get_args(Device):
            raise UsageError(f"device = {shown(self.device)}: expected auto, cpu or gpu")
        if self.device == "cpu" and self.gpus_per_trial:
            raise UsageError(
                f"--device cpu and --gpus-per-trial {self.gpus_per_trial:g} are both given; expected one of them"
            )
        if self.nice and (self.no_ray or self.address):
            how = "start the command with nice -n" if self.no_ray else "set RAY_worker_niceness where `ray start` runs"
            raise UsageError(f"--nice is for the workers of a Ray that the launch starts; instead, {how}")

    def check(self) -> None:
        """Check that the resources exist, as far as possible before Ray starts.

        Raises:
            UsageError: no cluster answers at the address; this machine has fewer CPUs, or no GPU that PyTorch can use.
        """
        if self.address:
            from clops_sweep.execution.cluster_address import running_cluster

            running_cluster(self.address)
        if self.is_elsewhere:
            return  # an existing cluster checks this itself
        if not self.no_ray and self.cpus_per_trial > available_cores():
            raise UsageError(
                f"--cpus-per-trial {self.cpus_per_trial:g}: this machine has {available_cores()} for this process; "
                "expected no more, or a cluster with --address"
            )
        if self.gpus_per_trial:
            check_gpu("--gpus-per-trial", self.gpus_per_trial)
        elif self.device == "gpu":
            check_gpu("--device gpu")

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers may be on other machines, or on a Ray that was started with other resources."""
        ray = sys.modules.get("ray")
        return not self.no_ray and (self.address is not None or (ray is not None and ray.is_initialized()))

    @property
    def runs_in_lockstep(self) -> int:
        """Maximum number of runs computed together."""
        return self.lockstep or (RUNS_ON_A_GPU if self.gpus_per_trial else 1)


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
        max_retries: number of retries of a run that raised, from its last checkpoint.
        checkpoint_every: epochs between checkpoints, in addition to those after each task; 0 for none.
        epoch_timeout: time limit of an epoch in seconds; None for no limit.
        datasets: declarations of the search-space file's data sets, so that configs can name them.
        origins: origins of the code of data sets and plug-ins, by config field and name.
        is_observed: whether workers send events for observers.
    """

    frames: HeldFrames
    data_hashes: Mapping[DataKey, str]
    store_uri: str = field(repr=False)  # it may contain a password
    software: Mapping[str, Any]
    plugins: Mapping[str, Mapping[str, Plugin | PackedPlugin]]
    max_retries: int
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


HeldFrames = Mapping[DataKey, "ray.ObjectRef[FrameSet] | FrameSet"]
MakeWorkplace = Callable[[HeldFrames], Workplace]


def make_jobs(pending: Sequence[PlannedRun], runs_in_lockstep: int) -> list[Job]:
    """Group pending runs into locksteps of limited size that can be trained together, in the order of the plan."""
    if runs_in_lockstep == 1:
        return [Job.of([run]) for run in pending]
    groups: dict[str, list[PlannedRun]] = {}
    for run in pending:
        groups.setdefault(lockstep_key(run.config), []).append(run)
    chunks = [
        runs[start : start + runs_in_lockstep]
        for runs in groups.values()
        for start in range(0, len(runs), runs_in_lockstep)
    ]
    place = {run.config: index for index, run in enumerate(pending)}
    chunks.sort(key=lambda runs: place[runs[0].config])
    return [Job.of(runs) for runs in chunks]
