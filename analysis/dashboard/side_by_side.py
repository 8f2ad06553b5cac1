"""Some runs side by side: the settings in which they differ, and their headline metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.config import names_of
from clops_sweep.experiment.fields import REPLICATES

from ..as_stored import stored_value
from ..collect import Experiment, label_text
from ..formats import DASH
from ..metrics import metric_named
from .runs import run_names

Row = tuple[str, tuple[str, ...]]
"""The title of a setting or metric, and its value in each run."""


@dataclass(frozen=True)
class SideBySide:
    """Some runs: id and name of each, the settings in which they differ, and their metrics."""

    runs: tuple[tuple[str, str], ...]
    settings: tuple[Row, ...]
    metrics: tuple[Row, ...]


def side_by_side(experiment: Experiment, picked: Sequence[str], metrics: Sequence[str]) -> SideBySide | None:
    """Return some runs of an experiment side by side; None with fewer than two.

    Args:
        experiment: the experiment.
        picked: ids of the runs.
        metrics: measured columns to show.
    """
    runs = experiment.runs[experiment.runs["run_id"].isin(picked)].drop_duplicates("run_id")
    if len(runs) < 2:
        return None
    heads = tuple(zip(runs["run_id"].tolist(), run_names(experiment, runs), strict=True))
    return SideBySide(heads, tuple(_differing(experiment, runs)), tuple(_measured(runs, metrics)))


def _differing(experiment: Experiment, runs: pd.DataFrame) -> list[Row]:
    """Return the settings in which runs differ: axes and other fields of the configurations, then splits and seeds."""
    configs = [experiment.cells[cell].config for cell in runs["cell"].tolist()]
    names = [name for name in names_of(configs) if name not in REPLICATES]
    rows = []
    for name in names:
        rows.append((axis_title(name), tuple(_text(config.get(name)) for config in configs)))
    for name in REPLICATES:
        if name in runs:
            rows.append((axis_title(name), tuple(_text(stored_value(value)) for value in runs[name].tolist())))
    return [(title, values) for title, values in rows if len(set(values)) > 1]


def _text(value: object) -> str:
    """Return a value of a setting as text; a dash where a run does not use it."""
    return DASH if value is None else label_text(value)


def _measured(runs: pd.DataFrame, metrics: Sequence[str]) -> list[Row]:
    """Return metrics of runs; a dash where a run has no value."""
    rows = []
    for name in metrics:
        metric = metric_named(name)
        values = runs[name].astype(float).tolist()
        rows.append((metric.plain, tuple(DASH if pd.isna(value) else metric.text(value) for value in values)))
    return rows
