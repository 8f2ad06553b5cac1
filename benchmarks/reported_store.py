"""A store of many generated runs, written column by column. Nothing was trained, and its numbers mean nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.parts import rows_of
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.writing import RUNS_PER_PART, commit

TASKS = ("0-1", "2-3", "4-5", "6-7", "8-9", "10-11")
_DATA_HASH = "generated0001"
RUNS_PER_RATE = 2_000
"""Runs of a grid with one learning rate."""

_TEMPLATES = 40
_GENERATED = Path(__file__).parents[1] / "tests/analysis/generated_store.py"


_SPACE = """
from clops_sweep import RunConfig, SearchSpace

VARIANTS = {
    "CLOPS": {},
    "Random storage": {"storage_order": "random"},
    "Random acquisition": {"acquisition": "random"},
    "Random storage and acquisition": {"storage_order": "random", "acquisition": "random"},
}
TENTHS = [i / 10 for i in range(1, 11)]
AXES = {"storage_fraction": TENTHS, "acquisition_fraction": TENTHS, "variant": VARIANTS}
RATES = [i / 10_000 for i in range(1, %d)]
SPACE = SearchSpace("large_grid", RunConfig(), {**AXES, "learning_rate": RATES}, seeds=range(5))
"""


def write_grid(runs: int, file: Path) -> SearchSpace:
    """Write a grid of 10 x 10 cells, 4 variants, 5 seeds, and learning rates up to the number of runs; return it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_SPACE % (max(1, runs // RUNS_PER_RATE) + 1))
    return load_spaces(file)[0]


def fill(store: RunStore, space: SearchSpace, data_hash: str = _DATA_HASH) -> int:
    """Write all runs that a search space requests, and return their number.

    All tables except `runs` repeat those of a few runs.

    Args:
        store: the store, which need not exist.
        space: the search space, without a search.
        data_hash: content hash of the data of all runs.
    """
    generated = _generated()
    store.open_for_writing()
    configs = {request.config.run_id(data_hash): request.config for request in space.requests()}
    ids = list(configs)
    few = [
        generated.generated_tables(config, run_id, data_hash, tasks=TASKS, epochs=2, instances=4)
        for run_id, config in list(configs.items())[:_TEMPLATES]
    ]
    noise = np.random.default_rng(0).normal(0, 0.01, (len(ids), 5)).tolist()
    rows = []
    for (run_id, config), by in zip(configs.items(), noise, strict=True):
        rows.append(_row(generated, config, run_id, by, data_hash))
    tables = {name: _again([it[name] for it in few], ids) for name in few[0] if name != "runs"}
    schema = few[0]["runs"].schema
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    of_all: dict[TableName, pa.Table] = {"runs": pa.table(columns, schema=schema), **tables}
    with store.locked():
        for start in range(0, len(ids), RUNS_PER_PART):
            part = set(ids[start : start + RUNS_PER_PART])
            commit(store.parts, [], SCHEMAS, {name: [rows_of(rows, part)] for name, rows in of_all.items()})
    return len(ids)


def _row(
    generated: ModuleType, config: RunConfig, run_id: str, noise: Sequence[float], data_hash: str
) -> dict[str, Any]:
    b, a = config.storage_fraction, config.acquisition_fraction
    unordered = config.storage_order == "random"
    bwt = -0.01 - 0.05 * (1 - b) * (1.5 if unordered else 1.0)
    return {
        **config_row(config),
        **generated.provenance(data_hash, SEMANTICS_VERSION, generated.START),
        **{"run_id": run_id, "status": "finished", "left_out": 0, "replayed": round(1000 * b * a)},
        "auc": 0.72 + 0.05 * b**0.5 + 0.04 * a - 0.03 * unordered + noise[0],
        **{name: bwt + it for name, it in zip(("bwt", "bwt_t", "bwt_lambda"), noise[1:4], strict=True)},
        "seconds": 20 + 60 * b * a + 100 * noise[4],
    }


def _again(few: Sequence[pa.Table], ids: Sequence[str]) -> pa.Table:
    """Return the rows of a few runs of equal size, repeated for many run ids."""
    whole, each = pa.concat_tables(few), few[0].num_rows
    starts = np.arange(len(ids)) % len(few) * each
    rows = whole.take(pa.array((starts[:, None] + np.arange(each)).ravel()))
    named = pa.array(np.repeat(np.array(ids, dtype=object), each), pa.string())
    return rows.set_column(rows.schema.get_field_index("run_id"), rows.schema.field("run_id"), named)


def _generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated", _GENERATED)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
