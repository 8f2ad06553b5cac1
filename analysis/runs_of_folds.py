"""The runs of one recipe, one for each fold: together they test every person once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pandas as pd

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.splits.fold_names import fold_of, folds
from clops_sweep.errors import UsageError, listed, several, shown
from clops_sweep.experiment.columns import config_columns
from clops_sweep.experiment.fields import data_key_of_row, is_missing
from clops_sweep.store.run_store import RunStore

_MOST_DIFFERENCES = 3
"""Most settings that are named of a run that is nearly that of a missing fold."""


def runs_of_folds(store: RunStore, run_id: str, data: PreparedData) -> list[dict[str, Any]]:
    """Return the rows of the finished runs that differ from a run in the fold alone, from fold 1 on.

    Args:
        store: the store.
        run_id: the whole id of a run of one fold.
        data: the prepared data sets. Of runs on several editions of the data, those on the edition of the run count.

    Raises:
        UsageError: the run has no fold or divides recordings by time, a fold has no finished run of its settings, or
            the edition of the run is not kept.
    """
    (row,) = store.rows("runs", run_ids=[run_id])
    key = data_key_of_row(row)
    if data.data_hash(key) not in (None, row["data_hash"]):
        data = data.holding(key, row["data_hash"])
    chosen = _on_these_frames(store, row, data)
    if run_id not in [of_fold["run_id"] for of_fold in chosen]:
        raise UsageError(
            f"run {run_id}: the edition of its data is not kept in {data.root}, and the runs on the present edition "
            "are others; expected a run on the present edition"
        )
    return chosen


def counterpart(store: RunStore, row: Mapping[str, Any], data: PreparedData) -> str:
    """Return the run with the settings and the fold of a run, but on the frames of `data`.

    Args:
        store: the store.
        row: the row of the run in the table `runs`.
        data: one edition of the prepared data sets.

    Returns:
        The id; empty if not all folds have such a run.
    """
    with suppress(UsageError):
        for of_fold in _on_these_frames(store, row, data):
            if of_fold["split"] == row["split"]:
                return str(of_fold["run_id"])
    return ""


def _on_these_frames(store: RunStore, row: Mapping[str, Any], data: PreparedData) -> list[dict[str, Any]]:
    """Return the rows of the finished runs with the settings of a run on the frames of `data`, from fold 1 on."""
    run_id = str(row["run_id"])
    if is_missing(row.get("split")):
        raise UsageError(
            f"run {run_id}: has no fold, so other splits may test a patient twice or not at all; expected a run of a "
            'search space with folds, as in axes={"split": folds(5)}'
        )
    if row.get("split_within") == "time":
        raise UsageError(
            f"run {run_id}: tests later parts of the recordings of its training patients; expected a run that tests "
            "other patients, so that folds can be pooled"
        )
    names = folds(fold_of(row["split"])[1])
    settings = [name for name in config_columns(store.table("runs", run_id).column_names) if name != "run_id"]
    settings.append("semantics_version")
    runs = store.read("runs", None, ["run_id", "status", "data_hash", *settings])
    of_folds = runs[runs["split"].isin(names)]
    differing = _differing(of_folds[[name for name in settings if name != "split"]], row)
    alike = of_folds[~differing.any(axis=1) & (of_folds["status"] == "finished")]
    chosen = []
    missing = []
    for name in names:
        ids = alike.loc[alike["split"] == name, "run_id"].tolist()
        rows = store.rows("runs", run_ids=ids) if ids else []
        fitting = [one for one in rows if data.data_hash(data_key_of_row(one)) in (None, one["data_hash"])]
        if len(fitting) == 1:
            chosen.append(fitting[0])
        elif rows:
            missing.append(f"{name} (its data were prepared again since)")
        else:
            there = of_folds[of_folds["split"] == name]
            missing.append(f"{name} ({_why_missing(there, differing.loc[there.index], row)})")
    if missing:
        raise UsageError(
            f"run {run_id}: {several(len(missing), 'fold')} of its settings without a finished run: {listed(missing)}; "
            f"all {len(names)} are needed, so that every patient is tested once"
        )
    return chosen


def runs_to_pool(store: RunStore, row: Mapping[Any, Any], data: PreparedData | None) -> list[str]:
    """Return the runs of all folds of the settings of a run, from fold 1 on; none if they cannot be pooled.

    Args:
        store: the store.
        row: the row of the run in the table `runs`.
        data: the prepared data sets.
    """
    if data is None or is_missing(row.get("split")):
        return []
    with suppress(UsageError, OSError):
        return [str(of_fold["run_id"]) for of_fold in runs_of_folds(store, str(row["run_id"]), data)]
    return []


def _differing(runs: pd.DataFrame, row: Mapping[str, Any]) -> pd.DataFrame:
    """Return whether each value of some runs differs from that of a run, bool [runs, columns]."""
    differing = {}
    for name in runs:
        value = row[str(name)]
        differing[name] = runs[name].notna() if is_missing(value) else runs[name] != value
    return pd.DataFrame(differing, index=runs.index).astype(bool)


def _why_missing(runs: pd.DataFrame, differing: pd.DataFrame, row: Mapping[str, Any]) -> str:
    """Return why none of the runs of a fold counts: "failed", what differs in the closest one, or "not computed"."""
    same = runs[~differing.any(axis=1)]
    if len(same):
        return str(same["status"].iloc[0])
    counts = differing.sum(axis=1)
    if not len(runs) or counts.min() > _MOST_DIFFERENCES:
        return "not computed"
    position = int(counts.to_numpy().argmin())
    closest = runs.iloc[position].to_dict()  # numbers of Python
    texts = []
    for name in differing.columns[differing.iloc[position].to_numpy()]:
        values = ["None" if is_missing(value) else shown(value) for value in (closest[name], row[name])]
        texts.append(f"{name} {values[0]} instead of {values[1]}")
    return f"run {closest['run_id'][:8]} differs in {', '.join(texts)}"
