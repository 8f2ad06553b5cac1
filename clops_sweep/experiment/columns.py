"""The columns of the table `runs`: config fields, what a run is worth, what it took. Names and types in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from clops_sweep.data.catalog import DATASETS
from clops_sweep.experiment.config import FOUNDING, RunConfig

METRICS = ("auc", "bwt", "bwt_t", "bwt_lambda", "fwt")
"""Metrics of the validation split; those of the test split have the prefix `test_`."""

COUNTS = ("left_out", "replayed", "projections", "projection_failures")
"""Classes left out of an AUC, instances replayed, and GEM's projections, tried and failed."""

PHASES = ("seconds_train", "seconds_acquire", "seconds_evaluate")

RESULTS: Mapping[str, type] = {
    **dict.fromkeys((*METRICS, *(f"test_{metric}" for metric in METRICS)), float),
    **dict.fromkeys(COUNTS, int),
    **dict.fromkeys(("seconds", *PHASES), float),
}
"""What a finished run is worth and what it took, by column."""


def _scalar(annotation: Any) -> type:
    """The type of a field's column: text for anything but a number or a truth value."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation if annotation in (int, float, bool) else str


CONFIG: Mapping[str, type] = {name: _scalar(info.annotation) for name, info in RunConfig.model_fields.items()}
"""Config fields by column. What is neither text nor a scalar is written as JSON (a task order)."""


DEFAULTS: Mapping[str, Any] = {
    name: info.get_default(call_default_factory=True, validated_data={})
    for name, info in RunConfig.model_fields.items()
    if name not in FOUNDING
}
"""What the fields that were added after version 0.2 hold in runs that were stored before."""


def numeric_columns() -> list[str]:
    """The columns that hold numbers, which a search may optimise."""
    return [name for name, kind in {**CONFIG, **RESULTS}.items() if kind in (int, float)]


def config_row(config: RunConfig) -> dict[str, Any]:
    """A config as columns: scalars and text as they are, anything else as JSON."""
    return {
        name: value if CONFIG[name] is not str or isinstance(value, str) else json.dumps(value)
        for name, value in config.model_dump(mode="json").items()
    }


def config_from_row(row: Mapping[str, Any]) -> RunConfig:
    """The inverse of `config_row`; other columns are passed over."""
    DATASETS.know(row["dataset"], row["scenario"])
    values = {name: row[name] for name in RunConfig.model_fields}
    if values["task_order"] != "sequential":
        values["task_order"] = json.loads(values["task_order"])
    return RunConfig(**values)
