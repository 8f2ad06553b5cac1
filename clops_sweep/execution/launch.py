"""A launch: computes the unfinished runs of a request, first grids, then searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep.errors import DamagedStore, StoreError, UsageError, several, shown
from clops_sweep.execution.fit import check_fit
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.planning.changes import changes
from clops_sweep.planning.launched import remember
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import Search, State, TunedSpace, check_samplers, data_hashes
from clops_sweep.store.launch_folders import remember_folders
from clops_sweep.store.rows import failure_reason, storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import without_damage

if TYPE_CHECKING:
    import pandas as pd

    from clops_sweep.execution.display.live import Display
    from clops_sweep.execution.feeding.feed import Feed
    from clops_sweep.execution.jobs import Job, Resources
    from clops_sweep.execution.ray_pays import Rest

MakeDisplay = Callable[[], "AbstractContextManager[Display]"]
"""Creates a display, a context manager that shows progress."""

Starting = Callable[[Plan, Sequence[PlannedRun], "Resources"], None]
"""Called before Ray starts, with the plan, the runs that are about to start, and their resources."""


_ONE_AT_A_TIME = threading.Lock()
"""Held by the sweep of this process, which has one Ray and one set of signal handlers."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a launch.

    Attributes:
        state: the state of all requested runs and searches when it ended.
        store: the store; `store.read("runs")` reads the results.
        ran: whether any run was pending.
        interrupted: whether the user stopped it; the same launch continues.
        stopped: what ended it early, such as a full disk; the same launch continues once this is fixed.
        under_way: number of runs that were running when the user stopped it.
        checkpointed: number of these that continue from a checkpoint.
        changed_code: a sentence for each plug-in and encoder that changed since requested runs were computed.
    """

    state: State
    store: RunStore
    ran: bool
    interrupted: bool = False
    stopped: str | None = None
    under_way: int = 0
    checkpointed: int = 0
    changed_code: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The requested runs, with their ids and states."""
        return self.state.plan

    @property
    def searches(self) -> tuple[Search, ...]:
        """The searches, with their trials; none if it was stopped early."""
        return () if self.stopped else self.state.searches

    @property
    def tuned(self) -> tuple[TunedSpace, ...]:
        """The tuned spaces, with their choices; none if it was stopped early."""
        return () if self.stopped else self.state.tuned

    @property
    def complete(self) -> bool:
        """Whether all requested runs and trials are finished."""
        runs = not self.plan.of("failed", "pending", "waiting") and all(it.reported for it in self.tuned)
        return runs and all(search.complete for search in self.searches) and not self.stopped

    @property
    def counts(self) -> dict[str, int]:
        """Number of finished, pending and failed requested runs."""
        return {
            "finished": self.plan.count("finished"),
            "pending": self.plan.count("pending", "waiting"),
            "failed": self.plan.count("failed"),
        }

    @property
    def failures(self) -> dict[str, str]:
        """Failed runs by id, with the exception that ended them."""
        failed = [str(run.run_id) for run in self.plan.of("failed")]
        rows = self.store.rows("runs", ["run_id", "error"], failed) if failed else []
        return {row["run_id"]: failure_reason(row["error"]) for row in rows}

    @property
    def runs(self) -> pd.DataFrame:
        """The rows of `runs` of the requested runs and trials, without columns that are empty in all of them."""
        ids = {str(run.run_id) for run in self.plan.asked}
        ids = ids.union(*(search.run_ids for search in self.searches))
        return self.store.read("runs", sorted(ids)).dropna(axis=1, how="all")

    def _repr_html_(self) -> str:
        return html_table(str(self), self.failures.items())

    def __repr__(self) -> str:
        return f"<Outcome: {self}>"

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items())
        complete = [(it.space.name, several(it.count("complete"), "trial")) for it in self.searches]
        trials = [f"search {name!r}: {count} complete" for name, count in complete]
        ended = "interrupted; " if self.interrupted else f"stopped: {self.stopped}; " if self.stopped else ""
        runs = [f"{several(len(self.plan.asked), 'run')} asked for, {counts}"]
        return ended + "; ".join([*(runs if self.plan.asked or not trials else []), *trials, *self.changed_code])


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
    pending = _to_do(state.plan, retry_failed)
    frames = check_fit(state.request, state.plan, state.searches)
    changed = changes(state)
    for sentence in changed:
        warn(sentence)
    remember(state.request.selection, request.store)
    remember_folders(request.store, request.data.root)
    if not pending and all(search.complete or not (search.left or retry_failed) for search in state.searches):
        return _outcome(request, state, ran=False, changed=changed)
    from clops_sweep.execution.devices import choose

    choice = choose(state.request, resources, state.finished)
    with ExitStack() as locks:
        if state.searches:
            from clops_sweep.search.storage import only_driver

            for search in state.searches:
                locks.enter_context(only_driver(search.space, request.store.log_folder))
        rest = _rest(state, pending, choice.resources)
        _check_start(resources, imports=rest is None)
        request.store.open_for_writing()
        if pending:
            starting(state.plan, pending, choice.resources)
        from clops_sweep.execution.driver import run_feeds

        sweep = _Sweep(request, state, choice.resources, retry_failed)
        ids = [run.run_id for run in (*pending, *state.plan.of("waiting")) if run.run_id is not None]
        at_once = False
        with make_display() as display:
            display.warn(f"device: {choice.words}")
            try:
                run_feeds(partial(sweep.feeds, display), ids, frames, request.store, choice.resources, display, rest)
                state = _planned(request)
            except KeyboardInterrupt:
                at_once = True
            except (StoreError, OSError) as error:
                return _outcome(request, state, ran=True, stopped=str(error), changed=changed)
    if at_once:
        with suppress(StoreError):  # else the earlier state stays
            state = _planned(request)
    left = display.unfinished() if at_once or (display.interrupted and state.is_unfinished) else None
    return _outcome(request, state, ran=True, left=left, changed=changed)


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


