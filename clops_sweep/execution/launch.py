"""A launch: computes the unfinished runs of a request, first grids, then searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from clops_sweep.errors import DamagedStore, StoreError, UsageError, shown
from clops_sweep.execution.fit import check_fit
from clops_sweep.execution.outcome import Outcome
from clops_sweep.planning.changes import changes
from clops_sweep.planning.launched import remember
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State, check_samplers
from clops_sweep.store.launch_folders import remember_folders
from clops_sweep.store.upkeep import without_damage

if TYPE_CHECKING:
    from clops_sweep.execution.display.live import Display
    from clops_sweep.execution.jobs import Resources
    from clops_sweep.execution.ray_pays import Rest

MakeDisplay = Callable[[], "AbstractContextManager[Display]"]
"""Creates a display, a context manager that shows progress."""

Starting = Callable[[Plan, Sequence[PlannedRun], "Resources"], None]
"""Called before Ray starts, with the plan, the runs that are about to start, and their resources."""


_ONE_AT_A_TIME = threading.Lock()
"""Held by the sweep of this process, which has one Ray and one set of signal handlers."""


def launch(
    request: Request,
    resources: Resources,
    make_display: MakeDisplay,
    *,
    retry_failed: bool = False,
    starting: Starting = lambda plan, runs, resources: None,
    warn: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Compute the unfinished runs of a request, on this machine or a cluster; the tuning before the reported runs.

    Invalid requests are reported before a worker starts and before anything is computed.

    Args:
        request: what was asked for.
        resources: the resources of a job, and where it runs.
        make_display: creates the display.
        retry_failed: whether to retry failed runs and trials.
        starting: called before Ray starts, if any run is pending.
        warn: called with a sentence about each damaged part of the store that was set aside, and about code that
            changed since requested runs were computed.

    Raises:
        UsageError: the request, the data, a study's journal or the cluster is invalid, or another sweep runs in this
            process.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise UsageError(
            "another sweep runs in this process; expected one at a time: wait for its end, or start this one in a "
            "process of its own"
        )
    try:
        while True:  # runs that become encoders come first
            part, state = _first_part(request)
            outcome = _computed(part, state, resources, make_display, retry_failed, starting, warn)
            if part is request or not outcome.complete:
                return outcome
    finally:
        _ONE_AT_A_TIME.release()


def _first_part(request: Request) -> tuple[Request, State]:
    """Return the part of a request to compute next, and its state.

    It consists of runs that become encoders, which themselves need no run. Without such runs it is the request.
    """
    state = State.of(request)
    while state.pretraining is not None:
        request = _pretraining(request, state)
        state = State.of(request)
    return request, state


def _computed(
    request: Request,
    state: State,
    resources: Resources,
    make_display: MakeDisplay,
    retry_failed: bool,
    starting: Starting,
    warn: Callable[[str], None],
) -> Outcome:
    """Compute the runs of a request whose encoders are there, then those that its searches choose."""
    state = _checked(request, state, resources, warn)
    pending = state.to_do(retry_failed)
    frames = check_fit(state.request, state.plan, state.searches)
    changed = changes(state)
    for sentence in changed:
        warn(sentence)
    remember(state.request.selection, request.store)
    remember_folders(request.store, request.data.root)
    if not pending and all(search.complete or not (search.left or retry_failed) for search in state.searches):
        return Outcome.of(request, state, ran=False, changed=changed)
    from clops_sweep.execution.devices import choose

    choice = choose(state.request, resources, state.finished)
    with ExitStack() as locks:
        if state.searches:
            from clops_sweep.execution.feeding.only_driver import only_driver

            for search in state.searches:
                locks.enter_context(only_driver(search.space, request.store.log_folder))
        rest = _rest(state, pending, choice.resources)
        _check_start(resources, imports=rest is None)
        request.store.open_for_writing()
        if pending:
            starting(state.plan, pending, choice.resources)
        from clops_sweep.execution.driver import run_feeds
        from clops_sweep.execution.feeding.sweep_feeds import SweepFeeds, planned

        sweep = SweepFeeds(request, state, choice.resources, retry_failed)
        ids = [run.run_id for run in (*pending, *state.plan.of("waiting")) if run.run_id is not None]
        at_once = False
        with make_display() as display:
            display.warn(f"device: {choice.words}")
            try:
                run_feeds(partial(sweep.feeds, display), ids, frames, request.store, choice.resources, display, rest)
                state = planned(request)
            except KeyboardInterrupt:
                at_once = True
            except (StoreError, OSError) as error:
                return Outcome.of(request, state, ran=True, stopped=str(error), changed=changed)
    if at_once:
        with suppress(StoreError):  # else the earlier state stays
            state = planned(request)
    left = display.unfinished() if at_once or (display.interrupted and state.is_unfinished) else None
    return Outcome.of(request, state, ran=True, left=left, changed=changed)


def _pretraining(request: Request, state: State) -> Request:
    """Return the request of the runs that become encoders, once their data and those of the others are prepared.

    Raises:
        UsageError: only a shard of the runs is requested, or the data do not fit.
    """
    assert state.pretraining is not None
    selection = state.request.selection
    first = selection.pretraining
    if request.shard:
        raise UsageError(
            f"--shard {request.shard}: the run of encoder = {shown(first[0])} is not finished; expected a launch "
            "with --limit 1 before the shards, which trains it"
        )
    request.data.prepare(config.data_key.signals for config in (*selection.configs, *first))
    check_fit(state.request, state.plan, ())
    return replace(state.pretraining.request, store=request.store.keeping("models"))


def _checked(request: Request, state: State, resources: Resources, warn: Callable[[str], None]) -> State:
    """Check the request before anything starts, and return its state. Data are prepared, and damaged parts set aside.

    Args:
        request: what was asked for.
        state: its state.
        resources: the resources of a job.
        warn: called with a sentence about each damaged part.
    """
    selection = state.request.selection
    check_samplers(state.request)
    resources.check()
    request.store.check_writable()
    is_prepared = None not in {request.data_hash(config) for config in selection.configs}
    request.data.prepare(config.data_key for config in selection.configs)
    if not is_prepared:
        state = State.of(request)
    try:
        pending = state.plan.of("pending")  # a run whose part lacks a file of another table is pending, too
    except DamagedStore:  # a part of unknown content, or one that a task order depends on
        without_damage(request.store, None, warn)
        state = State.of(request)
        pending = state.plan.of("pending")
    stored = state.finished | {str(run.run_id) for run in pending}
    return State.of(request) if without_damage(request.store, stored, warn) else state


def _rest(state: State, pending: Sequence[PlannedRun], resources: Resources) -> Rest | None:
    """Return the runs to compute, if this process may compute them; None if only Ray or only this process may."""
    from clops_sweep.execution.ray_pays import Rest, why_ray
    from clops_sweep.planning.costs import Costs, known_costs

    if resources.no_ray or why_ray(resources) is not None:
        return None
    to_come = [*pending, *state.plan.of("waiting"), *state.to_come]
    try:
        costs = known_costs(to_come, state.plan.of("finished"), state.request.store, "cpu")
    except DamagedStore:  # a damaged part hides finished runs from the estimate, nothing else
        costs = Costs()
    return Rest.of([run.config for run in to_come], costs, resources)


def _check_start(resources: Resources, imports: bool) -> None:
    """Check that Ray can start, if the launch may start it, and import it if the launch starts with it.

    Ray is imported only here, after all errors of the user have been checked for.

    Raises:
        UsageError: Ray cannot start.
    """
    from clops_sweep.execution.ray_environment import stay_on_loopback
    from clops_sweep.execution.start_check import check_ray_can_start

    if resources.no_ray:
        return
    if not resources.address:
        check_ray_can_start()
        stay_on_loopback()
    if imports:
        import clops_sweep.execution.on_ray  # noqa: F401
