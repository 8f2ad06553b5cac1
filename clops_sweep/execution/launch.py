"""A launch: computes the unfinished runs of a request: encoders, grids, searches, then what the searches chose.

Three kinds of runs need others first:

==========================  ==========================  =============================================================
runs                        need                        so
==========================  ==========================  =============================================================
with a trained encoder      the run that trains it      `State.of_encoders` is a request of its own, which `launch`
                                                        computes before
in an order by difficulty   runs that measure it        they are in `Plan.first`, and `SweepFeeds` computes rounds
                                                        until one adds no run
of a chosen configuration   the trials of a search      `SweepFeeds` yields searches after grids, and begins again
                                                        if one has chosen
==========================  ==========================  =============================================================
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clops_sweep.errors import DamagedStore, StoreError, UsageError, option, several, shown
from clops_sweep.execution.cluster.start_check import check_resources
from clops_sweep.execution.fit import Fit, check_fit
from clops_sweep.execution.outcome import Ended, Ending, Interrupted, NothingToDo, Outcome, Stopped
from clops_sweep.planning.changes import changes, check_computed_again
from clops_sweep.planning.declared_tables import NeededColumns, check_declared
from clops_sweep.planning.doubts import doubts
from clops_sweep.planning.launched import remember
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.launch_folders import remember_folders
from clops_sweep.store.upkeep import without_damage

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.execution.display.live import Display
    from clops_sweep.execution.jobs import Resources

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
        starting: called before the first run, if any is pending.
        warn: called with a sentence about each damaged part of the store that was set aside, about domains that are
            not used, and about code that changed since requested runs were computed.

    Raises:
        UsageError: the request, the data, a study's journal or the cluster is invalid, or another sweep runs in this
            process. Nothing has been computed.
    """
    settings = _Launch(resources, make_display, retry_failed, starting, warn)
    with _only_sweep():
        request.check_samplers()
        check_resources(resources)
        state = State.of(request)
        outcome = settings.compute_next(state)
        while outcome.part == "pretraining" and outcome.complete:
            try:
                state = state.again()
                outcome = settings.compute_next(state)
            except UsageError as error:  # such as a file that was damaged meanwhile
                return Outcome(state, Stopped(str(error)), outcome.changed_code)
        return outcome


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


def _untrained_encoders(state: State) -> State | None:
    """Return the state of the unfinished runs that become encoders and need no encoder themselves; None without any.

    The data of the runs that need them are prepared and checked first: nothing is trained for runs that cannot start.

    Raises:
        UsageError: only a shard of the runs is requested, or the data do not fit.
    """
    encoders = None
    while state.of_encoders is not None:
        _prepare_for_encoders(state)
        encoders = state.of_encoders.again()
        state = encoders
    return encoders


def _prepare_for_encoders(state: State) -> None:
    """Prepare the data of runs with untrained encoders, and check that the runs fit them.

    Raises:
        UsageError: only a shard of the runs is requested, or the data do not fit.
    """
    asked = state.asked
    selection = state.resolved.selection
    if asked.shard:
        raise UsageError(
            f"{option('shard', str(asked.shard))}: the run of encoder = {shown(selection.encoders[0])} is not "
            f"finished; expected a launch with {option('limit', 1)} before the shards, which trains it"
        )
    asked.data.prepare(config.data_key.signals for config in (*selection.configs, *selection.encoders))
    _check(state)


def _check(state: State) -> Fit:
    """Check that the runs of a request fit their data, and its studies the present edition.

    Raises:
        UsageError: runs do not fit, or a study was made on another edition; a new name would not help the former.
    """
    fit = check_fit(state)
    state.check_data_of_studies()
    return fit


def _check_shard(state: State) -> None:
    """Check that a shard depends on no run that other shards would compute, too.

    Raises:
        UsageError: a run that determines a task order by difficulty is pending.
    """
    shard = state.asked.shard
    sources = [run for run in state.plan.first if run.state == "pending"]
    if shard and sources:
        unfinished = several(len(sources), "unfinished run")
        raise UsageError(
            f"{option('shard', str(shard))}: task orders by difficulty depend on {unfinished}, which other shards "
            f"need, too; expected a launch with {option('seeds', 1)} before the shards"
        )