class _Sweep:
    """The feeds of a launch: grids, searches, and the runs that these have chosen.

    Args:
        request: what was asked for.
        state: its state.
        resources: the resources of a job.
        retry_failed: whether to retry failed runs and trials.
    """

    def __init__(self, request: Request, state: State, resources: Resources, retry_failed: bool) -> None:
        self._request = request
        self._state = state
        self._resources = resources
        self._retry_failed = retry_failed
        self._tried: set[str | None] = set()

    def feeds(self, display: Display, log: Path) -> Generator[Feed, None, None]:
        """Yield the feeds one after another; each may depend on the results of the ones before."""
        reported: tuple[SearchSpace, ...] | None = None
        while reported != self._state.request.selection.reported:
            reported = self._state.request.selection.reported
            yield from self._grids(display, log)
            for search in self._state.searches:
                yield from self._trials(search.space, display, log)
            self._retry_failed = False
            self._state = _planned(self._request)
            remember(self._state.request.selection, self._request.store)

    def _grids(self, display: Display, log: Path) -> Iterator[Feed]:
        """Yield the runs to compute in rounds: later rounds depend on earlier ones. No run is tried twice."""
        from clops_sweep.execution.feeding.feed import GridFeed
        from clops_sweep.execution.jobs import Job

        is_first = True
        while True:
            plan = self._state.plan
            pending = [run for run in _to_do(plan, self._retry_failed) if run.run_id not in self._tried]
            if not pending:
                return
            if is_first:
                display.begin([run.config for run in (*pending, *plan.of("waiting"))], log)
                display.finished_before(partial(_results_of, self._request.store, plan))
            self._tried |= {run.run_id for run in pending}
            jobs = [Job.of(run) for run in pending]
            yield GridFeed(jobs, may_grow=self._resources.address is not None)
            self._state = _planned(self._request)
            is_first = False

    def _trials(self, space: SearchSpace, display: Display, log: Path) -> Iterator[Feed]:
        """Yield the remaining trials of a search.

        Raises:
            UsageError: its journal cannot be used.
        """
        from clops_sweep.execution.feeding.search_feed import SearchFeed
        from clops_sweep.search.study import SearchStudy

        request = self._request
        study = SearchStudy(space, request.store, data_hashes(request, space))
        if self._retry_failed:
            study.retry_failed()
        if study.left:
            runs = [space.base.replace(**it) for it in space.replicates()] * study.left
            display.begin(runs, log, f"search {space.name!r}: {several(study.left, 'trial')}, up to ")
            feed = SearchFeed(
                space,
                study,
                request.store,
                request.data_hash,
                retry_failed=self._retry_failed,
                display=display,
            )
            feed.begin()
            yield feed


def _results_of(store: RunStore, plan: Plan) -> Iterator[tuple[RunName, RunConfig, dict[str, float]]]:
    """Yield name, config and headline metrics of each run that earlier launches finished."""
    runs = {str(run.run_id): run for run in plan.of("finished")}
    metrics = {run.config.scenario: headline(run.config.scenario)[:2] for run in runs.values()}
    columns = {f"{prefix}{it}" for prefix in ("", "test_") for of in metrics.values() for it in of}
    with storing(store):
        rows = store.rows("runs", ["run_id", *columns], list(runs)) if runs else []
    for row in rows:
        run = runs[row["run_id"]]
        of_run = metrics[run.config.scenario]
        of_test = "test_" * (row[of_run[0]] is None or isnan(row[of_run[0]]))  # the data have no validation set
        yield (
            run.name,
            run.config,
            {it: nan if row[it] is None else row[it] for it in (f"{of_test}{name}" for name in of_run)},
        )


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


def _outcome(
    request: Request,
    state: State,
    *,
    ran: bool,
    left: Sequence[Job] | None = None,
    stopped: str | None = None,
    changed: Sequence[str] = (),
) -> Outcome:
    """Return the outcome; `left` are the jobs that an interrupt ended, `changed` says which code changed before."""
    jobs = list(left or ())
    checkpointed = sum(request.store.has_checkpoint(job.run_id) for job in jobs)
    return Outcome(
        state,
        request.store,
        ran,
        interrupted=left is not None,
        stopped=stopped,
        under_way=len(jobs),
        checkpointed=checkpointed,
        changed_code=tuple(changed),
    )


def _planned(request: Request) -> State:
    """Return the state of a request, with its plan.

    Raises:
        StoreError: the store cannot be read.
    """
    state = State.of(request)
    with storing(request.store):
        _ = state.plan
    return state


def _to_do(plan: Plan, retry_failed: bool) -> list[PlannedRun]:
    return plan.of("pending", "failed") if retry_failed else plan.of("pending")
