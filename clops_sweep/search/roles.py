"""What each run of a store is for: a reported run, a trial that only chose a configuration, or pretraining."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from clops_sweep.search.records import journal_of
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["reported", "trial", "pretraining"]
"""The role of a run."""

ROLE = "role"
"""The column with the role."""

_MODEL_OF_RUN = "run:"


def tuning_runs(store: RunStore) -> set[str]:
    """Return the ids of the runs of trials that only chose a configuration, which other runs report.

    Trials on the reported data are reported themselves, if their configuration is the choice.

    Raises:
        UsageError: the file of the studies is damaged.
    """
    if journal_of(store) is None:
        return set()
    from clops_sweep.search.trials import read_studies  # importing Optuna is slow

    of_trials: set[str] = set()
    reported: set[str] = set()
    for study in read_studies(store):
        if not study.is_phase:
            continue
        for trial in study.trials:
            of_trials.update(trial.run_ids)
        if study.reports_best:
            for trial in study.best:
                reported.update(trial.run_ids)
    return of_trials - reported


def roles_of(store: RunStore, run_ids: Iterable[str]) -> list[Role]:
    """Return the role of each run.

    A run whose model is the encoder of other runs of the store is pretraining.

    Args:
        store: the store.
        run_ids: ids of its runs.
    """
    of_trials = tuning_runs(store)
    encoders = set(store.table("runs", columns=["encoder"])["encoder"].to_pylist())
    roles: list[Role] = []
    for run_id in run_ids:
        if run_id in of_trials:
            roles.append("trial")
        elif f"{_MODEL_OF_RUN}{run_id}" in encoders:
            roles.append("pretraining")
        else:
            roles.append("reported")
    return roles


def runs_with_roles(
    store: RunStore, run_ids: str | Iterable[str] | None = None, columns: str | Iterable[str] | None = None
) -> pd.DataFrame:
    """Return the table `runs` with the column `role`, which follows `run_id` unless columns are given.

    Args:
        store: the store.
        run_ids: the runs; by default all.
        columns: the columns, with or without `role`; by default all.
    """
    if columns is None:
        runs = store.read("runs", run_ids)
        runs.insert(1, ROLE, roles_of(store, runs["run_id"]))
        return runs
    names = [columns] if isinstance(columns, str) else list(columns)
    if ROLE not in names:
        return store.read("runs", run_ids, names)
    stored = dict.fromkeys(("run_id", *(name for name in names if name != ROLE)))
    runs = store.read("runs", run_ids, stored)
    runs[ROLE] = roles_of(store, runs["run_id"])
    return runs[names]
