"""A launch: computes the unfinished runs of a request: encoders, grids, searches, then what the searches chose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from clops_sweep.errors import DamagedStore, StoreError, UsageError, option, shown
from clops_sweep.execution.fit import check_fit
from clops_sweep.execution.outcome import Outcome
from clops_sweep.planning.changes import changes
from clops_sweep.planning.doubts import doubts
from clops_sweep.planning.launched import remember
from clops_sweep.planning.plan import PlannedRun
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

Starting = Callable[[State, Sequence[PlannedRun], "Resources"], None]
"""Called before Ray starts, with the state, the runs that are about to start, and their resources."""


_ONE_AT_A_TIME = threading.Lock()
"""Held by the sweep of this process, which has one Ray and one set of signal handlers."""


def launch(
    request: Request,
    resources: Resources,
    make_display: MakeDisplay,
    *,
    retry_failed: bool = False,
    starting: Starting = lambda state, runs, resources: None,
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
        warn: called with a sentence about each damaged part of the store that was set aside, about domains that are
            not used, and about code that changed since requested runs were computed.

    Raises:
        UsageError: the request, the data, a study's journal or the cluster is invalid, or another sweep runs in this
            process.
    """
    with _only_sweep():
        state = State.of(request)
        while True:  # runs that become encoders come first
            part = _first_part(state)
            outcome = _computed(part, resources, make_display, retry_failed, starting, warn)
            if part is state or not outcome.complete:
                return outcome
            state = state.again()


@contextmanager
def _only_sweep() -> Iterator[None]:
    """Run the only sweep of this process in the block.

    Raises:
        UsageError: another sweep runs in this process.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise UsageError(
            "another sweep runs in this process; expected one at a time: wait for its end, or start this one in a "
            "process of its own"
        )
    try:
        yield
    finally:
        _ONE_AT_A_TIME.release()


def _first_part(state: State) -> State:
    """Return the state of the part of a request to compute next, once the data of the rest are prepared and fit.

    It consists of runs that become encoders, which themselves need no run. Without such runs it is the request.

    Raises:
        UsageError: only a shard of the runs is requested, or the data do not fit.
    """
    while state.pretraining is not None:
        asked, selection = state.asked, state.request.selection
        first = selection.pretraining
        if asked.shard:
            raise UsageError(
                f"{option('shard', str(asked.shard))}: the run of encoder = {shown(first[0])} is not finished; "
                f"expected a launch with {option('limit', 1)} before the shards, which trains it"
            )
        asked.data.prepare(config.data_key.signals for config in (*selection.configs, *first))
        check_fit(state)
        state = state.pretraining.again()
    return state


def _computed(
    state: State,
    resources: Resources,
    make_display: MakeDisplay,
    retry_failed: bool,
    starting: Starting,
    warn: Callable[[str], None],
) -> Outcome:
    """Compute the runs of a request whose encoders are there, then those that its searches choose."""
    state = _checked(state, resources, warn)
    frames = check_fit(state)
    changed = changes(state)
    for sentence in (*doubts(state), *changed):
        warn(sentence)
    store = state.asked.store
    remember(state.request.selection, store)
    remember_folders(store, state.asked.data.root)
    pending = state.to_do(retry_failed)
    if not pending and all(search.complete or not (search.left or retry_failed) for search in state.searches):
        return Outcome.of(state, ran=False, changed=changed)
    from clops_sweep.execution.devices import choose

    choice = choose(state, resources)
    with ExitStack() as locks:
        if state.searches:
            from clops_sweep.execution.feeding.only_driver import only_driver

            for search in state.searches:
                locks.enter_context(only_driver(search.space, store))
        rest = _rest(state, pending, choice.resources)
        _check_start(resources, imports=rest is None)
        store.open_for_writing()
        if pending:
            starting(state, pending, choice.resources)
        from clops_sweep.execution.driver import run_feeds
        from clops_sweep.execution.feeding.sweep_feeds import SweepFeeds, planned_again

        ids = [run.run_id for run in pending if run.run_id is not None]
        at_once = False
        with make_display() as display:
            display.warn(f"device: {choice.words}")
            sweep = SweepFeeds(state, choice.resources, retry_failed, display)
            try:
                run_feeds(sweep.feeds, ids, frames, store, choice.resources, display, rest)
                state = planned_again(state)
            except KeyboardInterrupt:
                at_once = True
            except (StoreError, OSError) as error:
                return Outcome.of(state, ran=True, stopped=str(error), changed=changed)
    if at_once:
        with suppress(StoreError):  # else the earlier state stays
            state = planned_again(state)
    left = display.unfinished() if at_once or (display.interrupted and state.is_unfinished) else None
    return Outcome.of(state, ran=True, left=left, changed=changed)


def _checked(state: State, resources: Resources, warn: Callable[[str], None]) -> State:
    """Check the request before anything starts, and return its state. Data are prepared, and damaged parts set aside.

    Args:
        state: the state of the request.
        resources: the resources of a job.
        warn: called with a sentence about each damaged part.
    """
    asked = state.asked
    configs = state.request.selection.configs
    check_samplers(state.request)
    resources.check()
    asked.store.check_writable()
    is_prepared = None not in {asked.data_hash(config) for config in configs}
    asked.data.prepare(config.data_key for config in configs)
    if not is_prepared:
        state = state.again()
    try:
        pending = state.plan.of("pending")  # a run whose part lacks a file of another table is pending, too
    except DamagedStore:  # a part of unknown content, or one that a task order depends on
        without_damage(asked.store, None, warn)
        state = state.again()
        pending = state.plan.of("pending")
    stored = state.finished | {str(run.run_id) for run in pending}
    return state.again() if without_damage(asked.store, stored, warn) else state


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
