"""Accuracy of each person in a run: final, gain by training on the person, and retention.

Needs the table `predictions`, which a sweep keeps with `--keep predictions`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

from .patient_intervals import predictions_of
from .predicted import Predicted, drawn_units

COLUMNS = ["run_id", "patient", "evaluated_on", "task", "instances", "accuracy", "gain", "retention"]


def per_person(predictions: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each person on the test instances of each task of one run.

    With A_i the accuracy after training on task i of N, and j the person's task:

    - `accuracy` is A_N;
    - `gain` is A_j - A_(j-1), the gain of training on the person's own task; NaN if j = 1;
    - `retention` is A_N - A_j, negative if the person was forgotten; NaN if j = N.

    People in no task have `evaluated_on` 0 and no gain or retention. These are the people held out with
    ``split_within="time"`` and all tested people with ``"people"``. An instance with several labels is correct if all
    labels are.

    Args:
        predictions: rows of the table `predictions` of one run.

    Returns:
        One row per person and task, with `COLUMNS`.

    Raises:
        UsageError: no rows, rows of several runs, or rows that name no people.
    """
    right = Predicted.of(predictions).right
    run_ids = predictions["run_id"].unique()
    if len(run_ids) > 1:
        raise UsageError(f"predictions of {len(run_ids)} runs: expected those of one")
    if drawn_units(predictions)[0] != "patient":
        raise UsageError("the predictions name no people: expected those of data with patients")
    rows = predictions[["patient", "evaluated_on", "task", "trained_on", "instance"]].copy()
    rows["right"] = right
    in_one = rows.groupby("instance")["evaluated_on"].transform("nunique") == 1
    rows["evaluated_on"] = rows["evaluated_on"].where(in_one, 0)
    rows["task"] = rows["task"].where(in_one, "people in no task")
    rows = rows.drop_duplicates(["trained_on", "instance"])
    person = ["patient", "evaluated_on", "task"]
    by_stage = rows.pivot_table("right", person, "trained_on", observed=True)
    stages = by_stage.columns.to_numpy()
    accuracies = by_stage.to_numpy(dtype=float)
    own = by_stage.index.get_level_values("evaluated_on").to_numpy()
    one_by_one = stages[0] == 1  # a run on all tasks at once has only a last stage

    def after(stage: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the accuracy of each person after a stage; NaN without such a stage."""
        is_stage = (stage >= 1) & (own >= 1) & one_by_one
        columns = np.where(is_stage, stage - 1, 0)
        return np.where(is_stage, accuracies[np.arange(len(own)), columns], np.nan)

    last = stages[-1]
    final = accuracies[:, -1]
    instances = rows[rows["trained_on"] == last].groupby(person).size()
    columns = {
        "run_id": run_ids[0],
        "instances": instances.reindex(by_stage.index),
        "accuracy": final,
        "gain": after(own) - after(own - 1),
        "retention": np.where(own < last, final - after(own), np.nan),
    }
    table = pd.DataFrame(columns, by_stage.index).reset_index()
    return table.sort_values(["evaluated_on", "patient"], ignore_index=True)[COLUMNS]


def people(store: RunStore, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Return `per_person` of runs of a store, concatenated, without runs whose data name no people.

    Args:
        store: the store.
        run_ids: the runs; by default all with predictions.
    """
    tables = []
    for _, predictions in predictions_of(store, run_ids):
        unit, *_ = drawn_units(predictions)
        if unit == "patient":
            tables.append(per_person(predictions))
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(tables, ignore_index=True)
