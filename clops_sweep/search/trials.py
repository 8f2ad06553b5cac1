"""The studies of a store with their trials, read from the journal. Nothing is written.

Importing this module imports Optuna, which is slow. `records.journal_of` says without it whether a store has studies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from clops_sweep.arguments import named_arguments
from clops_sweep.errors import DamagedStore, OtherData, several
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.experiment.spaces.search_space import Phase, SearchSpace, search_of
from clops_sweep.search.definition import check_definition
from clops_sweep.search.edges import edges_of
from clops_sweep.search.labels import decoded
from clops_sweep.search.records import StudyRecord, TrialRecord, TrialState
from clops_sweep.search.storage import existing_journal, journal_name, reading
from clops_sweep.store.run_store import RunStore

RUN_IDS, ERROR, REPEATS, PRUNING = "run_ids", "error", "repeats", "pruning"
IS_PHASE, REPORTS_BEST = "is_phase", "reports_best"
"""Attributes of trials and studies; optuna-dashboard also shows them."""

_STATES: Mapping[OptunaState, TrialState] = {
    OptunaState.COMPLETE: "complete",
    OptunaState.PRUNED: "pruned",
    OptunaState.FAIL: "failed",
    OptunaState.RUNNING: "running",
    OptunaState.WAITING: "waiting",
}


def read_studies(store: RunStore) -> list[StudyRecord]:
    """Return the trials of every study of a store, without its search space.

    Labels of choices are as in the journal: text and scalars unchanged, anything else as JSON.

    Raises:
        UsageError: the journal cannot be read.
    """
    studies = _stored_studies(store).values()
    with reading(store):
        return [_as_recorded(study) for study in studies]


@named_arguments
def read_study(space: SearchSpace, store: RunStore, data_hashes: Mapping[str, str] | None = None) -> StudyRecord | None:
    """Return the trials of a search; None if it has no study yet.

    Args:
        space: the search space.
        store: the store with the study.
        data_hashes: content hashes of the prepared data to compare, by their names in the definition.

    Raises:
        UsageError: the journal cannot be read, or the study was created from another definition. Another edition of the
            data is no error here: `has_other_data` of the record says so.
    """
    search = search_of(space)
    study = _stored_studies(store).get(space.name)
    if study is None:
        return None
    has_other_data = False
    with reading(store):
        try:
            check_definition(space, study.attributes, bool(study.trials), data_hashes or {}, journal_name(store))
        except OtherData:
            has_other_data = True
        records = []
        for trial in study.trials:
            names = [name for name in search.parameters if name in trial.params]
            labels = {name: decoded(search, name, trial.params[name]) for name in names}
            records.append(_record(trial, labels))
    _check_trials(space, records)
    return StudyRecord(
        space.name,
        space.objectives,
        tuple(records),
        study.best_numbers,
        has_other_data=has_other_data,
        **purpose_of(space),
    )


def purpose_of(space: SearchSpace) -> dict[str, bool]:
    """Return what the trials of a search are for: `is_phase` and `reports_best` of its study (see `StudyRecord`)."""
    is_phase = isinstance(space, Phase)
    return {IS_PHASE: is_phase, REPORTS_BEST: is_phase and search_of(space).tune_on == "same"}


def _check_trials(space: SearchSpace, records: Sequence[TrialRecord]) -> None:
    """Check that trials with runs have a value of each parameter, and a run for each seed.

    Raises:
        DamagedStore: one has not.
    """
    parameters = search_of(space).parameters.keys()
    replicates = len(space.replicates())
    for record in records:
        absent = parameters - record.labels.keys()
        if record.run_ids and absent:
            raise DamagedStore(f"study {space.name!r}, trial {record.number}: has no value of {sorted(absent)[0]!r}")
        if len(record.run_ids) not in (0, replicates):
            runs = several(len(record.run_ids), "run")
            raise DamagedStore(f"study {space.name!r}, trial {record.number}: has {runs}; expected {replicates}")


def current_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return all trials, without failed ones that were retried under another number."""
    repeated = {trial.user_attrs.get(REPEATS) for trial in trials}
    return [trial for trial in trials if trial.number not in repeated]


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
        names = study.metric_names or [f"objective {number}" for number in range(len(directions))]
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


def _record(trial: FrozenTrial, labels: Mapping[str, Any]) -> TrialRecord:
    """Return a trial as plain data."""
    return TrialRecord(
        number=trial.number,
        state=_STATES[trial.state],
        labels=labels,
        values=tuple(map(float, trial.values)) if trial.state == OptunaState.COMPLETE and trial.values else None,
        intermediate={k: v for k, v in sorted(trial.intermediate_values.items()) if math.isfinite(v)},
        run_ids=tuple(trial.user_attrs.get(RUN_IDS, ())),
        error=trial.user_attrs.get(ERROR),
        edges=edges_of(trial.params, trial.distributions),
    )


def _as_recorded(study: _StoredStudy) -> StudyRecord:
    return StudyRecord(
        study.name,
        study.objectives,
        tuple(_record(trial, dict(trial.params)) for trial in study.trials),
        study.best_numbers,
        bool(study.attributes.get(IS_PHASE)),
        bool(study.attributes.get(REPORTS_BEST)),
    )
