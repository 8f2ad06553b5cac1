"""Test metrics of single runs with intervals over the test patients, and differences from a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.store.rows import shortest
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..formats import DASH, TextCell, TextTable, count_cell, interval_text, label_cell, number, with_interval
from ..people.patient_intervals import (
    FEW_COVER,
    FEW_PEOPLE,
    PATIENT_METRICS,
    RESAMPLES,
    PatientInterval,
    patient_bootstrap,
)
from ..selection import cell_name

MOST = 24
"""Most configurations in the table: a run with twelve tasks takes seconds."""

HEADER = ("configuration", "run", "metric", "test patients", "value", "minus the first")


def patients_text(experiment: Experiment, store: RunStore, name: str, title: str) -> TextTable | None:
    """Return a row for every metric of one run of each configuration; None without predictions.

    All runs have the same patient split and seed, the first with predictions. The first configuration is the baseline.
    """
    rows = list(_rows(experiment, store))
    if not rows:
        return None
    obstacles = sorted(
        {f"No interval for {label}: {interval.obstacle}." for label, _, _, interval, _ in rows if interval.obstacle}
    )
    notes = (
        "Single runs of the same patient split and seed [interval: 95 %, unadjusted; bootstrap over test patients, "
        f"{RESAMPLES:,} resamples; differences on the same patients; recordings as if independent where people "
        "are unknown]. The networks stay as they are: an interval says how much a number depends on who was tested. "
        f"Intervals over fewer than {FEW_PEOPLE} people cover less than 95 %: {FEW_COVER}.",
        *obstacles,
    )
    digits = shortest(store.statuses())
    cells = tuple(_cells(digits, *row) for row in rows)
    exact = [_exact(*row) for row in rows]
    return TextTable(name, title, HEADER, cells, 3, (), notes, pd.DataFrame(exact, dtype=object))


def _cells(
    digits: int, label: str, run_id: str, metric: str, interval: PatientInterval, less: PatientInterval | None
) -> tuple[TextCell, ...]:
    """Return the row of a metric of a run.

    Args:
        digits: how many characters of its id are shown.
        label: its configuration.
        run_id: its id.
        metric: the metric.
        interval: its interval.
        less: the difference from the first configuration.
    """
    people = f"{interval.people:,}"
    if interval.unit != "patient":
        people = f"unknown, {people} {interval.unit}s"
    difference = TextCell(DASH)
    if less is not None:
        difference = TextCell(with_interval(less.value, less.low, less.high), less.value)
    return (
        label_cell(label),
        TextCell(run_id[:digits], run_id, whole=run_id),
        label_cell(metric),
        count_cell(interval.people, people),
        TextCell(number(interval.value) + interval_text(interval.low, interval.high), interval.value),
        difference,
    )


def _exact(
    label: str, run_id: str, metric: str, interval: PatientInterval, less: PatientInterval | None
) -> dict[str, object]:
    data: dict[str, object] = {"configuration": label, "run_id": run_id, "metric": metric}
    data |= {"unit": interval.unit, "units": interval.people}
    data |= {"value": interval.value, "low": interval.low, "high": interval.high}
    if less is not None:
        data |= {"minus_first": less.value, "minus_first_low": less.low, "minus_first_high": less.high}
    return data


def _rows(
    experiment: Experiment, store: RunStore
) -> Iterator[tuple[str, str, str, PatientInterval, PatientInterval | None]]:
    finished = experiment.runs[experiment.runs["status"] == "finished"]
    there = finished[finished["run_id"].isin(store.predicted())]
    if there.empty:
        return
    replicates = experiment.replicates_of(there)
    alike = there[[replicate == min(replicates) for replicate in replicates]].sort_values("cell").head(MOST)
    first = None
    for cell, run_id in zip(alike["cell"].tolist(), alike["run_id"], strict=True):
        label = cell_name(experiment.cells[cell]) or experiment.name
        predictions = store.read("predictions", run_id)
        if predictions.empty:
            continue
        intervals = patient_bootstrap(predictions)
        less = dict[str, PatientInterval]()
        if first is None:
            first = predictions
        else:
            with suppress(UsageError):  # computed on other data, such as another data set on an axis
                less = patient_bootstrap(predictions, first)
        for metric in PATIENT_METRICS:
            if np.isfinite(intervals[metric].value):
                yield label, run_id, metric, intervals[metric], less.get(metric)
