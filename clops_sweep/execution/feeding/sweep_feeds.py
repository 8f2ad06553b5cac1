"""The feeds of a launch: rounds of runs, then searches, then the runs that these have chosen."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path

from clops_sweep.errors import several
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed, GridFeed
from clops_sweep.execution.feeding.only_driver import only_driver
from clops_sweep.execution.jobs import Job, Resources
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.planning.launched import remember
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.searches import data_hashes
from clops_sweep.planning.state import State
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import delete_checkpoints


class SweepFeeds:
    """The feeds of a launch: grids, searches, and the runs that these have chosen.

    Args:
        state: the state of what was asked for, at the start.
        resources: the resources of a job.
        retry_failed: whether to retry failed runs and trials.
        display: shows how runs and trials end.
    """

    def __init__(self, state: State, resources: Resources, retry_failed: bool, display: Display) -> None:
        self._state = state
        self._store = state.asked.store
        self._resources = resources
        self._retry_failed = retry_failed
        self._display = display
        self._tried: set[str | None] = set()

    def feeds(self, log: Path) -> Generator[Feed, None, None]:
        """Yield the feeds one after another; each may depend on the results of the ones before."""
        while True:
            reported = self._state.resolved.selection.reported
            yield from self._grids(log)
            for number, search in enumerate(self._state.searches, 1):
                yield from self._trials(search.space, log, later=_configs_of(self._state.to_come_after(number)))
            self._retry_failed = False
            self._state = planned_again(self._state)
            remember(self._state.resolved.selection, self._store, self._state.resolved.data.prepared_hash)
            if self._state.resolved.selection.reported == reported:  # no search has chosen anything more
                return

    def _grids(self, log: Path) -> Iterator[Feed]:
        """Yield the runs to compute in rounds: later rounds depend on earlier ones. No run is tried twice."""
        is_first = True
        while True:
            plan = self._state.plan
            pending = [run for run in self._state.to_do(self._retry_failed) if run.run_id not in self._tried]
            if not pending:
                return
            if is_first:
                later = _configs_of(self._state.to_come)
                self._display.begin(_configs_of((*pending, *plan.of("waiting"))), log, later=later)
                self._display.finished_before(partial(earlier_results, self._store, plan))
            self._tried |= {run.run_id for run in pending}
            jobs = [Job.of(run) for run in pending]
            yield GridFeed(jobs, may_grow=self._resources.address is not None)
            self._state = planned_again(self._state)
            is_first = False

    def _trials(self, space: SearchSpace, log: Path, later: Sequence[RunConfig]) -> Iterator[Feed]:
        """Yield the remaining trials of a search.

        Args:
            space: the search.
            log: the file with the output of runs and Ray.
            later: the runs that later steps of the launch may have.

        Raises:
            StoreError: its journal cannot be used.
        """
        from clops_sweep.execution.feeding.search_feed import SearchFeed
        from clops_sweep.search.study import open_study

        asked = self._state.asked
        hashes = data_hashes(asked, space)
        with storing(self._store):
            study = open_study(space, self._store, hashes, retry_failed=self._retry_failed)
            trials = study.left
        if trials:
            of_a_trial = [space.base.replace(**settings) for settings in space.replicates()]
            count = several(trials, "trial")
            self._display.begin(of_a_trial * trials, log, f"search {space.name!r}: {count}, up to ", later)
            feed = SearchFeed(
                space, study, self._store, asked.data_hash, retry_failed=self._retry_failed, display=self._display
            )
            feed.begin()
            yield feed
            with storing(self._store):
                if not study.left:  # else a trial to come may have the parameters of a pruned one
                    delete_checkpoints(self._store, study.pruned_runs)


def _configs_of(runs: Iterable[PlannedRun]) -> list[RunConfig]:
    return [run.config for run in runs]


def record_purposes(state: State) -> None:
    """Record what the trials of studies are for, if an earlier launch had them for something else.

    Raises:
        UsageError: another driver runs one of the searches.
    """
    from clops_sweep.search.study import open_study
    from clops_sweep.search.trials import purpose_of, read_studies

    recorded = {study.name: study for study in read_studies(state.resolved.store)}
    store = state.asked.store
    for search in state.searches:
        study = recorded.get(search.space.name)
        if study is None or purpose_of(search.space).items() <= vars(study).items():
            continue
        with only_driver(search.space, store):
            open_study(search.space, store, data_hashes(state.asked, search.space))


def planned_again(state: State) -> State:
    """Return the state of the same request now, with its plan.

    Raises:
        StoreError: the store cannot be read.
        UsageError: the data of a study have changed.
    """
    with storing(state.asked.store):
        now = state.again()
        now.check_data_of_studies()
        _ = now.plan
    return now


def earlier_results(store: RunStore, plan: Plan) -> Iterator[tuple[RunName, RunConfig, dict[str, float]]]:
    """Yield name, config and headline metrics of each run that earlier launches finished.

    Without a validation set, the metrics are those of the test set.
    """
    runs = {str(run.run_id): run for run in plan.of("finished")}
    if not runs:
        return
    metrics = {run.config.scenario: headline(run.config.scenario)[:2] for run in runs.values()}
    columns: set[str] = set()
    for names in metrics.values():
        columns.update(names)
        columns.update(f"test_{name}" for name in names)
    with storing(store):
        rows = store.rows("runs", ["run_id", *columns], list(runs))
    for row in rows:
        run = runs[row["run_id"]]
        names = metrics[run.config.scenario]
        of_validation = row[names[0]]
        if of_validation is None or isnan(of_validation):
            names = tuple(f"test_{name}" for name in names)
        values = {name: nan if row[name] is None else row[name] for name in names}
        yield run.name, run.config, values
