"""A launch: computes the unfinished runs of a request, first grids, then searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep.errors import DamagedStore, StoreError, UsageError, several
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.search.choosing import Tuned, tuned, with_reported
from clops_sweep.search.fit import check_fit, fitting_frames
from clops_sweep.search.standing import (
    Standing,
    check_samplers,
    data_hashes,
    finished_runs,
    runs_to_come,
    standings,
)
from clops_sweep.store.rows import failure_reason, storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import without_damage

if TYPE_CHECKING:
    import pandas as pd

    from clops_sweep.execution.display.live import Display
    from clops_sweep.execution.feeding.feed import Feed
    from clops_sweep.execution.feeding.retries import Retries
    from clops_sweep.execution.jobs import Job, Resources

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
        plan: the requested runs, with their ids and states.
        searches: the searches, with their trials.
        store: the store; `store.read("runs")` reads the results.
        ran: whether any run was pending.
        interrupted: whether the user stopped it; the same launch continues.
        stopped: what ended it early, such as a full disk; the same launch continues once this is fixed.
        under_way: number of runs that were running when the user stopped it.
        checkpointed: number of these that continue from a checkpoint.
        tuned: the tuned spaces, with their choices.
    """

    plan: Plan
    searches: tuple[Standing, ...]
    store: RunStore
    ran: bool
    interrupted: bool = False
    stopped: str | None = None
    under_way: int = 0
    checkpointed: int = 0
    tuned: tuple[Tuned, ...] = ()

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
        records = [it.record for it in self.searches if it.record is not None]
        ids = ids.union(*(trial.run_ids for record in records for trial in record.trials))
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
        return ended + "; ".join([*(runs if self.plan.asked or not trials else []), *trials])


