"""The columns of the table `runs`: config fields, what a run is worth, what it took. Names and types in one place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.identity import LEFT_OUT
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import BUILT_IN, PAPER_NETWORK, used_options

COUNTS = ("left_out", "replayed", "projections", "projection_failures")
"""Classes left out of an AUC, instances replayed, and GEM's projections, tried and failed."""

SIZES = (
    *("epochs_trained", "parameters", "memory_instances", "memory_bytes"),
    *("patients_train", "patients_validation", "patients_test"),
)
"""Epochs computed over all tasks, trainable parameters of the network, what the replay memory holds at the end, and
distinct people by split."""

UNSEEN = ("unseen_auc", "unseen_accuracy", "unseen_balanced_accuracy", "unseen_f1")
"""Measures of people in no task, after the last one, where a scenario holds such people out."""

PHASES = ("seconds_train", "seconds_acquire", "seconds_evaluate")

RESULTS: Mapping[str, type] = {
    **dict.fromkeys((*METRICS, *(f"test_{metric}" for metric in METRICS), *UNSEEN), float),
    **dict.fromkeys(COUNTS, int),
    **dict.fromkeys(SIZES, int),
    "stores": str,
    **dict.fromkeys(("seconds", *PHASES, "cpu_seconds"), float),
}
"""What a finished run is worth and what it took, by column."""

RECORDED = (
    *("run_id", "status", "error", "started_at", "data_hash", "split_hash", "encoder_hash", "features_hash"),
    *("semantics_version", "package_version"),
    *("git_commit", "git_dirty", "python", "torch", "ray", "device", "backend", "host", "lockstep", "plugins"),
)
"""The other columns: what became of a run, and where it comes from."""

RENAMED: Mapping[str, str] = {"stack": "lockstep"}
"""Columns of `runs` that earlier versions wrote under another name, by that name."""

RENAMED_VALUES: Mapping[str, Mapping[str, str]] = {"leads": {"one": "single"}}
"""Values that earlier versions wrote under another name, by column and that name."""

OPTIONS.reserve((*RESULTS, *RECORDED, *RENAMED), "that of a column of runs")


def _scalar(annotation: Any) -> type:
    """The type of a field's column, None aside: text for anything but a number or a truth value."""
    if len(given := [it for it in get_args(annotation) if it is not NoneType]) == 1:
        (annotation,) = given
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation if annotation in (int, float, bool) else str


FIELDS: Mapping[str, type] = {name: _scalar(info.annotation) for name, info in RunConfig.model_fields.items()}
"""Config fields by column. What is neither text nor a scalar is written as JSON (a task order)."""

CONFIG: Mapping[str, type] = {**FIELDS, **{name: OPTIONS[name].kind for name in BUILT_IN}}
"""Config fields and options of built-in plug-ins by column; an option is null where a run does not use it.

Other options have columns of their own beside these, in the rows of the runs that use them.
"""


DEFAULTS: Mapping[str, Any] = {
    **{"task_classes": None, "domain": LEAD, "leads": "single", "network": PAPER_NETWORK, "weight_seed": None},
    **dict.fromkeys(("class_weights", "augment", "split", "validation", "curves", "encoder", "early_stopping")),
    "first_tasks": None,
    **{"split_within": "people", "people_per_task": None, "people_order": None},
    **LEFT_OUT,
    **dict.fromkeys(BUILT_IN),
}
"""What columns hold in files that were written before they were added."""


_NUMBERS = [name for name, kind in FIELDS.items() if kind in (int, float) and DEFAULTS.get(name, 0) is not None]
"""The fields that hold a number in every run."""


def numeric_columns() -> list[str]:
    """The columns that hold numbers, which a search may optimise."""
    return [name for name, kind in {**CONFIG, **RESULTS}.items() if kind in (int, float)]


_JSON = ("task_order", "task_classes")
"""The fields whose columns hold JSON, where they hold anything but the name of an order."""


def config_columns(columns: Iterable[str]) -> list[str]:
    """Those columns of a table of runs that `config_from_row` reads: the run's id, config fields and options."""
    present = set(columns)
    return [*FIELDS, *(name for name in ("run_id", *OPTIONS) if name in present)]


def config_row(config: RunConfig) -> dict[str, Any]:
    """A config as columns: scalars, text and what is not set as they are, anything else as JSON."""
    return {
        name: value if value is None or CONFIG.get(name) is not str or isinstance(value, str) else json.dumps(value)
        for name, value in config.model_dump(mode="json").items()
    }


def fields_from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The config fields of a row, and its options, as JSON has their values; other columns are passed over.

    Raises:
        DamagedStore: a number is missing or not finite, which this program never writes.
    """
    values = {name: row[name] for name in RunConfig.model_fields}
    for name in _JSON:
        if not isinstance(values[name], str):  # pandas has nan where nothing is
            values[name] = None
        elif values[name] != "sequential":
            values[name] = json.loads(values[name])
    values |= {name: renamed.get(values[name], values[name]) for name, renamed in RENAMED_VALUES.items()}
    values |= {name: None for name in values if name in DEFAULTS and DEFAULTS[name] is None and _missing(values[name])}
    for name in _NUMBERS:
        if _missing(values[name]) or not math.isfinite(values[name]):
            raise DamagedStore(f"run {row['run_id']}: {name} = {values[name]}: expected a finite number")
    return values | {name: row[name] for name in OPTIONS if name in row and not _missing(row[name])}


def _missing(value: Any) -> bool:
    """Whether nothing is there: None, or what pandas has in its place."""
    return value is None or value != value or type(value).__name__ == "NAType"


def config_from_row(row: Mapping[str, Any]) -> RunConfig:
    """The inverse of `config_row`; other columns, and options that the run does not use, are passed over."""
    DATASETS.know(row["dataset"], row["scenario"])
    fields = fields_from_row(row)
    used = used_options(lambda name: fields.get(name) if name in fields else OPTIONS[name].default)
    return RunConfig(**{name: value for name, value in fields.items() if name not in OPTIONS or name in used})
