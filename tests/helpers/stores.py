"""Writing to a store at once, as tests do; a sweep writes every ten seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from clops_sweep.store.rows import DataHash, Facts, Runs, rows_of_failure, rows_of_result
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName

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


def record_result(store: RunStore, runs: Runs, result: RunResult, data_hash: DataHash, facts: Facts) -> None:
    """Write the runs of a result."""
    for run_id, tables in rows_of_result(runs, result, data_hash, facts).items():
        write_finished(store, run_id, tables, result.models.get(run_id))


def record_failure(store: RunStore, runs: Runs, error: str, data_hash: DataHash, facts: Facts) -> None:
    """Write runs that failed with an error."""
    for run_id, tables in rows_of_failure(runs, error, data_hash, facts).items():
        write_finished(store, run_id, tables)