def launch(
    asked: Request,
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
        asked: the request.
        resources: the resources of a job, and where it runs.
        make_display: creates a display, for the grids and for each search.
        retry_failed: whether to retry failed runs and trials.
        starting: called before Ray starts, if any run is pending.
        warn: called with a sentence about each damaged part of the store that was set aside.

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
        return _launch(asked, resources, make_display, retry_failed, starting, warn)
    finally:
        _ONE_AT_A_TIME.release()


def _launch(
    asked: Request,
    resources: Resources,
    make_display: MakeDisplay,
    retry_failed: bool,
    starting: Starting,
    warn: Callable[[str], None],
) -> Outcome:
    """Compute the unfinished runs of a request, and then those that its searches have chosen."""
    once = partial(
        _launch_once,
        resources=resources,
        make_display=make_display,
        retry_failed=retry_failed,
        starting=starting,
        warn=warn,
    )
    asked, ran = with_reported(asked), False
    while True:
        outcome = once(asked)
        outcome = replace(outcome, ran=ran or outcome.ran)
        chosen = asked if outcome.interrupted or outcome.stopped else with_reported(asked)
        if chosen.selection.reported == asked.selection.reported:
            return outcome
        asked, ran = chosen, outcome.ran


def _launch_once(
    asked: Request,
    *,
    resources: Resources,
    make_display: MakeDisplay,
    retry_failed: bool,
    starting: Starting,
    warn: Callable[[str], None],
) -> Outcome:
    """Compute the runs that are known by now: first those of grids, then those of searches."""
    _check(asked, resources)
    plan = _plan_without_damage(asked, warn)
    pending, ran = _to_do(plan, retry_failed), False
    check_fit(asked, plan)
    if pending or not all(it.complete for it in standings(asked)):
        from clops_sweep.execution.devices import choose

        count = len(pending) + sum(1 for _ in runs_to_come(asked))
        choice = choose(asked, resources, finished_runs(asked, plan), max(1, count))
        resources, make_display = choice.resources, partial(_saying, [f"device: {choice.words}"], make_display)
    if pending:
        frames = fitting_frames(asked, [run.config for run in pending])
        _check_start(resources)
        asked.store.open_for_writing()
        starting(plan, pending, resources)
        from clops_sweep.execution.driver import run_sweep

        rounds, runs = _rounds(asked, pending, retry_failed), [*pending, *plan.of("waiting")]
        at_once = False
        with make_display() as display:
            try:
                display.finished_before(partial(_results_of, asked.store, plan))
                run_sweep(rounds, runs, frames, asked.store, resources, display)
                plan = _plan(asked)
            except KeyboardInterrupt:
                at_once = True
            except (StoreError, OSError) as error:
                return _outcome(asked, plan, ran=True, stopped=str(error))
        ran = True
        if at_once:
            with suppress(StoreError):  # else the earlier plan stays
                plan = _plan(asked)
        unfinished = plan.of("pending", "waiting") or not all(it.complete for it in standings(asked))
        unfinished = unfinished or len(asked.selection.reported) < len(asked.selection.tuned)
        if at_once or (display.interrupted and unfinished):
            return _outcome(asked, plan, ran=True, left=display.unfinished())
    for space in asked.selection.searches:
        try:
            searched = _search(asked, space, resources, make_display, retry_failed=retry_failed)
        except (StoreError, OSError) as error:
            return _outcome(asked, plan, ran=True, stopped=str(error))
        if not isinstance(searched, bool):
            return _outcome(asked, plan, ran=True, left=searched)
        ran = ran or searched
    return _outcome(asked, plan, ran=ran)


@contextmanager
def _saying(lines: list[str], make_display: MakeDisplay) -> Iterator[Display]:
    """Enter a display; the first one prints the lines."""
    with make_display() as display:
        while lines:
            display.warn(lines.pop())
        yield display


def _results_of(store: RunStore, plan: Plan) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield name and headline metrics of each run that earlier launches finished."""
    runs = {str(run.run_id): run for run in plan.of("finished")}
    metrics = {run.config.scenario: headline(run.config.scenario)[:2] for run in runs.values()}
    columns = {f"{prefix}{it}" for prefix in ("", "test_") for of in metrics.values() for it in of}
    with storing(store):
        rows = store.rows("runs", ["run_id", *columns], list(runs)) if runs else []
    for row in rows:
        run = runs[row["run_id"]]
        of_run = metrics[run.config.scenario]
        of_test = "test_" * (row[of_run[0]] is None or isnan(row[of_run[0]]))  # the data have no validation set
        yield run.name, {it: nan if row[it] is None else row[it] for it in (f"{of_test}{name}" for name in of_run)}


def _check(asked: Request, resources: Resources) -> None:
    """Check the request before anything starts. Data are prepared; the store is not written to."""
    configs = asked.selection.configs
    check_samplers(asked)
    resources.check()
    asked.store.check_writable()
    asked.data.prepare(config.data_key for config in configs)
    standings(asked)


def _check_start(resources: Resources) -> None:
    """Check that Ray can start, if the launch starts it, and import it.

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
    import clops_sweep.execution.on_ray  # noqa: F401


def _outcome(
    asked: Request, plan: Plan, *, ran: bool, left: Sequence[Job] | None = None, stopped: str | None = None
) -> Outcome:
    """Return the outcome; `left` are the jobs that an interrupt ended."""
    found = () if stopped else tuple(standings(asked))
    choices = () if stopped or asked.shard else tuple(tuned(asked))
    jobs = list(left or ())
    kept = [asked.store.has_checkpoint(job.run_ids) for job in jobs]
    runs = [len(job.run_ids) for job in jobs]
    checkpointed = sum(count for count, has in zip(runs, kept, strict=True) if has)
    return Outcome(plan, found, asked.store, ran, left is not None, stopped, sum(runs), checkpointed, choices)


def _search(
    asked: Request, space: SearchSpace, resources: Resources, make_display: MakeDisplay, *, retry_failed: bool
) -> bool | list[Job]:
    """Run the remaining trials of a search.

    Returns:
        Whether anything ran, and the jobs that were running if the user interrupted it.

    Raises:
        UsageError: another driver is running it, or its journal cannot be used.
        StoreError: results or trials can no longer be written.
    """
    from clops_sweep.search.storage import only_driver
    from clops_sweep.search.study import SearchStudy

    with only_driver(space, asked.store.log_folder):
        study = SearchStudy(space, asked.store, data_hashes(asked, space))
        if retry_failed:
            study.retry_failed()
        if not study.left:
            return False
        frames = fitting_frames(asked, configs_at_bounds(space))
        _check_start(resources)
        asked.store.open_for_writing()
        from clops_sweep.execution.driver import run_feeds
        from clops_sweep.execution.jobs import make_jobs
        from clops_sweep.search.feed import SearchFeed

        with make_display() as display:

            def feeds(retries: Retries, log: Path) -> Generator[Feed, None, None]:
                runs = [space.base.replace(**it) for it in space.replicates()] * study.left
                display.begin(runs, log, f"search {space.name!r}: {several(study.left, 'trial')}, up to ")
                jobs = partial(make_jobs, runs_in_lockstep=resources.runs_in_lockstep)
                feed = SearchFeed(
                    space,
                    study,
                    asked.store,
                    asked.data_hash,
                    jobs,
                    retries,
                    retry_failed=retry_failed,
                    display=display,
                )
                feed.begin()
                yield feed

            try:
                run_feeds(feeds, (), frames, asked.store, resources, display)
            except KeyboardInterrupt:
                return display.unfinished()
        return display.unfinished() if display.interrupted else True


def _plan(asked: Request) -> Plan:
    with storing(asked.store):
        return asked.plan()


def _plan_without_damage(asked: Request, warn: Callable[[str], None]) -> Plan:
    """Return the plan, after setting aside damaged parts of its runs."""
    try:
        plan = asked.plan()
    except DamagedStore:  # a part of unknown content, or one that a task order depends on
        without_damage(asked.store, None, warn)
        plan = asked.plan()
    return asked.plan() if without_damage(asked.store, finished_runs(asked, plan), warn) else plan


def _to_do(plan: Plan, retry_failed: bool) -> list[PlannedRun]:
    return plan.of("pending", "failed") if retry_failed else plan.of("pending")


def _rounds(asked: Request, pending: list[PlannedRun], retry_failed: bool) -> Iterator[list[PlannedRun]]:
    """Yield the runs to compute in rounds: later rounds depend on earlier ones. No run is tried twice."""
    tried: set[str | None] = set()
    while pending:
        yield pending
        tried |= {run.run_id for run in pending}
        with storing(asked.store):
            pending = [run for run in _to_do(asked.plan(), retry_failed) if run.run_id not in tried]
