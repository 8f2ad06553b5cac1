"""The tables of the store: their columns and Arrow types, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from clops_sweep.experiment.columns import CONFIG, RESULTS
from clops_sweep.experiment.metrics import MEASURES

TableName = Literal["runs", "r_matrix", "curves", "instances", "predictions"]

_ARROW: Mapping[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}

RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        *((name, _ARROW[kind]) for name, kind in CONFIG.items()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("reason", pa.string()),
        *((name, _ARROW[kind]) for name, kind in RESULTS.items()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("data_hash", pa.string()),
        ("prepared_hash", pa.string()),
        ("split_hash", pa.string()),
        ("encoder_hash", pa.string()),
        ("features_hash", pa.string()),
        ("start_hash", pa.string()),
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
        ("plugins", pa.string()),
    ]
)
_R_MATRIX = pa.schema(
    [
        ("run_id", pa.string()),
        ("split", pa.string()),
        ("trained_on", pa.int64()),
        ("evaluated_on", pa.int64()),
        ("task", pa.string()),
        *((measure, pa.float64()) for measure in MEASURES),
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
        *((measure, pa.float64()) for measure in MEASURES if measure != "auc"),
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
PREDICTIONS = pa.schema(
    [
        ("run_id", pa.string()),
        ("trained_on", pa.int64()),
        ("evaluated_on", pa.int64()),
        ("task", pa.string()),
        ("instance", pa.int64()),
        ("patient", pa.string()),
        ("label", pa.string()),
        ("exclusive", pa.bool_()),
    ]
)
"""Followed by `target_c` (int8), `probability_c` and `logit_c` (float32) for every output c of the network."""

SCHEMAS: Mapping[TableName, pa.Schema] = {
    "runs": RUNS,
    "r_matrix": _R_MATRIX,
    "curves": CURVES,
    "instances": INSTANCES,
    "predictions": PREDICTIONS,
}

EVERY_RUN: tuple[TableName, ...] = ("runs", "r_matrix", "curves", "instances")
"""The tables that contain every finished run. `predictions` contains runs that keep them."""

OTHERS: tuple[TableName, ...] = ("r_matrix", "curves", "instances", "predictions")
"""The tables other than `runs`."""
