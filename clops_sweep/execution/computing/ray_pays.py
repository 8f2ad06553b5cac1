"""Whether starting Ray pays, or this process computes the runs sooner. Imports neither torch nor Ray."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from clops_sweep.errors import option, several
from clops_sweep.execution.cluster.start_check import SECONDS_OF_RAY
from clops_sweep.execution.jobs import Job, LeftOut, Resources, without_ray
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import REGISTRIES
from clops_sweep.machine import available_cores
from clops_sweep.planning.costs import Costs, Kind, kind_of

SECONDS_OF_WORKERS = 4.0
"""Seconds that workers take for their imports on an idle machine."""

SECONDS_TO_START = SECONDS_OF_RAY + SECONDS_OF_WORKERS
"""Seconds from the decision for Ray to the first epoch of its workers on an idle machine.

With five processes a core, 45 were measured; see `Rest.slowed`.
"""

SECONDS_TO_GAIN = 5.0
"""Least seconds that Ray must save: its start may take longer than expected."""

SHARE_TO_GAIN = 0.1
"""Least share of the time in this process that Ray must save."""

_MOST_SLOWED = 4.0


def why_ray(resources: Resources, configs: Iterable[RunConfig]) -> str | None:
    """Return why a launch needs Ray however short its runs are, as in "workers: Ray, as requested".

    None if this process may compute them. It may not compute custom or third-party plug-ins: a crash in their native
    code would end the process that writes the results, and only Ray's workers can be replaced.

    Args:
        resources: the resources of a trial, with the device chosen.
        configs: the configs that the launch may compute; a plug-in that none of them uses does not matter.
    """
    if resources.workers == "ray":
        return "as requested"
    if resources.is_elsewhere:
        return "because a cluster is given"
    if resources.gpus_per_trial:
        return "because it shares out the GPUs"
    if resources.epoch_timeout is not None:
        return f"because {option('epoch_timeout')} ends a worker"
    if resources.nice:
        return f"because {option('nice')} is for its workers"
    if resources.observe:
        return "because observers follow its workers"
    if added := _added_plugin(configs):
        kind, name = added
        return (
            f"because {kind} {name!r} is not built in, and a crash in its code would end this process; "
            f"{without_ray()} computes here all the same"
        )
    return None


def _added_plugin(configs: Iterable[RunConfig]) -> tuple[str, str] | None:
    """Return kind and name of the first plug-in that is not built in and that a run uses; None without one."""
    added = {field: registry for field, registry in REGISTRIES.items() if registry.added}
    if not added:
        return None
    for config in configs:
        for field, registry in added.items():
            name = config.get(field)
            if name in registry.added and json.loads(config.identity).get(field) == name:
                return registry.kind, name
    return None


class Rest:
    """The runs of a launch that have not ended, and the expected time to compute them here or with Ray.

    A run is expected to take the mean of its kind, or of all kinds if no run of its kind has finished. A run that
    pauses for pruning is not over: its parts are subtracted, and until a run has finished, they tell how long one
    takes.

    Args:
        configs: the configs of the runs.
        costs: the seconds of finished runs.
        places: number of runs that Ray would compute at once.
    """

    def __init__(self, configs: Iterable[RunConfig], costs: Costs, places: int) -> None:
        self._unfinished = Counter(kind_of(config).of_any_options for config in configs)
        self._costs, self._places = costs, places
        self._guesses = Costs()
        """What whole runs would take, of which a part was computed."""
        self._paused: dict[str, _PausedRun] = {}
        self._wall = self._cpu = 0.0

    @classmethod
    def of(cls, configs: Iterable[RunConfig], costs: Costs, resources: Resources) -> Rest:
        """Return the rest of a launch on this machine."""
        return cls(configs, costs, max(1, int(available_cores() / resources.cpus_per_trial)))

    @property
    def known(self) -> bool:
        """Whether the time of any run is known, or can be guessed from a part of it."""
        return bool(self._mean(None))

    @property
    def slowed(self) -> float:
        """How many times longer the runs of this process took than their CPU time: Ray starts as much later."""
        return min(max(self._wall / self._cpu, 1.0), _MOST_SLOWED) if self._cpu else 1.0

    def computed(self, wall: float, cpu: float) -> None:
        """Record wall-clock time and CPU time of a run in this process, in seconds."""
        self._wall += wall
        self._cpu += cpu

    def ended(self, job: Job, seconds: float, whole: float | None = None) -> None:
        """Record the end of a job's run.

        Args:
            job: the job.
            seconds: the seconds of its last part.
            whole: the seconds of the whole run, if it was computed without a pause.
        """
        if whole is None:
            before = self._paused.get(job.run_id)
            whole = seconds if before is None else before.seconds + seconds
        self._costs.add(kind_of(job.config), whole)
        self._subtract(job.run_id, job.config)

    def paused(self, job: Job, seconds: float, share: float) -> None:
        """Record the end of a part of a job's run.

        Args:
            job: the job.
            seconds: the seconds of this part.
            share: the share of the run that has been computed.
        """
        before = self._paused.get(job.run_id, _PausedRun(kind_of(job.config), 0.0, 0.0))
        if share > before.share:
            self._guesses.add(before.kind, seconds / (share - before.share))
        self._paused[job.run_id] = _PausedRun(before.kind, before.seconds + seconds, share)

    def left_out(self, run: LeftOut) -> None:
        """Record that a run is not computed any further."""
        self._subtract(run.run_id, run.config)

    def _subtract(self, run_id: str | None, config: RunConfig) -> None:
        """Subtract a run; that of a trial counts for its search, whose runs to come have the kind of its base."""
        if run_id is not None:
            self._paused.pop(run_id, None)
        kind = kind_of(config).of_any_options
        if not self._unfinished[kind]:
            kind = next((other for other, runs in self._unfinished.items() if runs), kind)
        self._unfinished[kind] = max(0, self._unfinished[kind] - 1)

    def seconds(self, running: Job | None = None, so_far: float = 0.0) -> tuple[float, float]:
        """Return the expected seconds of the rest in this process, and with Ray.

        Args:
            running: a job that is being computed here. Runs of its kind take at least as long as it has taken.
            so_far: its seconds so far.
        """
        kind = None if running is None else kind_of(running.config).of_any_options
        here, longest, count = -so_far, 0.0, 0
        for of_kind, runs in self._unfinished.items():
            if runs:
                seconds = self._mean(of_kind)
                if of_kind == kind:
                    seconds = max(seconds, so_far)
                here += runs * seconds
                longest = max(longest, seconds)
                count += runs
        for run in self._paused.values():
            here -= run.share * self._mean(run.kind.of_any_options)
        here = max(here, 0.0)
        at_once = max(1, min(self._places, count))
        return here, SECONDS_TO_START * self.slowed + max(here / at_once, min(longest, here))

    def ray_pays(self, running: Job | None = None, so_far: float = 0.0) -> bool:
        """Return whether the rest is expected to end so much sooner with Ray that starting it is worth it."""
        here, with_ray = self.seconds(running, so_far)
        return here - with_ray > max(SECONDS_TO_GAIN, SHARE_TO_GAIN * here)

    def in_words(self, running: Job | None = None, so_far: float = 0.0) -> str:
        """Return the choice between this process and Ray, with its reason."""
        here, with_ray = self.seconds(running, so_far)
        runs = several(self._unfinished.total(), "run")
        if self.ray_pays(running, so_far):
            return f"workers: Ray, which computes {runs} in about {with_ray:.0f} s instead of {here:.0f} s without it"
        return (
            f"workers: this process, which computes {runs} in about {max(here, 1):.0f} s; with Ray, which starts "
            f"first, it would be {with_ray:.0f} s"
        )

    def _mean(self, kind: Kind | None) -> float:
        """Return the expected seconds of a run of a kind, or of any kind for None; 0 if nothing is known."""
        for of in (kind, None):
            for costs in (self._costs, self._guesses):
                mean = costs.seconds(of)
                if mean is not None:
                    return mean
        return 0.0


class _PausedRun(NamedTuple):
    """A run that was computed in part; `share` is the computed share of it."""

    kind: Kind
    seconds: float
    share: float
