"""Writing to a store at once, as tests do; a sweep writes every ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.store.rows import DataHash, Facts, last_line, rows_of_failure, rows_of_result
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.writing import commit

if TYPE_CHECKING:
    from clops_sweep.learning.result import RunResult


def write_finished(
    store: RunStore, run_id: str, tables: Mapping[TableName, pa.Table], models: Mapping[int, bytes] | None = None
) -> None:
    """Write a run, with its models if the store keeps them."""
    if models and store.keep_models:
        store.models.write(run_id, models, store.keep_models)
    if not store.is_there():
        store.open_for_writing()
    store.add(run_id, tables)
    store.flush()


def record_result(
    store: RunStore, run: Mapping[str, RunConfig], result: RunResult, data_hash: DataHash, facts: Facts
) -> None:
    """Write a finished run, given as its id and config."""
    ((run_id, config),) = run.items()
    write_finished(store, run_id, rows_of_result(run_id, config, result, data_hash, facts), result.models)


def record_failure(
    store: RunStore, runs: Mapping[str, RunConfig], error: str, data_hash: DataHash, facts: Facts
) -> None:
    """Write runs, by id, that failed with an error."""
    for run_id, config in runs.items():
        write_finished(store, run_id, rows_of_failure(run_id, config, error, last_line(error), data_hash, facts))


def write_many_finished(store: RunStore, configs: Iterable[RunConfig], data_hash: str) -> None:
    """Write many finished runs in one part; only their table `runs` has rows."""
    metrics = {prefix + name: 0.75 for prefix in ("", "test_") for name in METRICS}
    common = metrics | {"status": "finished", "seconds": 1.0, "device": "cpu", "data_hash": data_hash}
    rows = []
    for config in configs:
        row = config_row(config) | common
        rows.append(row | {"run_id": config.run_id(data_hash), "semantics_version": SEMANTICS_VERSION})
    store.open_for_writing()
    with store.locked():
        commit(store.parts, [], SCHEMAS, {"runs": [pa.Table.from_pylist(rows, schema=SCHEMAS["runs"])]})
