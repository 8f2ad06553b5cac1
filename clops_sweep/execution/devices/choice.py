"""Choose CPUs or GPUs for a launch and, on GPUs, the runs per lockstep and the trials per GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from clops_sweep.errors import UsageError, one_line, several
from clops_sweep.execution.devices.speed import GPU, Speed, keep_speeds, known_speeds, measure, speed_key
from clops_sweep.execution.jobs import RUNS_ON_A_GPU, Resources
from clops_sweep.machine import available_cores, gpus_of_driver, installed_version, usable_gpus
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request

if TYPE_CHECKING:
    from clops_sweep.store.run_store import RunStore

_CONTEXT = 2**30
"""GPU memory of a CUDA context, in bytes: each process takes it before it computes anything."""

_MARGIN = 1.5
"""Factor on the measured memory of a run; replayed instances and acquisition need more than a plain step."""

_MOST_READ = 200


@dataclass(frozen=True)
class Choice:
    """The device of a launch.

    Attributes:
        resources: the resources with GPUs per trial and runs per lockstep filled in.
        words: the device, the reason and the number of idle GPUs, as text.
    """

    resources: Resources
    words: str


class _Kind(NamedTuple):
    """Runs with the same network, batch size and shape of frames; `speed` is None until measured."""

    runs: int
    batch_size: int
    frame_bytes: int
    speed: Speed | None


def choose(
    asked: Request, resources: Resources, finished: Collection[str], runs: int, *, may_measure: bool = True
) -> Choice:
    """Choose between CPUs and GPUs.

    The requested device comes first, then the device of finished runs, then the faster one.

    Args:
        asked: the requested runs.
        resources: the requested resources.
        finished: ids of the finished runs of the same search spaces.
        runs: number of pending runs.
        may_measure: whether to time networks of unknown speed; `plan` does not.

    Raises:
        UsageError: the finished runs were computed on the other kind of device, or on GPUs and this machine has none.
    """
    gpus, count = usable_gpus(), gpus_of_driver()
    wanted = "gpu" if resources.gpus_per_trial else None if resources.device == "auto" else resources.device
    before = _computed_on(asked.store, finished)
    if before is not None and wanted not in (None, before):
        raise UsageError(
            f"--device {wanted}: the finished runs of this search space in {asked.store.files.shown} were computed on "
            f"{before.upper()}s; expected --device {before} or auto, or other --results"
        )
    if before == "gpu" and not (gpus or resources.is_elsewhere):
        raise UsageError(
            f"the finished runs of this search space in {asked.store.files.shown} were computed on GPUs, and PyTorch "
            f"{installed_version('torch')} cannot use a GPU here; expected a machine with a GPU, or other --results"
        )
    kind = wanted or before
    because = "as requested" if wanted else "like the finished runs"
    if kind == "cpu" and (wanted or count):
        return Choice(resources, f"cpu, {because}" + (f"; {_stay_idle(count)}" if count else ""))
    if not gpus and kind == "gpu":
        return _on_gpus(resources, [], runs, because)
    if not gpus:
        unusable = f"{_stay_idle(count)}: PyTorch {installed_version('torch')} cannot use any"
        return Choice(resources, f"cpu; {unusable if count else 'this machine has no GPU'}")
    try:
        kinds = _kinds(asked, may_measure)
    except RuntimeError as error:  # out of memory, or a GPU that this PyTorch does not support
        if kind == "gpu":
            raise UsageError(f"the GPU cannot be used: {one_line(error)}") from None
        return Choice(resources, f"cpu; {_stay_idle(count)}: not usable ({one_line(error)})")
    if kind is None:
        if not kinds or any(it.speed is None for it in kinds):
            names = ", ".join(sorted({config.network for config in asked.selection.configs}))
            return Choice(resources, f"not known yet; the launch measures what {names} gains from a GPU")
        cores = _places(resources)
        gain = _seconds(kinds, on_gpu=False) / cores / (_seconds(kinds, on_gpu=True) / min(cores, _count(resources)))
        core = several(cores, "core")
        if gain < 1:
            idle = f"{_stay_idle(count)}, {_times(1 / gain)} as slow as {core}; override with --device gpu"
            return Choice(resources, f"cpu; {idle}")
        because = f"{_times(gain)} as fast as {core}"
    return _on_gpus(resources, kinds, runs, because)


def _stay_idle(count: int) -> str:
    return f"{several(count, 'GPU')} {'stays' if count == 1 else 'stay'} idle"


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.2g} times"


def _places(resources: Resources) -> int:
    """Return how many trials fit on the cores of this machine."""
    return 1 if resources.no_ray else max(1, int(available_cores() // resources.cpus_per_trial))


def _count(resources: Resources) -> int:
    """Return how many GPUs of this machine the launch can use."""
    return 1 if resources.no_ray else len(usable_gpus())


def _computed_on(store: RunStore, finished: Collection[str]) -> str | None:
    """Return the device of most finished runs, "cpu" or "gpu"; None without finished runs."""
    rows = store.rows("runs", ["device"], sorted(finished)[:_MOST_READ]) if finished else []
    counts = Counter("gpu" if str(row["device"]).startswith(GPU) else "cpu" for row in rows)
    return counts.most_common(1)[0][0] if counts else None


def _kinds(asked: Request, may_measure: bool) -> list[_Kind]:
    """Group the requested runs by `speed_key`; runs whose data are not prepared are left out."""
    configs = [config for config in asked.selection.configs if asked.data_hash(config) is not None]
    frames = {key: asked.data.frames(key) for key in {config.data_key for config in configs}}
    names = [speed_key(config, frames[config.data_key]) for config in configs]
    counts, before = Counter(names), known_speeds(asked.data.root)
    firsts, speeds = dict(zip(reversed(names), reversed(configs), strict=True)), dict(before)
    for name, config in firsts.items():
        if may_measure and name not in speeds:
            known = config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
            speeds[name] = measure(known, frames[config.data_key], GPU)
    if speeds != before:
        keep_speeds(asked.data.root, speeds)
    return [
        _Kind(counts[name], config.batch_size, frames[config.data_key].frames.nbytes, speeds.get(name))
        for name, config in firsts.items()
    ]


def _seconds(kinds: Collection[_Kind], *, on_gpu: bool) -> float:
    """Return the seconds to train every run on one instance, one run after another."""
    of_kinds = ((it.runs / it.batch_size, it.speed) for it in kinds)
    return sum(share * (speed.gpu if on_gpu else speed.cpu) for share, speed in of_kinds if speed is not None)


def _on_gpus(resources: Resources, kinds: Collection[_Kind], runs: int, because: str) -> Choice:
    """Choose runs per lockstep and trials per GPU that fit into GPU memory and keep all GPUs busy."""
    gpus, places = usable_gpus()[: _count(resources)], _places(resources)
    speeds = [it.speed for it in kinds if it.speed is not None]
    lockstep, share = resources.lockstep or RUNS_ON_A_GPU, resources.gpus_per_trial or 1.0
    if gpus:
        on_each = -(-runs // len(gpus))
        taken = _CONTEXT + max((it.frame_bytes for it in kinds), default=0)
        of_run = max([1, *(math.ceil(_MARGIN * speed.run_bytes) for speed in speeds)])
        memory = min(gpu.memory for gpu in gpus)
        lockstep = resources.lockstep or max(1, min(RUNS_ON_A_GPU, (memory - taken) // of_run, runs // len(gpus)))
        trials = min(memory // (taken + lockstep * of_run), places // len(gpus), -(-on_each // lockstep))
        if speeds and not resources.gpus_per_trial:
            share = math.floor(10_000 / max(1, trials)) / 10_000
    words = f"gpu, {because}; a trial takes {share:.2g} GPU and up to {several(lockstep, 'run')} in lockstep"
    if gpus and (idle := len(usable_gpus()) - min(len(gpus), places, -(-runs // lockstep))):
        words += f"; {_stay_idle(idle)}"
    return Choice(replace(resources, gpus_per_trial=share, lockstep=lockstep), words)
