"""The study of a search: Optuna's persistent record of its trials."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.pruners import NopPruner, SuccessiveHalvingPruner
from optuna.trial import FrozenTrial, TrialState

from clops_sweep.errors import DamagedStore, UsageError, several
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.fields import BEFORE
from clops_sweep.experiment.spaces.optuna_search import Direction, OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.search.records import StudyRecord, TrialRecord
from clops_sweep.search.records import TrialState as State
from clops_sweep.search.samplers import make_sampler, refused
from clops_sweep.search.storage import existing_journal, open_journal, place, quiet, reading, upload
from clops_sweep.store.run_store import RunStore

DEFINITION, RUN_IDS, ERROR, REPEATS = "definition", "run_ids", "error", "repeats"
IS_PHASE = "is_phase"
"""Attributes of studies and trials; optuna-dashboard also shows them."""

_STATES: Mapping[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


class OpenTrial:
    """A running trial and its parameters."""

    def __init__(self, trial: optuna.Trial, search: OptunaSearch, store: RunStore) -> None:
        self._trial, self._store = trial, store
        with quiet():
            self.labels = {name: _suggest(trial, search, name) for name in search.parameters}

    @property
    def number(self) -> int:
        """Number of the trial in the study."""
        return self._trial.number

    @property
    def tasks_reported(self) -> int:
        """Number of tasks at the last report, also by an earlier driver; 0 before the first."""
        with quiet():
            return max(self._trial.study.get_trials(deepcopy=False)[self.number].intermediate_values, default=0)

    def record_runs(self, run_ids: Sequence[str]) -> None:
        """Record the ids of its runs."""
        with quiet():
            self._trial.set_user_attr(RUN_IDS, list(run_ids))

    def falls_behind(self, tasks: int, value: float) -> bool:
        """Report the average objective after some tasks, and return whether to prune the trial."""
        with quiet():
            self._trial.report(value, tasks)
            return self._trial.should_prune()

    def complete(self, values: Sequence[float]) -> None:
        """Set the values of the trial."""
        self._tell(TrialState.COMPLETE, values)

    def prune(self) -> None:
        """Prune the trial."""
        self._tell(TrialState.PRUNED)

    def fail(self, error: str) -> None:
        """Mark the trial as failed, with the reason."""
        with quiet():
            self._trial.set_user_attr(ERROR, error)
        self._tell(TrialState.FAIL)

    def _tell(self, state: TrialState, values: Sequence[float] | None = None) -> None:
        with quiet():
            # Drivers on two machines may run the same trial: their values are equal, and the first result counts.
            self._trial.study.tell(self._trial, values, state, skip_if_finished=True)
        upload(self._store)


class SearchStudy:
    """The study of a search, opened by the one driver that runs it.

    Running trials in the study were left by a dead driver. They are continued (`left_under_way`) with the same numbers
    and parameters, and their finished runs are in the store.

    Args:
        space: the search space; the study has its name.
        store: the store, which contains the study.
        data_hashes: content hashes of the prepared data, by data set and normalisation.

    Raises:
        UsageError: the journal cannot be used, or the study was created from another definition.
    """

    def __init__(self, space: SearchSpace, store: RunStore, data_hashes: Mapping[str, str]) -> None:
        search = _search(space)
        self._search, self._store = search, store
        pruner = search.pruner
        with reading(store):
            self._storage = open_journal(store)
            self._study = optuna.create_study(
                study_name=space.name,
                storage=self._storage,
                directions=list(space.objectives.values()),
                sampler=make_sampler(search),
                pruner=SuccessiveHalvingPruner(pruner.min_resource, pruner.reduction_factor) if pruner else NopPruner(),
                load_if_exists=True,
            )
            has_trials = bool(self._study.get_trials(deepcopy=False))
            check_definition(space, self._study.user_attrs, has_trials, data_hashes, place(store))
            if DEFINITION not in self._study.user_attrs:
                self._study.set_metric_names(list(space.objectives))
                self._study.set_user_attr(DEFINITION, definition(space, data_hashes))
            if space.is_phase and IS_PHASE not in self._study.user_attrs:
                self._study.set_user_attr(IS_PHASE, True)
            there = len(self._study.get_trials(deepcopy=False))
            for point in search.points() if there < search.n_trials else ():
                labels = {name: _encoded(label) for name, label in point.items()}
                self._study.enqueue_trial(labels, skip_if_exists=bool(there))  # comparing takes quadratic time

    @property
    def to_ask(self) -> int:
        """Number of trials still to suggest."""
        begun = [trial for trial in self._current() if trial.state != TrialState.WAITING]
        return max(0, self._search.n_trials - len(begun))

    @property
    def left(self) -> int:
        """Number of trials that have not ended, including those still to suggest."""
        return self.to_ask + sum(trial.state == TrialState.RUNNING for trial in self._current())

    def is_best(self, values: Sequence[float]) -> bool:
        """Return whether no complete trial is as good; False with several objectives."""
        with quiet():
            sign = 1 if self._study.directions[0] == optuna.study.StudyDirection.MAXIMIZE else -1
            others = (
                [t.value for t in self._current() if t.state == TrialState.COMPLETE] if len(values) == 1 else [None]
            )
        return all(other is not None and sign * values[0] > sign * other for other in others)

    def left_under_way(self) -> list[OpenTrial]:
        """Return the running trials of the study."""
        with quiet():
            study = self._storage.get_study_id_from_name(self._study.study_name)
            numbers = [trial.number for trial in self._current() if trial.state == TrialState.RUNNING]
            ids = [self._storage.get_trial_id_from_study_id_trial_number(study, number) for number in numbers]
            return [self._open(optuna.Trial(self._study, trial_id)) for trial_id in ids]

    def ask(self) -> OpenTrial:
        """Return a new trial, suggested from all results so far.

        Raises:
            UsageError: the sampler cannot suggest one with its options.
        """
        try:
            with quiet():
                return self._open(self._study.ask())
        except (OSError, KeyboardInterrupt):
            raise
        except BaseException as error:  # options may contain functions of the user
            raise refused(self._search, error) from None

    def retry_failed(self) -> int:
        """Enqueue the parameters of failed trials again; return their number."""
        with quiet():
            failed = [trial for trial in self._current() if trial.state == TrialState.FAIL]
            for trial in failed:
                self._study.enqueue_trial(trial.params, user_attrs={REPEATS: trial.number})
        return len(failed)

    def _open(self, trial: optuna.Trial) -> OpenTrial:
        return OpenTrial(trial, self._search, self._store)

    def _current(self) -> list[FrozenTrial]:
        return current_trials(self._study.get_trials(deepcopy=False))


@dataclass(frozen=True)
class _StoredStudy:
    """A study as its journal has it.

    Attributes:
        name: its name.
        attributes: its user attributes.
        objectives: direction of each objective, by name or place.
        trials: its trials, without failed ones that were retried under another number.
        best_numbers: the numbers of its best trials.
    """

    name: str
    attributes: Mapping[str, Any]
    objectives: Mapping[str, Direction]
    trials: Sequence[FrozenTrial]
    best_numbers: tuple[int, ...]

    @classmethod
    def of(cls, study: optuna.Study) -> _StoredStudy:
        """Read a study."""
        directions: list[Direction] = []
        for direction in study.directions:
            is_maximized = direction == optuna.study.StudyDirection.MAXIMIZE
            directions.append("maximize" if is_maximized else "minimize")
        names = study.metric_names or [f"objective {place}" for place in range(len(directions))]
        return cls(
            study.study_name,
            study.user_attrs,
            dict(zip(names, directions, strict=True)),
            current_trials(study.get_trials(deepcopy=False)),
            tuple(trial.number for trial in study.best_trials),
        )


def _stored_studies(store: RunStore) -> dict[str, _StoredStudy]:
    """Return every study of a store by name; of a store at one moment, the journal is read once.

    Raises:
        UsageError: the journal cannot be read.
    """
    return store.once("studies", lambda: _read_journal(store))


def _read_journal(store: RunStore) -> dict[str, _StoredStudy]:
    with existing_journal(store) as storage:
        if storage is None:
            return {}
        studies = {}
        for name in optuna.get_all_study_names(storage):
            studies[name] = _StoredStudy.of(optuna.load_study(study_name=name, storage=storage))
        return studies


def read_study(space: SearchSpace, store: RunStore, data_hashes: Mapping[str, str] | None = None) -> StudyRecord | None:
    """Return the current content of the study of a search, or None. Nothing is written.

    Args:
        space: the search space.
        store: the store with the study.
        data_hashes: content hashes of the prepared data to compare, by data set and normalisation.

    Raises:
        UsageError: the journal cannot be read, or the study was created from another definition.
    """
    search = _search(space)
    study = _stored_studies(store).get(space.name)
    if study is None:
        return None
    with reading(store):
        check_definition(space, study.attributes, bool(study.trials), data_hashes or {}, place(store))
        records = []
        for trial in study.trials:
            names = [name for name in search.parameters if name in trial.params]
            records.append(_record(trial, {name: _decoded(search, name, trial.params[name]) for name in names}))
    replicates = len(space.replicates())
    for record in records:
        if record.run_ids and (absent := search.parameters.keys() - record.labels.keys()):
            raise DamagedStore(f"study {space.name!r}, trial {record.number}: has no value of {sorted(absent)[0]!r}")
        if len(record.run_ids) not in (0, replicates):
            runs = several(len(record.run_ids), "run")
            raise DamagedStore(f"study {space.name!r}, trial {record.number}: has {runs}; expected {replicates}")
    return StudyRecord(space.name, space.objectives, tuple(records), study.best_numbers, space.is_phase)


def current_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return all trials, without failed ones that were retried under another number."""
    repeated = {trial.user_attrs.get(REPEATS) for trial in trials}
    return [trial for trial in trials if trial.number not in repeated]


