"""Which kind of device a launch computes on and why; on GPUs, how many runs go into a lockstep and onto a GPU."""

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
"""GPU memory that a process takes before it computes anything, in bytes."""

_MARGIN = 1.5
"""Replayed instances and acquisition take memory beside the training step that was measured."""

_MOST_READ = 200


@dataclass(frozen=True)
class Choice:
    """What a launch computes on.

    Attributes:
        resources: with the share of a GPU and the lockstep.
        words: what it is and why, and which GPUs stay idle.
    """

    resources: Resources
    words: str


class _Kind(NamedTuple):
    """Runs whose networks are equally fast: how many there are; their speed is None before it was measured."""

    runs: int
    batch_size: int
    frame_bytes: int
    speed: Speed | None


def choose(
    asked: Request, resources: Resources, finished: Collection[str], runs: int, *, may_measure: bool = True
) -> Choice:
    """Choose between CPUs and GPUs: what is asked for, else as finished runs, else what takes less time.

    Args:
        asked: the runs.
        resources: as they are asked for.
        finished: ids of the finished runs of the same search spaces.
        runs: how many are about to run.
        may_measure: whether networks of unknown speed are timed; `plan` only looks at what is known.

    Raises:
        UsageError: the finished runs were computed on the other kind of device, or there is no GPU to go on with.
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
            f"{installed_version('torch')} can use none here; expected a machine with a GPU, or other --results"
        )
    kind = wanted or before
    because = "as asked for" if wanted else "as for the finished runs"
    if kind == "cpu" and (wanted or count):
        return Choice(resources, f"cpu, {because}" + (f"; {_stay_idle(count)}" if count else ""))
    if not gpus and kind == "gpu":
        return _on_gpus(resources, [], runs, because)
    if not gpus:
        unusable = f"{_stay_idle(count)}: PyTorch {installed_version('torch')} can use none"
        return Choice(resources, f"cpu; {unusable if count else 'this machine has no GPU'}")
    try:
        kinds = _kinds(asked, may_measure)
    except RuntimeError as error:  # others hold its memory, or this PyTorch has no code for it
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
    """Return how many trials the cores of this machine hold."""
    return 1 if resources.no_ray else max(1, int(available_cores() // resources.cpus_per_trial))


def _count(resources: Resources) -> int:
    """Return how many GPUs of this machine the launch can use."""
    return 1 if resources.no_ray else len(usable_gpus())


def _computed_on(store: RunStore, finished: Collection[str]) -> str | None:
    """Return what computed most finished runs: cpu or gpu, or None without any."""
    rows = store.rows("runs", ["device"], sorted(finished)[:_MOST_READ]) if finished else []
    counts = Counter("gpu" if str(row["device"]).startswith(GPU) else "cpu" for row in rows)
    return counts.most_common(1)[0][0] if counts else None


def _kinds(asked: Request, may_measure: bool) -> list[_Kind]:
    """Return the runs asked for by network, batch size and shape of frames, as far as their data are prepared."""
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
    """Return the seconds that all runs take for an instance each, one run after another."""
    of_kinds = ((it.runs / it.batch_size, it.speed) for it in kinds)
    return sum(share * (speed.gpu if on_gpu else speed.cpu) for share, speed in of_kinds if speed is not None)


def _on_gpus(resources: Resources, kinds: Collection[_Kind], runs: int, because: str) -> Choice:
    """Fit locksteps and trials into the memory of a GPU, so that all GPUs have something to do."""
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