@dataclass(frozen=True)
class _Launch:
    """The settings of a launch; see `launch`."""

    resources: Resources
    make_display: MakeDisplay
    retry_failed: bool
    starting: Starting
    warn: Callable[[str], None]

    def compute_next(self, state: State) -> Outcome:
        """Compute the innermost encoders that are not trained; the request itself once all are."""
        encoders = _untrained_encoders(state)
        if encoders is None:
            return self._compute(state)
        return replace(self._compute(encoders), part="pretraining")

    def _compute(self, state: State) -> Outcome:
        """Compute the runs of a request whose encoders are there, then those that its searches choose."""
        state = self._prepared(state)
        _check_shard(state)
        fit = _check(state)
        check_computed_again(state)
        changed = changes(state)
        for sentence in (*doubts(state), *fit.doubts, *changed):
            self.warn(sentence)
        remember(state.resolved.selection, state.asked.store, state.resolved.data.prepared_hash)
        remember_folders(state.asked.store, state.asked.data.root)
        if self._is_done(state):
            if state.searches:
                from clops_sweep.execution.feeding.sweep_feeds import record_purposes

                record_purposes(state)
            return Outcome(state, NothingToDo(), tuple(changed))
        state, ending = self._run(state, fit.frames)
        return Outcome(state, ending, tuple(changed))

    def _prepared(self, state: State) -> State:
        """Prepare the data, set damaged Parquet parts of the store aside, and return the state."""
        asked = state.asked
        configs = state.resolved.selection.configs
        asked.store.check_writable()
        keys = list(dict.fromkeys(config.data_key for config in configs))
        is_prepared = None not in map(asked.data.data_hash, keys)
        if not is_prepared:
            check_declared(map(NeededColumns.of, configs), asked.data)
        asked.data.prepare(keys)
        if not is_prepared:
            state = state.again()
        try:
            pending = state.plan.of("pending")  # a run whose part lacks a file of another table is pending, too
        except DamagedStore:  # a part of unknown content, or one that a task order depends on
            without_damage(asked.store, None, self.warn)
            state = state.again()
            pending = state.plan.of("pending")
        stored = state.may_have_results | {str(run.run_id) for run in pending}
        return state.again() if without_damage(asked.store, stored, self.warn) else state

    def _is_done(self, state: State) -> bool:
        """Return whether no run can start and no trial is left, nor a failed one to retry."""
        if state.to_do(self.retry_failed):
            return False
        if self.retry_failed:
            return all(search.complete for search in state.searches)
        return not any(search.left for search in state.searches)

    def _run(self, state: State, frames: Mapping[DataKey, FrameSet]) -> tuple[State, Ending]:
        """Run workers until nothing is left; return the state at the end, and how it ended."""
        from clops_sweep.execution.computing.workers import check_start, choose_workers
        from clops_sweep.execution.devices import choose
        from clops_sweep.execution.driver import run_feeds
        from clops_sweep.execution.feeding.only_driver import only_driver_of_all
        from clops_sweep.execution.feeding.sweep_feeds import SweepFeeds, planned_again

        choice = choose(
            state, self.resources
        )  # `self.resources` is what was asked for, `choice.resources` with a device
        pending = state.to_do(self.retry_failed)
        store = state.asked.store
        with only_driver_of_all([search.space for search in state.searches], store):
            workers = choose_workers(state, pending, choice.resources)
            check_start(self.resources, workers)
            store.open_for_writing()
            if pending:
                self.starting(state, pending, choice.resources)
            reserved = [str(run.run_id) for run in pending]
            with self.make_display() as display:
                display.warn(f"device: {choice.words}")
                sweep = SweepFeeds(state, choice.resources, self.retry_failed, display)
                ending: Ending
                try:
                    run_feeds(sweep.feeds, reserved, frames, store, choice.resources, display, workers)
                    state = planned_again(state)
                    ending = Ended()
                except (
                    KeyboardInterrupt
                ):  # the second one; after the first, runs stop at a checkpoint, as if at the end
                    ending = Interrupted.of(display.unfinished(), store)
                except (StoreError, OSError) as error:
                    ending = Stopped(str(error))
        if isinstance(ending, Ended):
            if display.interrupted and state.is_unfinished:
                ending = Interrupted.of(display.unfinished(), store)
            return state, ending
        if isinstance(ending, Interrupted) or store.files.local:  # an object store may not answer, after long waits
            state = _now_if_readable(state)
        return state, ending


def _now_if_readable(state: State) -> State:
    """Return the state of the same request now; the given one if the store cannot be read."""
    from clops_sweep.execution.feeding.sweep_feeds import planned_again

    with suppress(StoreError):
        return planned_again(state)
    return state
