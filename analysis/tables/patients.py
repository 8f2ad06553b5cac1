"""Test metrics of single runs with intervals over the test patients, and differences from a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..formats import DASH, TextCell, TextTable, number, with_interval
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
    rows = tuple(_rows(experiment, store))
    if not rows:
        return None
    notes = (
        "Single runs of the same patient split and seed [95 % interval: bootstrap over test patients, "
        f"{RESAMPLES:,} resamples; differences on the same patients; recordings as if independent where people "
        "are unknown]. The networks stay as they are: an interval says how much a number depends on who was tested. "
        f"Intervals over fewer than {FEW_PEOPLE} people cover less than 95 %: {FEW_COVER}.",
        *sorted({note for *_, note in rows if note}),
    )
    cells = tuple(tuple(TextCell(text) for text in row) for *row, _ in rows)
    return TextTable(name, title, HEADER, cells, 3, (), notes)


def _rows(experiment: Experiment, store: RunStore) -> Iterator[tuple[str, ...]]:
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
            it = found[metric]
            if np.isfinite(it.value):
                ends = f" [{number(it.low)}, {number(it.high)}]" if np.isfinite(it.low) else ""
                above = less.get(metric)
                compared = with_interval(above.value, above.low, above.high) if above is not None else DASH
                note = f"No interval for {label}: {it.obstacle}." if it.obstacle else ""
                people = f"{it.people:,}" if it.unit == "patient" else f"unknown, {it.people:,} {it.unit}s"
                yield label, run_id, metric, people, f"{number(it.value)}{ends}", compared, note
