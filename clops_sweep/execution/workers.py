"""What computes the runs of a launch."""

from __future__ import annotations

from dataclasses import dataclass

from clops_sweep.execution.ray_pays import Rest


@dataclass(frozen=True)
class ThisProcess:
    """This process computes all runs, one after another: `--no-ray`."""


@dataclass(frozen=True)
class RayWorkers:
    """Workers of Ray compute all runs, for the reason that `ray_pays.why_ray` returns."""


@dataclass(frozen=True)
class ThisProcessFirst:
    """This process computes runs until Ray would end the rest sooner, then workers of Ray do.

    Attributes:
        rest: the runs to compute, and what is known of their time.
    """

    rest: Rest


Workers = ThisProcess | RayWorkers | ThisProcessFirst
