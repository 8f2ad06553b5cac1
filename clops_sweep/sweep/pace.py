"""How long runs take by what others like them have taken in this sweep. No torch, no Ray, no clock."""

from __future__ import annotations

from collections import defaultdict

from clops_sweep.planning.cost_model import Kind, Load, modelled
from clops_sweep.sweep.jobs import Job


class Pace:
    """Seconds that a unit of work (`cost_model`) has taken in runs of each kind."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Kind, float] = defaultdict(float)
        self._work: defaultdict[Kind, float] = defaultdict(float)

    def add(self, lockstep: Job, seconds: float) -> None:
        """Runs that were computed together have taken so long."""
        for kind, work in _work(lockstep).items():
            self._seconds[kind] += seconds
            self._work[kind] += work

    def seconds(self, lockstep: Job) -> float | None:
        """What such runs take together; None where none of their kind has been computed."""
        found = 0.0
        for kind, work in _work(lockstep).items():
            if not self._work[kind]:
                return None
            found += work * self._seconds[kind] / self._work[kind]
        return found


def _work(lockstep: Job) -> dict[Kind, float]:
    """The work of a lockstep's runs, which all are of one kind."""
    loads = [Load.of(config.model_dump(mode="json")) for config in lockstep.configs]
    return {loads[0].kind: sum(modelled(load.work) for load in loads)}
