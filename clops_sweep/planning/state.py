"""The state of a request at one moment: runs, searches and choices, from one read of the store and its studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared.prepared_folder import register_prepared
from clops_sweep.errors import OtherData, OtherDefinition, UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.search_space import SearchSpace, TunedSpace
from clops_sweep.experiment.spaces.selection import Selection, configs_at_bounds, configs_of
from clops_sweep.experiment.spaces.tuned_tasks import check_tuning
from clops_sweep.experiment.spaces.tuning import TuneOn
from clops_sweep.planning.curriculum import orders_by_difficulty
from clops_sweep.planning.earlier_data import edition_to_read, may_be_refused, on_other_data_in_words, refusal
from clops_sweep.planning.launched import launched_spaces
from clops_sweep.planning.named_orders import with_positions
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import Search, Tuning, choices_of, search_with_study
from clops_sweep.planning.trained_encoders import request_of_encoders, with_trained_encoders
from clops_sweep.store.run_store import RunStore


@dataclass(frozen=True, eq=False)
class State:
    """The state of a request at one moment.

    Everything is read from the store as it was when `of` was called: its parts are listed once, and the journal of the
    studies is read once. Fields that need more than that are computed at their first use.

    The request has two forms:

    ==========  ================================================  =======================  ===================
    field       selection                                         store                    used
    ==========  ================================================  =======================  ===================
    `asked`     as the user wrote it                              live                     to write, and by
                                                                                           `again`
    `resolved`  trained encoders are `run:RUN_ID`, names of       as it was at the moment  to read and list
                tasks in orders are positions; `reported` has     of the state, read-only  runs
                the configurations that searches have chosen
    ==========  ================================================  =======================  ===================

    What is left, by what it counts:

    ====================  ===========================================================================================
    `to_do`               pending runs, and failed ones if they are retried: those that can start now
    `to_come`             runs that searches and choices may still request
    `to_compute`          pending and waiting runs, and those to come: for estimates
    `stored_of_trials`    number of runs of each search that the store has, if it is known
    `configs_to_compute`  configs of pending, waiting and failed runs, and those at the bounds of searches: for checks
    `checkpointed`        pending and waiting runs, and those of running trials, that continue from a checkpoint
    `is_unfinished`       whether a run is pending or waiting, a trial is left, or a choice is not made
    ====================  ===========================================================================================

    Attributes:
        asked: the request as the user wrote it, with the live store.
        resolved: the request as far as finished runs decide it, with the store at this moment.
        searches: the requested searches, with their trials.
        tuned: the tuned spaces, with their choices.
    """

    asked: Request
    resolved: Request
    searches: tuple[Search, ...]
    tuned: tuple[Tuning, ...]

    @classmethod
    def of(cls, request: Request, *, launched: bool = False) -> State:
        """Read the state of a request.

        Rows that this process has added to the store and not written yet are written first, so they count.

        Args:
            request: what was asked for.
            launched: whether a request without search-space files is for the spaces of all launches on the store.

        Raises:
            UsageError: a study's journal cannot be read, the study was created from another definition, or a config is
                an encoder elsewhere than in base or axes. A study of other data is no error: see `on_other_data`.
        """
        store = request.store.at_one_moment()
        if launched and not request.selection.files:
            spaces = launched_spaces(store, partial(register_prepared, prepared_root=request.data.root))
            request = replace(request, selection=Selection(spaces))
        return cls._of(request, store)

    def again(self) -> State:
        """Read the state of the same request now."""
        return State.of(self.asked)

    @classmethod
    def _of(cls, asked: Request, store: RunStore) -> State:
        """Return the state of a request in a store at one moment. Each step needs the ones before."""
        asked = replace(asked, read_on={}, shown={})  # the edition to read is decided anew, at the end
        # Names of tasks become positions, and encoders `run:RUN_ID`: both are part of the definition of a study.
        resolved = with_trained_encoders(with_positions(replace(asked, store=store)))
        # The studies say what their searches have tried.
        try:
            searches = tuple(search_with_study(resolved, space) for space in resolved.selection.searches)
        except OtherDefinition as problem:
            for space in resolved.selection.tuned:
                check_tuning(space, resolved.data)  # another name would not help a space that cannot be tuned so
            raise _with_seeds_of_tuning(problem, resolved.selection.tuned) from None
        # Complete searches choose the configurations that are reported, which are requested from then on.
        by_name = {search.space.name: search for search in searches}
        tuned = tuple(Tuning(space, tuple(choices_of(space, by_name))) for space in resolved.selection.tuned)
        if tuned:
            reported = [space.reported for space in tuned]
            known = tuple(space for space in reported if space is not None)
            resolved = replace(resolved, selection=replace(resolved.selection, reported=known))
        # Only now is it known whether studies were made on another edition of the data, whose runs are then shown.
        return cls(asked, edition_to_read(resolved, searches), searches, tuned)

    @cached_property
    def on_other_data(self) -> list[str]:
        """A sentence for each search space whose study was made on another edition of the data: a launch is refused.

        It says which edition is shown.
        """
        reported = {tuned.space.name: tuned.reported for tuned in self.tuned}
        return [on_other_data_in_words(name, self.resolved, reported.get(name)) for name in self._names_on_other_data]

    @cached_property
    def may_be_refused(self) -> list[str]:
        """A sentence for each search space with trials whose data changed since they were prepared."""
        changed: dict[str, list[str]] = {}
        phases = {phase.name: tuned.space.name for tuned in self.tuned for phase in tuned.space.phases}
        for search in self.searches:
            if search.record is None or not search.record.trials:
                continue
            name = phases.get(search.space.name, search.space.name)
            for dataset in dict.fromkeys(config.dataset for config in configs_at_bounds(search.space)):
                if self.resolved.data.is_outdated(dataset) and dataset not in changed.setdefault(name, []):
                    changed[name].append(dataset)
        return [may_be_refused(name, datasets) for name, datasets in changed.items() if datasets]

    @cached_property
    def _names_on_other_data(self) -> list[str]:
        """The names of the search spaces whose study was made on another edition of the data."""
        studies = {search.space.name for search in self.searches if search.record and search.record.has_other_data}
        names = []
        for tuned in self.tuned:
            phases = {phase.name for phase in tuned.space.phases}
            if phases & studies:
                names.append(tuned.space.name)
                studies -= phases
        return [*names, *sorted(studies)]

    def check_data_of_studies(self) -> None:
        """Check that a launch can continue all studies with the prepared data.

        Raises:
            OtherData: a study was made on another edition of the data.
        """
        if self._names_on_other_data:
            raise OtherData(refusal(self._names_on_other_data[0]), "data", None)

    @cached_property
    def plan(self) -> Plan:
        """The requested runs, and those that they depend on, with their states."""
        return self.resolved.plan()

    @cached_property
    def of_encoders(self) -> State | None:
        """The state of the runs that become encoders, which come first; None if all of them are finished."""
        first = self.resolved.selection.encoders
        if not first:
            return None
        return State._of(request_of_encoders(self.asked, first), self.resolved.store.keeping("models"))

    @cached_property
    def spaces(self) -> list[SearchSpace]:
        """The search spaces with known task orders by difficulty replaced by permutations."""
        selection = self.resolved.selection
        configs = [request.config for request in selection.requests]
        ordered = orders_by_difficulty(configs, self.resolved.store, self.resolved.data_hash)
        if not any(ordered.values()):  # a space that is made again validates all its configs
            return selection.spaces
        return [replace(space, resolve=_in_known_order(space, ordered)) for space in selection.spaces]

    @cached_property
    def to_come(self) -> list[PlannedRun]:
        """The runs that searches and tuning may still request, for an estimate; their parameters are not known."""
        return self.to_come_after(0)

    def to_come_after(self, searches: int) -> list[PlannedRun]:
        """Return the runs that may still be requested after the first searches, as in `to_come`."""
        runs: list[PlannedRun] = []
        for search in self.searches[searches:]:
            base = search.space.base
            configs = [base.replace(**settings) for settings in search.space.replicates()]
            runs += [PlannedRun(None, config, "pending") for config in configs] * search.left
        for tuned in self.tuned:
            if tuned.to_report is not None:
                runs += [PlannedRun(None, run.config, "pending") for run in tuned.to_report.requests()]
        return runs

    @cached_property
    def to_compute(self) -> list[PlannedRun]:
        """The pending and waiting runs, and those to come: all that is left to compute."""
        return [*self.plan.of("pending", "waiting"), *self.to_come]

    @cached_property
    def stored_of_trials(self) -> list[int]:
        """The number of runs of each search that the store has finished, such as those of a search of another name.

        It is known before the first trial of a grid that is tried in full; else 0.
        """
        return [self._stored_of(search) for search in self.searches]

    def _stored_of(self, search: Search) -> int:
        points = list(islice(search.search.points(), search.search.n_trials + 1))
        has_trials = search.record is not None and bool(search.record.trials)
        if has_trials or len(points) != search.search.n_trials:
            return 0
        statuses = self.resolved.store.statuses()
        stored = 0
        for point in points:
            for replicate in search.space.replicates():
                with suppress(UsageError):  # values that are valid, but not together
                    config = search.space.base.replace(**search.search.settings(point)).replace(**replicate)
                    content = self.resolved.data_hash(config)
                    stored += content is not None and statuses.get(config.run_id(content)) == "finished"
        return stored

    @property
    def to_compute_unless_stored(self) -> list[PlannedRun]:
        """All that is left to compute, less the runs that `stored_of_trials` counts."""
        to_come = self.to_come
        runs = self.plan.of("pending", "waiting")
        first = 0
        for search, stored in zip(self.searches, self.stored_of_trials, strict=True):
            count = search.left * len(search.space.replicates())
            runs = [*runs, *to_come[first + stored : first + count]]
            first += count
        return [*runs, *to_come[first:]]

    @property
    def configs_to_compute(self) -> list[RunConfig]:
        """The configs that a launch may compute; those at the bounds of searches and choices."""
        configs = [run.config for run in self.plan.of("pending", "waiting", "failed")]
        for tuned in self.resolved.selection.tuned:
            configs += tuned.reported_at_bounds
        for space in self._incomplete_searches:
            configs += configs_at_bounds(space)
        return configs

    @property
    def selected_on(self) -> dict[DataKey, str]:
        """The data on whose validation sets searches select, each with the subject of the first such space."""
        subjects: dict[DataKey, str] = {}
        phases = [phase for tuned in self.resolved.selection.tuned for phase in tuned.phases]
        for space in (*self._incomplete_searches, *phases):
            if any(name in METRICS for name in space.objectives):
                for config in configs_of(space):
                    subjects.setdefault(config.data_key, space.subject)
        return subjects

    @property
    def _incomplete_searches(self) -> list[SearchSpace]:
        return [search.space for search in self.searches if not search.complete]

    def to_do(self, retry_failed: bool) -> list[PlannedRun]:
        """Return the runs that can start now, with the failed ones if they are retried."""
        return self.plan.of("pending", "failed") if retry_failed else self.plan.of("pending")

    @property
    def unprepared(self) -> list[str]:
        """The data sets and encoder features that are not prepared on this machine."""
        configs = [config for search in self.searches for config in configs_at_bounds(search.space)]
        of_searches = [config.data_key.words for config in configs if self.resolved.data_hash(config) is None]
        return list(dict.fromkeys((*self.plan.unprepared, *of_searches)))

    @cached_property
    def may_have_results(self) -> set[str]:
        """The runs that may have results: finished ones, pending ones that lack only files to keep, and all of trials.

        Runs of trials count whatever their state; some may not have begun.
        """
        plan = self.plan
        run_ids = {str(run.run_id) for run in plan.of("finished")}
        run_ids |= {str(run.run_id) for run in plan.of("pending")} & self.resolved.store.without_kept()
        return run_ids.union(*(search.run_ids for search in self.searches))

    @cached_property
    def failed(self) -> set[str]:
        """The failed runs, including those of failed trials."""
        of_plan = {str(run.run_id) for run in self.plan.of("failed")}
        trials = [trial for search in self.searches if search.record for trial in search.record.of("failed")]
        of_trials = {run_id for trial in trials for run_id in trial.run_ids}
        if not of_trials:
            return of_plan
        statuses = self.resolved.store.statuses()
        return of_plan | {run_id for run_id in of_trials if statuses.get(run_id) == "failed"}

    @cached_property
    def checkpointed(self) -> set[str]:
        """The runs that are left and have a checkpoint, from which they continue; also those that are computed now.

        Pruned trials keep checkpoints, too, but continue only if their parameters are tried again: they do not count.
        """
        left = {str(run.run_id) for run in self.plan.of("pending", "waiting")}
        for search in self.searches:
            for trial in search.record.of("running") if search.record else ():
                left.update(trial.run_ids)
        return left & self.resolved.store.checkpointed() if left else set()

    @property
    def is_unfinished(self) -> bool:
        """Whether runs or trials are pending, or a choice is not made."""
        if self.plan.of("pending", "waiting") or any(search.left for search in self.searches):
            return True
        return any(not tuned.is_decided for tuned in self.tuned)


def _in_known_order(
    space: SearchSpace, ordered: Mapping[RunConfig, RunConfig | None]
) -> Callable[[RunConfig], RunConfig]:
    """Return what resolves the configs of a space: its own `resolve`, then the known orders by difficulty."""

    def resolved(config: RunConfig) -> RunConfig:
        own = config if space.resolve is None else space.resolve(config)
        return ordered.get(own) or own

    return resolved


def _with_seeds_of_tuning(problem: OtherDefinition, tuned: Sequence[TunedSpace]) -> UsageError:
    """Return the error about a study; if other seeds are reported, with the `TuneOn` that keeps the choice."""
    if problem.entry != "seeds" or len(tuned) != 1:
        return problem
    tune_on = tuned[0].search.tune_on
    if not isinstance(tune_on, TuneOn) or (tune_on.tasks, tune_on.splits, tune_on.dataset) == (None, None, None):
        return problem
    kept = replace(tune_on, seeds=tuple(problem.before))
    return UsageError(f"{problem}; or, to keep the choice and report other seeds, give it tune_on={kept}")
