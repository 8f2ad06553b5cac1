"""A study of Optuna that a driver runs: `open_study`, `Study.ask` and `Study.tell`. Readers use `trials.read_study`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import NopPruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace, search_of
from clops_sweep.search.definition import DEFINITION, check_definition, definition
from clops_sweep.search.labels import encoded, suggested
from clops_sweep.search.pruning import goes_on
from clops_sweep.search.samplers import make_sampler, refused, sampler_maker
from clops_sweep.search.storage import DriverJournal, journal_name, open_journal, quiet, reading
from clops_sweep.search.trials import ERROR, PRUNING, REPEATS, RUN_IDS, current_trials, purpose_of
from clops_sweep.store.run_store import RunStore

_STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


def check_sampler(space: SearchSpace) -> None:
    """Check the sampler of a search with Optuna.

    Raises:
        UsageError: Optuna refuses its options.
    """
    sampler_maker(space)


def open_study(
    space: SearchSpace, store: RunStore, data_hashes: Mapping[str, str], *, retry_failed: bool = False
) -> Study:
    """Open the study of a search, or create it. One driver at a time may do this, since it writes.

    Args:
        space: the search space; the study has its name.
        store: the store, which contains the study.
        data_hashes: content hashes of the prepared data, by their names in the definition.
        retry_failed: whether to ask for failed trials again.

    Raises:
        UsageError: the journal cannot be used, or the study was created from another definition.
    """
    search = search_of(space)
    with reading(store):
        journal = open_journal(store)
        study = _loaded_or_created(space, search, journal)
        begun = len(study.get_trials(deepcopy=False))
        check_definition(space, study.user_attrs, begun > 0, data_hashes, journal_name(store))
        _define(study, space, data_hashes)
        if begun < search.n_trials:
            _enqueue_points(study, search, are_new=begun == 0)
        if retry_failed:
            _enqueue_failed(study)
    return Study(study, journal, space)


def _loaded_or_created(space: SearchSpace, search: OptunaSearch, journal: DriverJournal) -> optuna.Study:
    return optuna.create_study(
        study_name=space.name,
        storage=journal,
        directions=list(space.objectives.values()),
        sampler=make_sampler(space),
        pruner=NopPruner(),  # `Trial.prune` decides
        load_if_exists=True,
    )


def _define(study: optuna.Study, space: SearchSpace, data_hashes: Mapping[str, str]) -> None:
    """Record the definition of a study that has none yet, and what its trials are for, which may change."""
    if DEFINITION not in study.user_attrs:
        study.set_metric_names(list(space.objectives))
        study.set_user_attr(DEFINITION, definition(space, data_hashes))
    for name, value in purpose_of(space).items():
        if bool(study.user_attrs.get(name)) != value:
            study.set_user_attr(name, value)


def _enqueue_points(study: optuna.Study, search: OptunaSearch, *, are_new: bool) -> None:
    """Enqueue the points that the search names, those that are not in the study yet.

    Args:
        study: the study.
        search: the search.
        are_new: whether the study has no trial. Then points are not compared, which takes quadratic time.
    """
    for point in search.points():
        labels = {name: encoded(label) for name, label in point.items()}
        study.enqueue_trial(labels, skip_if_exists=not are_new)


def _enqueue_failed(study: optuna.Study) -> None:
    """Enqueue the parameters of failed trials again."""
    with quiet():
        for trial in current_trials(study.get_trials(deepcopy=False)):
            if trial.state == TrialState.FAIL:
                study.enqueue_trial(trial.params, user_attrs={REPEATS: trial.number})


class Trial:
    """A trial that runs.

    Drivers on two machines may run the same trial: their values are equal, and the first result counts. So what is
    recorded of a trial that another driver has ended is dropped.

    Args:
        trial: the trial in Optuna.
        search: the search.
        journal: the journal of the study.

    Attributes:
        number: its number in the study.
        labels: the value of each parameter; named variants by their name.
    """

    def __init__(self, trial: optuna.Trial, search: OptunaSearch, journal: DriverJournal) -> None:
        self._trial = trial
        self._search = search
        self._journal = journal
        self.number = trial.number
        with quiet():  # errors are the sampler's, see `Study.ask`
            self.labels: Mapping[str, Any] = {name: suggested(trial, search, name) for name in search.parameters}

    @property
    def tasks_reported(self) -> int:
        """Number of tasks at the last report, also by an earlier driver; 0 before the first."""
        return max(self._values_of_all()[self.number], default=0)

    def record_runs(self, run_ids: Sequence[str]) -> None:
        """Record the ids of its runs, also in an object store: its jobs may start."""
        self._set(RUN_IDS, list(run_ids))
        self._journal.upload()

    def record_error(self, error: str) -> None:
        """Record why it failed."""
        self._set(ERROR, error)

    def report(self, value: float, tasks: int) -> None:
        """Record the average objective after some tasks; an object store has it after `prune` or `Study.tell`."""
        with self._journal.in_use(), suppress(UpdateFinishedTrialError):
            self._trial.report(value, tasks)

    def prune(self, value: float, tasks: int) -> bool:
        """Record the average objective after the tasks of a rung, and return whether to prune the trial.

        That it is pruned is recorded first: if the driver is killed before it ends the trial, the next one does so.
        """
        pruner = self._search.pruner
        assert pruner is not None
        others = self._values_of_all()
        del others[self.number]
        on_rung = [values[tasks] for values in others.values() if tasks in values]
        is_maximized = self._trial.study.direction == StudyDirection.MAXIMIZE
        is_pruned = not goes_on(value, on_rung, pruner.reduction_factor, "maximize" if is_maximized else "minimize")
        if is_pruned:
            self._set(PRUNING, {"tasks": tasks, "value": value})
        self.report(value, tasks)
        self._journal.upload()
        return is_pruned

    def unfinished_pruning(self) -> int | None:
        """Return the tasks after which an earlier driver pruned the trial without ending it; None if none did."""
        with self._journal.in_use():
            pruning = self._trial.user_attrs.get(PRUNING)
        if pruning is None:
            return None
        tasks: int = pruning["tasks"]
        if self.tasks_reported < tasks:
            self.report(pruning["value"], tasks)
        return tasks

    def _set(self, name: str, value: Any) -> None:
        """Set an attribute of the trial in the study."""
        with self._journal.in_use(), suppress(UpdateFinishedTrialError):
            self._trial.set_user_attr(name, value)

    def _values_of_all(self) -> dict[int, Mapping[int, float]]:
        """Return the reported values of every trial of the study, by number of tasks."""
        with self._journal.in_use():
            trials = self._trial.study.get_trials(deepcopy=False)
            return {trial.number: trial.intermediate_values for trial in trials}


class Study:
    """A study that is open for the driver of its search; see `open_study`.

    Attributes:
        search: the search.
    """

    def __init__(self, study: optuna.Study, journal: DriverJournal, space: SearchSpace) -> None:
        self._study = study
        self._journal = journal
        self._space = space
        self.search = search_of(space)

    @property
    def to_ask(self) -> int:
        """Number of trials still to suggest."""
        begun = [trial for trial in self._current() if trial.state != TrialState.WAITING]
        return max(0, self.search.n_trials - len(begun))

    @property
    def left(self) -> int:
        """Number of trials that have not ended, including those still to suggest."""
        return self.to_ask + len(self._of(TrialState.RUNNING))

    @property
    def pruned_runs(self) -> list[str]:
        """The runs of pruned trials."""
        run_ids: list[str] = []
        for trial in self._of(TrialState.PRUNED):
            run_ids += trial.user_attrs.get(RUN_IDS, ())
        return run_ids

    def running(self) -> list[Trial]:
        """Return the running trials; in a study that was just opened, a dead driver left them.

        They keep their numbers and parameters, and the store has their finished runs.

        Raises:
            UsageError: the journal is damaged, or the sampler cannot suggest parameters that are not known yet.
        """
        with self._journal.in_use():
            study = self._journal.get_study_id_from_name(self._study.study_name)
            numbers = [trial.number for trial in self._of(TrialState.RUNNING)]
            ids = [self._journal.get_trial_id_from_study_id_trial_number(study, number) for number in numbers]
        return [self._suggested(partial(optuna.Trial, self._study, trial_id)) for trial_id in ids]

    def ask(self) -> Trial:
        """Return a new trial, suggested from all results so far.

        Raises:
            UsageError: the sampler cannot suggest one with its options.
        """
        return self._suggested(self._study.ask)

    def _suggested(self, trial: Callable[[], optuna.Trial]) -> Trial:
        """Return a trial with a value of each parameter.

        Raises:
            UsageError: the sampler cannot suggest them with its options.
        """
        try:
            with quiet():
                return Trial(trial(), self.search, self._journal)
        except (OSError, KeyboardInterrupt, UsageError):
            raise
        except BaseException as error:
            raise refused(self._space, error) from None

    def tell(
        self,
        trial: Trial,
        state: Literal["complete", "pruned", "failed"],
        values: Sequence[float] | None = None,
        *,
        error: str | None = None,
    ) -> bool:
        """End a trial.

        Args:
            trial: the trial.
            state: how it ended.
            values: its objectives, if it is complete.
            error: the reason, if it failed.

        Returns:
            Whether its value is better than those of all complete trials before; False with several objectives.
        """
        is_best = values is not None and self._is_best(values)
        with self._journal.in_use():
            if error is not None:
                trial.record_error(error)
            self._study.tell(trial.number, values, _STATES[state], skip_if_finished=True)
        self._journal.upload()
        return is_best

    def _is_best(self, values: Sequence[float]) -> bool:
        if len(values) > 1:
            return False
        with self._journal.in_use():
            sign = 1 if self._study.directions[0] == StudyDirection.MAXIMIZE else -1
            others = [trial.value for trial in self._of(TrialState.COMPLETE)]
        return all(other is not None and sign * values[0] > sign * other for other in others)

    def _of(self, state: TrialState) -> list[FrozenTrial]:
        return [trial for trial in self._current() if trial.state == state]

    def _current(self) -> list[FrozenTrial]:
        with self._journal.in_use():
            return current_trials(self._study.get_trials(deepcopy=False))
