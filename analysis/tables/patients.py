"""Test metrics of single runs with intervals over the test patients, and differences from a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError
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
    obstacles = sorted({f"No interval for {label}: {it.obstacle}." for label, _, _, it, _ in rows if it.obstacle})
    notes = (
        "Single runs of the same patient split and seed [interval: 95 %, unadjusted; bootstrap over test patients, "
        f"{RESAMPLES:,} resamples; differences on the same patients; recordings as if independent where people "
        "are unknown]. The networks stay as they are: an interval says how much a number depends on who was tested. "
        f"Intervals over fewer than {FEW_PEOPLE} people cover less than 95 %: {FEW_COVER}.",
        *obstacles,
    )
    cells = tuple(
        (
            *map(label_cell, (label, run_id, metric)),
            count_cell(it.people, f"{it.people:,}" if it.unit == "patient" else f"unknown, {it.people:,} {it.unit}s"),
            TextCell(number(it.value) + interval_text(it.low, it.high), it.value),
            TextCell(with_interval(above.value, above.low, above.high), above.value) if above else TextCell(DASH),
        )
        for label, run_id, metric, it, above in rows
    )
    exact = [_exact(*row) for row in rows]
    return TextTable(name, title, HEADER, cells, 3, (), notes, pd.DataFrame(exact, dtype=object))


def _exact(
    label: str, run_id: str, metric: str, it: PatientInterval, above: PatientInterval | None
) -> dict[str, object]:
    of_run = {"unit": it.unit, "units": it.people, "value": it.value, "low": it.low, "high": it.high}
    less = {"minus_first": above.value, "minus_first_low": above.low, "minus_first_high": above.high} if above else {}
    return {"configuration": label, "run_id": run_id, "metric": metric, **of_run, **less}


def _rows(
    experiment: Experiment, store: RunStore
) -> Iterator[tuple[str, str, str, PatientInterval, PatientInterval | None]]:
    finished = experiment.runs[experiment.runs["status"] == "finished"]
    there = finished[finished["run_id"].isin(store.predicted())]
    if there.empty:
        return
    replicates = experiment.replicates_of(there)
    alike = there[[it == min(replicates) for it in replicates]].sort_values("cell").head(MOST)
    first = None
    for cell, run_id in zip(alike["cell"].tolist(), alike["run_id"], strict=True):
        label = cell_name(experiment.cells[cell]) or experiment.name
        predictions = store.read("predictions", run_id)
        if predictions.empty:
            continue
        found, less = patient_bootstrap(predictions), dict[str, PatientInterval]()
        if first is None:
            first = predictions
        else:
            with suppress(UsageError):  # computed on other data, such as another data set on an axis
                less = patient_bootstrap(predictions, first)
        for metric in PATIENT_METRICS:
            if np.isfinite(found[metric].value):
                yield label, run_id, metric, found[metric], less.get(metric)