def definition(space: SearchSpace, data_hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that the values of trials depend on, as JSON: equal definitions have comparable trials.

    The number of trials and the sampler are not part of it.
    """
    search = _search(space)
    base = space.base.model_dump(mode="json", exclude={"seed", *search.parameters})
    described: dict[str, Any] = {
        **{f"base.{name}": value for name, value in base.items()},
        "seeds": list(space.seeds),
        **{f"axes.{axis}": values for axis, values in space.axes.items()},
        **{f"parameters.{name}": _described(search, name) for name in search.parameters},
        "objectives": [list(item) for item in space.objectives.items()],
        "pruning": vars(search.pruner) if search.pruner else None,
        "semantics_version": SEMANTICS_VERSION,
        **{f"revision.{it.strategy}": it.revision for it in configs_at_bounds(space) if it.revision},
        **{f"revision.{it.network}": it.network_revision for it in configs_at_bounds(space) if it.network_revision},
        **{f"data.{name}": content for name, content in data_hashes.items()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(described))
    return plain


def check_definition(
    space: SearchSpace, attributes: Mapping[str, Any], has_trials: bool, data_hashes: Mapping[str, str], where: str
) -> None:
    """Check that a study is continued with the definition that it was created from.

    Args:
        space: the search space.
        attributes: the user attributes of the study.
        has_trials: whether the study has trials.
        data_hashes: content hashes of the prepared data, by their names in the definition.
        where: the name of the journal.

    Raises:
        UsageError: another definition, or a study that another program created.
    """
    if DEFINITION not in attributes:
        if has_trials:
            raise UsageError(
                f"study {space.name!r} in {where} was created by another program; give the search space another name"
            )
        return
    then, now = attributes[DEFINITION], definition(space, data_hashes)
    for name in dict.fromkeys((*then, *now)):
        if name.startswith("data.") and name not in now:
            continue  # not prepared on this machine
        default = BEFORE.get(name.removeprefix("base."))  # of a field that was added since
        before, after = (json.dumps(it.get(name, default)) for it in (then, now))
        if before != after:
            raise UsageError(
                f"search space {space.name!r}: its study in {where} was made with {name} {before} and not {after}; "
                "a study keeps its definition (n_trials and sampler apart): give the space another name, or other "
                "--results"
            )


def _search(space: SearchSpace) -> OptunaSearch:
    if not isinstance(space.search, OptunaSearch):
        raise UsageError(f"search space {space.name!r} has no search")
    return space.search


def _described(search: OptunaSearch, name: str) -> Any:
    parameter = search.parameters[name]
    if isinstance(parameter, Mapping):
        return {label: dict(settings) for label, settings in parameter.items()}
    it = search.distributions[name]
    if isinstance(it, tuple):
        return {"CategoricalDistribution": {"choices": it}}
    return {type(it).__name__: {"low": it.low, "high": it.high, "log": it.log, "step": it.step}}


def _encoded(label: Any) -> Any:
    """Encode a category for Optuna: scalars and text unchanged, anything else as JSON."""
    return label if label is None or isinstance(label, bool | int | float | str) else json.dumps(label)


def _suggest(trial: optuna.Trial, search: OptunaSearch, name: str) -> Any:
    it = search.distributions[name]
    if isinstance(it, tuple):
        encoded = [_encoded(label) for label in it]
        return it[encoded.index(trial.suggest_categorical(name, encoded))]
    if isinstance(it, FloatDistribution):
        return _on_step(it, trial.suggest_float(name, it.low, it.high, step=it.step, log=it.log))
    return trial.suggest_int(name, it.low, it.high, step=it.step, log=it.log)


def _decoded(search: OptunaSearch, name: str, value: Any) -> Any:
    it = search.distributions[name]
    if isinstance(it, tuple):
        return {repr(_encoded(label)): label for label in it}.get(repr(value), value)
    return _on_step(it, value) if isinstance(it, FloatDistribution) else value


def _on_step(distribution: FloatDistribution, value: float) -> float:
    """Round to a whole number of steps: 0.3 instead of 0.1 + 0.2, so that runs of a grid are reused."""
    if distribution.step is None:
        return value
    low, step = Decimal(str(distribution.low)), Decimal(str(distribution.step))
    return float(low + step * round((Decimal(str(value)) - low) / step))


def _record(trial: FrozenTrial, labels: Mapping[str, Any]) -> TrialRecord:
    """Return a trial as plain data."""
    return TrialRecord(
        number=trial.number,
        state=_STATES[trial.state],
        labels=labels,
        values=tuple(map(float, trial.values)) if trial.state == TrialState.COMPLETE and trial.values else None,
        intermediate={k: v for k, v in sorted(trial.intermediate_values.items()) if math.isfinite(v)},
        run_ids=tuple(trial.user_attrs.get(RUN_IDS, ())),
        error=trial.user_attrs.get(ERROR),
    )


def search_counts(store: RunStore) -> dict[str, Counter[State]]:
    """Count the trials of every study of a store by state."""
    return {study.name: Counter(trial.state for trial in study.trials) for study in recorded_studies(store)}


def recorded_studies(store: RunStore) -> list[StudyRecord]:
    """Return every study of a store, without its search space.

    Labels of choices are as in the journal: text and scalars unchanged, anything else as JSON.

    Raises:
        UsageError: the file of the studies is damaged.
    """
    studies = _stored_studies(store).values()
    with reading(store):
        return [_as_recorded(study) for study in studies]


def _as_recorded(study: _StoredStudy) -> StudyRecord:
    return StudyRecord(
        study.name,
        study.objectives,
        tuple(_record(trial, dict(trial.params)) for trial in study.trials),
        study.best_numbers,
        bool(study.attributes.get(IS_PHASE)),
    )
