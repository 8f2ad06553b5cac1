"""The columns of the table `runs`, with their types: config fields, metrics, cost and provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import DamagedStore, UsageError, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import BEFORE, is_missing
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS, instead_of
from clops_sweep.experiment.plugins.options import OPTIONS, scalar
from clops_sweep.experiment.plugins.registry import BUILT_IN, STORED_RUN, used_options

COUNTS = ("left_out", "replayed", "projections", "projection_failures")
"""Counters: classes left out of an AUC, instances replayed, GEM's projections and failed projections."""

SIZES = (
    *("epochs_trained", "parameters", "memory_instances", "memory_bytes"),
    *("patients_train", "patients_validation", "patients_test", "patients_unseen", "patients_all"),
)
"""Epochs over all tasks, trainable parameters of the network, the replay memory at the end, and people by split."""

UNSEEN = ("unseen_auc", "unseen_accuracy", "unseen_balanced_accuracy", "unseen_f1")
"""Measures of held-out people, who are in no task, after the last task; for scenarios with such people."""

PREQUENTIAL = ("prequential_auc", "prequential_accuracy")
"""Measures of all instances of an online stream, each predicted before the network was trained on it."""

STREAM = "stream"
"""Name of the task in the learning curves of an online stream, whose batches may belong to any task."""

PHASES = ("seconds_train", "seconds_acquire", "seconds_evaluate")

RESULTS: Mapping[str, type] = {
    **dict.fromkeys((*METRICS, *(f"test_{metric}" for metric in METRICS), *UNSEEN, *PREQUENTIAL), float),
    **dict.fromkeys(COUNTS, int),
    **dict.fromkeys(SIZES, int),
    "stores": str,
    **dict.fromkeys(("seconds", *PHASES, "cpu_seconds"), float),
}
"""Metrics and cost of a finished run, by column."""

COMPUTED_WITH = (
    *("package_version", "git_commit", "git_dirty", "python", "torch", "ray"),
    *("device", "backend", "host", "plugins"),
)
"""Software and machine that computed a run."""

RECORDED = (
    *("run_id", "status", "error", "reason", "started_at", "data_hash", "prepared_hash", "split_hash"),
    *("encoder_hash", "features_hash", "start_hash", "semantics_version", *COMPUTED_WITH),
)
"""The other columns: status and provenance."""

FORMER = ("lockstep", "stack", *FORMER_OPTIONS)
"""Columns of `runs` in stores of earlier versions. Their names stay reserved."""

OPTIONS.reserve((*RESULTS, *RECORDED, *FORMER), "that of a column of runs")


FIELDS: Mapping[str, type] = {name: scalar(info.annotation) for name, info in RunConfig.model_fields.items()}
"""Config fields by column. Values other than text and scalars, such as a task order, are stored as JSON."""

CONFIG: Mapping[str, type] = {**FIELDS, **{name: scalar(OPTIONS[name].annotation) for name in BUILT_IN}}
"""Config fields and options of built-in plug-ins by column; an option is null in runs that do not use it.

Options of other plug-ins have additional columns.
"""


DEFAULTS: Mapping[str, Any] = {
    **BEFORE,
    **dict.fromkeys(BUILT_IN),
}
"""Values of columns in files written before the columns were added."""


_NUMBERS = [name for name, kind in FIELDS.items() if kind in (int, float) and DEFAULTS.get(name, 0) is not None]
"""Fields that are numeric in every run."""


def numeric_columns() -> list[str]:
    """Return the numeric columns, which a search may optimise."""
    return [name for name, kind in {**CONFIG, **RESULTS}.items() if kind in (int, float)]


_JSON = ("task_order", "task_classes")
"""Fields stored as JSON, unless they hold the name of an order."""


def config_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that `config_from_row` reads: the run's id, config fields, options and former options."""
    present = set(columns)
    return [*FIELDS, *(name for name in ("run_id", *OPTIONS, *FORMER_OPTIONS) if name in present)]


def config_row(config: RunConfig) -> dict[str, Any]:
    """Return a config as columns: scalars, text and None unchanged, anything else as JSON."""
    return {
        name: value if value is None or CONFIG.get(name) is not str or isinstance(value, str) else json.dumps(value)
        for name, value in config.model_dump(mode="json").items()
    }


def _fields_from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config fields and options of a row as JSON values; other columns are ignored.

    Raises:
        DamagedStore: a number is missing or not finite, which clops-sweep never writes.
    """
    values = {name: row[name] for name in RunConfig.model_fields}
    for name in _JSON:
        if not isinstance(values[name], str):  # pandas reads null as nan
            values[name] = None
        elif values[name] != "sequential":
            values[name] = json.loads(values[name])
    values |= {
        name: None for name in values if name in DEFAULTS and DEFAULTS[name] is None and is_missing(values[name])
    }
    for name in _NUMBERS:
        if is_missing(values[name]) or not math.isfinite(values[name]):
            raise DamagedStore(f"run {row['run_id']}: {name} = {values[name]}: expected a finite number")
    return values | {name: row[name] for name in OPTIONS if name in row and not is_missing(row[name])}


def former_settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a stored run used and this version has no longer, by name."""
    settings = {}
    for name, former in FORMER_OPTIONS.items():
        value = row.get(name)
        if not is_missing(value) and value != former.without:
            settings[name] = value
    return settings


def config_from_row(row: Mapping[str, Any]) -> RunConfig:
    """Invert `config_row`; other columns, and options that the run does not use, are ignored.

    Raises:
        UsageError: the run used an option that this version has no longer, so no config computes it.
    """
    for name, value in former_settings(row).items():
        raise UsageError(f"run {row.get('run_id', '')}: {name} = {shown(value)}: {instead_of(name)}")
    DATASETS.register_undeclared(row["dataset"], row["scenario"])
    fields = _fields_from_row(row)
    used = used_options(lambda name: fields.get(name) if name in fields else OPTIONS[name].default)
    return RunConfig(**{name: value for name, value in fields.items() if name not in OPTIONS or name in used})


def origin_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the run with whose model a run of `runs` began; None if it drew its weights."""
    start = STORED_RUN.fullmatch(str(row.get("start_from")))
    return None if start is None else start[1]
