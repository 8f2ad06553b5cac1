"""The four tables of the store: their columns and types, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import pyarrow as pa

from clops_sweep.config import RunConfig

TableName = Literal["runs", "r_matrix", "curves", "instances"]

METRICS = ("auc", "bwt", "bwt_t", "bwt_lambda", "fwt")
"""Validation metrics as columns of `runs`; the test set's have the prefix `test_`."""


def _arrow_type(annotation: Any) -> pa.DataType:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    scalar = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    if annotation in scalar:
        return scalar[annotation]
    if get_origin(annotation) is Literal and all(isinstance(value, str) for value in get_args(annotation)):
        return pa.string()
    return pa.string()  # a choice between types, written as JSON unless it is text


CONFIG_SCHEMA = pa.schema([(name, _arrow_type(info.annotation)) for name, info in RunConfig.model_fields.items()])

RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        *CONFIG_SCHEMA,
        ("status", pa.string()),
        ("error", pa.string()),
        *((metric, pa.float64()) for metric in METRICS),
        *((f"test_{metric}", pa.float64()) for metric in METRICS),
        ("left_out", pa.int64()),
        ("replayed", pa.int64()),
        ("projections", pa.int64()),
        ("projection_failures", pa.int64()),
        ("seconds", pa.float64()),
        ("seconds_train", pa.float64()),
        ("seconds_acquire", pa.float64()),
        ("seconds_evaluate", pa.float64()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("data_hash", pa.string()),
        ("semantics_version", pa.int64()),
        ("package_version", pa.string()),
        ("git_commit", pa.string()),
        ("git_dirty", pa.bool_()),
        ("python", pa.string()),
        ("torch", pa.string()),
        ("ray", pa.string()),
        ("device", pa.string()),
        ("backend", pa.string()),
        ("host", pa.string()),
        ("stack", pa.int64()),
    ]
)
R_MATRIX = pa.schema(
    [
        ("run_id", pa.string()),
        ("split", pa.string()),
        ("trained_on", pa.int64()),
        ("evaluated_on", pa.int64()),
        ("task", pa.string()),
        ("auc", pa.float64()),
    ]
)
CURVES = pa.schema(
    [
        ("run_id", pa.string()),
        ("epoch", pa.int64()),
        ("training_task", pa.string()),
        ("task", pa.string()),
        ("auc", pa.float64()),
        ("loss", pa.float64()),
    ]
)
INSTANCES = pa.schema(
    [
        ("run_id", pa.string()),
        ("task", pa.string()),
        ("instance", pa.int64()),
        ("patient", pa.string()),
        ("label", pa.string()),
        ("s", pa.float64()),
        ("beta", pa.float64()),
        ("stored", pa.bool_()),
        ("times_replayed", pa.int64()),
        ("beta_trajectory", pa.list_(pa.float32())),
    ]
)
SCHEMAS: Mapping[TableName, pa.Schema] = {"runs": RUNS, "r_matrix": R_MATRIX, "curves": CURVES, "instances": INSTANCES}


def config_row(config: RunConfig) -> dict[str, Any]:
    """A config as the columns of `runs`: scalars as they are, anything else as JSON."""
    row = config.model_dump(mode="json")
    return {
        name: value
        if not pa.types.is_string(CONFIG_SCHEMA.field(name).type) or isinstance(value, str)
        else json.dumps(value)
        for name, value in row.items()
    }


def config_from_row(row: dict[str, Any]) -> RunConfig:
    """The inverse of `config_row`; other columns are passed over."""
    values = {name: row[name] for name in RunConfig.model_fields}
    if values["task_order"] != "sequential":
        values["task_order"] = json.loads(values["task_order"])
    return RunConfig(**values)
