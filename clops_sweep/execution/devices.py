"""The choice of CPUs or GPUs for a launch. Nothing is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clops_sweep import native
from clops_sweep.errors import UsageError, several
from clops_sweep.execution.jobs import Resources
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.machine import gpus_of_driver, installed_version, usable_gpus
from clops_sweep.planning.request import Request

if TYPE_CHECKING:
    from clops_sweep.store.run_store import RunStore

_LARGEST_NATIVE = 5_000
"""Values of a frame up to which the native kernels of the paper's network train a run fast enough on one core."""

_MOST_READ = 200


@dataclass(frozen=True)
class DeviceChoice:
    """The device of a launch.

    Attributes:
        resources: the resources with GPUs per trial filled in.
        words: the device, the reason and the number of idle GPUs, as text.
    """

    resources: Resources
    words: str


def choose(request: Request, resources: Resources, finished: Collection[str]) -> DeviceChoice:
    """Choose between CPUs and GPUs.

    The requested device comes first, then the device of finished runs. Otherwise a GPU that PyTorch can use is used,
    unless all runs have the paper's network, its native kernels and frames of at most 5,000 values.

    Args:
        request: the requested runs.
        resources: the requested resources.
        finished: ids of the finished runs of the same search spaces.

    Raises:
        UsageError: the finished runs were computed on the other kind of device, or on GPUs and this machine has none.
    """
    gpus, count = usable_gpus(), gpus_of_driver()
    wanted = "gpu" if resources.gpus_per_trial else None if resources.device == "auto" else resources.device
    before = _computed_on(request.store, finished)
    if before is not None and wanted not in (None, before):
        raise UsageError(
            f"--device {wanted}: the finished runs of this search space in {request.store.files.shown} were computed "
            f"on {before.upper()}s; expected --device {before} or auto, or other --results"
        )
    if before == "gpu" and not (gpus or resources.is_elsewhere):
        raise UsageError(
            f"the finished runs of this search space in {request.store.files.shown} were computed on GPUs, and PyTorch "
            f"{installed_version('torch')} cannot use a GPU here; expected a machine with a GPU, or other --results"
        )
    kind = wanted or before or ("gpu" if gpus and _gains(request) else "cpu")
    if kind == "gpu":
        return _on_gpus(resources, ", as requested" if wanted else ", like the finished runs" if before else "")
    if not count:
        return DeviceChoice(resources, "cpu" if wanted else "cpu; this machine has no GPU")
    idle = f"{several(count, 'GPU')} {'stays' if count == 1 else 'stay'} idle"
    if wanted or before:
        return DeviceChoice(resources, f"cpu, {'as requested' if wanted else 'like the finished runs'}; {idle}")
    if not gpus:
        return DeviceChoice(resources, f"cpu; {idle}: PyTorch {installed_version('torch')} cannot use any")
    return DeviceChoice(
        resources, f"cpu; {idle}: {PAPER_NETWORK} has native kernels for CPUs; override with --device gpu"
    )


def _gains(request: Request) -> bool:
    """Return whether some of the runs are expected to be faster on a GPU."""
    configs = request.selection.configs
    if not native.available() or any(c.network != PAPER_NETWORK or c.precision != "float32" for c in configs):
        return True
    frames = [request.data.frames(key) for key in {c.data_key for c in configs if request.data_hash(c) is not None}]
    return any(it.channels * it.samples > _LARGEST_NATIVE for it in frames)


def _computed_on(store: RunStore, finished: Collection[str]) -> str | None:
    """Return the device of most finished runs, "cpu" or "gpu"; None without finished runs."""
    rows = store.rows("runs", ["device"], sorted(finished)[:_MOST_READ]) if finished else []
    counts = Counter("gpu" if str(row["device"]).startswith("cuda") else "cpu" for row in rows)
    return counts.most_common(1)[0][0] if counts else None


def _on_gpus(resources: Resources, because: str) -> DeviceChoice:
    share = resources.gpus_per_trial or 1.0
    words = f"gpu{because}; a trial takes {share:.2g} GPU"
    return DeviceChoice(replace(resources, gpus_per_trial=share), words)
