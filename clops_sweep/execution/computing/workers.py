"""What computes the runs of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clops_sweep.errors import DamagedStore
from clops_sweep.execution.computing.ray_pays import Rest, why_ray
from clops_sweep.execution.jobs import Resources
from clops_sweep.planning.costs import Costs, known_costs
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.planning.state import State


@dataclass(frozen=True)
class ThisProcess:
    """This process computes all runs, one after another: `--no-ray`."""

    def __str__(self) -> str:
        return "workers: this process, as requested"


@dataclass(frozen=True)
class RayWorkers:
    """Workers of Ray compute all runs.

    Attributes:
        why: the reason, as `ray_pays.why_ray` returns it.
    """

    why: str

    def __str__(self) -> str:
        return f"workers: Ray, {self.why}"


@dataclass(frozen=True)
class ThisProcessFirst:
    """This process computes runs until Ray would end the rest sooner, then workers of Ray do; see `alone_first`.

    Attributes:
        rest: the runs to compute, and what is known of their time.
    """

    rest: Rest


Workers = ThisProcess | RayWorkers | ThisProcessFirst


def choose_workers(state: State, pending: Sequence[PlannedRun], resources: Resources) -> Workers:
    """Return what computes the runs of a launch.

    Args:
        state: the state of what was asked for.
        pending: the runs that can start.
        resources: the resources of a job, with the device chosen.
    """
    if resources.workers == "this process":
        return ThisProcess()
    why = why_ray(resources, state.configs_to_compute)
    if why is not None:
        return RayWorkers(why)
    to_come = [*pending, *state.plan.of("waiting"), *state.to_come]
    try:
        costs = known_costs(to_come, state.plan.of("finished"), state.resolved.store, "cpu")
    except DamagedStore:  # a damaged part hides finished runs from the estimate, nothing else
        costs = Costs()
    return ThisProcessFirst(Rest.of([run.config for run in to_come], costs, resources))


def check_start(resources: Resources, workers: Workers) -> None:
    """Check that Ray can start, if the launch may start it, and import it if the launch starts with it.

    Ray is imported only here, after all errors of the user have been checked for.

    Raises:
        UsageError: Ray cannot start.
    """
    from clops_sweep.execution.cluster.start_check import check_ray_can_start
    from clops_sweep.execution.ray_environment import stay_on_loopback

    if isinstance(workers, ThisProcess):
        return
    if not resources.address:
        check_ray_can_start()
        stay_on_loopback()
    if isinstance(workers, RayWorkers):
        import clops_sweep.execution.computing.on_ray  # noqa: F401
