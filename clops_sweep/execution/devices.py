"""The choice of CPUs or GPUs for a launch, and of how many trials share a GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clops_sweep import native
from clops_sweep.errors import UsageError, option, several
from clops_sweep.execution.jobs import Resources, without_ray
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.machine import Gpu, available_cores, gpus_of_driver, installed_version, usable_gpus
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.store.run_store import RunStore

LARGEST_NATIVE = 5_000
"""Values of a frame up to which the native kernels of the paper's network train a run fast enough on one core."""

_MOST_READ = 200

_MOST_PER_GPU = 8
"""Trials on a GPU, which computes those of several processes in turns."""

_USABLE = 0.9
"""Share of the memory of a GPU that trials may fill."""


@dataclass(frozen=True)
class DeviceChoice:
    """The device of a launch.

    Attributes:
        resources: the resources with GPUs per trial filled in.
        words: the device, the reason and the number of idle GPUs, as text.
    """

    resources: Resources
    words: str


def choose(state: State, resources: Resources) -> DeviceChoice:
    """Choose between CPUs and GPUs.

    The requested device comes first, then the device of finished runs. Otherwise a GPU that PyTorch can use is used,
    unless all runs have the paper's network, its native kernels and frames of at most 5,000 values.

    As many trials share a GPU as `--gpus-per-trial` says. By default, these are as many as its memory and the cores of
    this machine hold, but no more than 8, and no more than there are runs. On a cluster, its GPUs are taken to be like
    those of this machine; without one here, each trial gets a whole GPU.

    Args:
        state: the state of the requested runs.
        resources: the requested resources.

    Raises:
        UsageError: the finished runs were computed on the other kind of device, or on GPUs and this machine has none.
    """
    request, recorded = state.resolved, state.may_have_results
    gpus, count = usable_gpus(), gpus_of_driver()
    wanted = "gpu" if resources.gpus_per_trial else None if resources.device == "auto" else resources.device
    before = _computed_on(request.store, recorded)
    if before is not None and wanted not in (None, before):
        raise UsageError(
            f"{option('device', wanted)}: the finished runs of this search space in {request.store.files.shown} were "
            f"computed on {before.upper()}s; expected {option('device', before)} or auto, or other {option('results')}"
        )
    if before == "gpu" and not (gpus or resources.is_elsewhere):
        raise UsageError(
            f"the finished runs of this search space in {request.store.files.shown} were computed on GPUs, and PyTorch "
            f"{installed_version('torch')} cannot use a GPU here; expected a machine with a GPU, or other "
            f"{option('results')}"
        )
    kind = wanted or before or ("gpu" if gpus and _gains(request) else "cpu")
    if kind == "gpu":
        because = ", as requested" if wanted else ", like the finished runs" if before else ""
        if resources.gpus_per_trial:
            return DeviceChoice(resources, f"gpu{because}; a trial takes {resources.gpus_per_trial:.2g} GPU")
        trials, why = _trials_per_gpu(request, resources, gpus, recorded)
        share = math.floor(1e4 / trials) / 1e4  # Ray counts in ten-thousandths
        words = f"{trials} trials share a GPU" if trials > 1 else "a trial takes 1 GPU"
        return DeviceChoice(replace(resources, gpus_per_trial=share), f"gpu{because}; {words}: {why}")
    if not count:
        return DeviceChoice(resources, "cpu" if wanted else "cpu; this machine has no GPU")
    idle = f"{several(count, 'GPU')} {'stays' if count == 1 else 'stay'} idle"
    if wanted or before:
        return DeviceChoice(resources, f"cpu, {'as requested' if wanted else 'like the finished runs'}; {idle}")
    if not gpus:
        return DeviceChoice(resources, f"cpu; {idle}: PyTorch {installed_version('torch')} cannot use any")
    return DeviceChoice(
        resources, f"cpu; {idle}: {PAPER_NETWORK} has native kernels for CPUs; override with {option('device', 'gpu')}"
    )


def _gains(request: Request) -> bool:
    """Return whether some of the runs are expected to be faster on a GPU."""
    configs = request.selection.configs
    if not native.available():
        return True
    if any(config.network != PAPER_NETWORK or config.precision != "float32" for config in configs):
        return True
    keys = {config.data_key for config in configs if request.data_hash(config) is not None}
    for key in keys:
        frames = request.data.frames(key)
        if frames.channels * frames.samples > LARGEST_NATIVE:
            return True
    return False


def _computed_on(store: RunStore, finished: Collection[str]) -> str | None:
    """Return the device of most finished runs, "cpu" or "gpu"; None without finished runs."""
    rows = store.rows("runs", ["device"], sorted(finished)[:_MOST_READ]) if finished else []
    counts = Counter("gpu" if str(row["device"]).startswith("cuda") else "cpu" for row in rows)
    return counts.most_common(1)[0][0] if counts else None


def _trials_per_gpu(
    request: Request, resources: Resources, gpus: Sequence[Gpu], finished: Collection[str]
) -> tuple[int, str]:
    """Return how many trials share a GPU, and which of memory, cores and runs limits them."""
    if not gpus:
        return 1, "this machine has none to judge by"
    if resources.workers == "this process":
        return 1, f"{without_ray()} computes one run at a time"
    limits = [(_MOST_PER_GPU, "more would gain little")]
    cores = available_cores()
    by_cores = int(cores / resources.cpus_per_trial) // len(gpus)
    limits.append((by_cores, f"{several(cores, 'core')} for {several(len(gpus), 'GPU')}"))
    if not request.selection.searches:
        unfinished = len(request.selection.requests) - len(finished)
        words = f"{several(unfinished, 'run')} for {several(len(gpus), 'GPU')}"
        limits.append((math.ceil(unfinished / len(gpus)), words))
    needed = _bytes_of_a_run(request)
    memory = min(gpu.memory for gpu in gpus)
    if needed is None:
        limits.append((1, "the data are not prepared, so the memory of a run is unknown"))
    else:
        words = f"a run needs about {needed / 1e9:.1f} of {memory / 1e9:.0f} GB"
        limits.append((int(_USABLE * memory / needed), words))
    trials, why = min(limits, key=lambda limit: limit[0])
    return max(1, trials), why


def _bytes_of_a_run(request: Request) -> int | None:
    """Return the bytes that the largest of the requested runs needs on a GPU; None if no data are prepared."""
    from clops_sweep.learning.networks.pass_memory import run_bytes

    largest = dict[tuple[object, ...], RunConfig]()
    for config in request.selection.configs:
        options = tuple(sorted(config.network_options.items()))
        kind = (config.data_key, config.network, config.lora_rank, options)
        if kind not in largest or config.batch_size > largest[kind].batch_size:
            largest[kind] = config
    prepared = [config for config in largest.values() if request.data_hash(config) is not None]
    return max((run_bytes(config, request.data.frames(config.data_key)) for config in prepared), default=None)
