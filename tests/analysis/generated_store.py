"""Test input: stores filled with generated numbers. Nothing here was trained, and nothing of it is a result."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.stores import record_failure

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def generated_tables(
    config: RunConfig,
    run_id: str,
    data_hash: str = "generated0001",
    semantics_version: int = SEMANTICS_VERSION,
    tasks: Sequence[str] = ("0-1", "2-3", "4-5", "6-7"),
    epochs: int = 5,
    instances: int = 24,
    started_at: datetime = START,
) -> dict[str, pa.Table]:
    """The four tables of one run that never took place, from a generator seeded by its config."""
    rng = np.random.default_rng([config.seed, config.split_seed, int(run_id[:8], 16)])
    n = len(tasks)
    b, a = config.storage_fraction, config.acquisition_fraction
    replays = config.strategy == "clops"
    random_storage = config.storage_order == "random"
    skill = 0.72 + 0.05 * np.sqrt(b) + 0.04 * a - 0.03 * random_storage if replays else 0.66
    forgetting = (0.01 + 0.05 * (1 - b) * (1.5 if random_storage else 1.0)) if replays else 0.12
    level = skill + 0.1 * rng.random(n) + rng.normal(0, 0.01, n)
    curve_rows: list[dict[str, Any]] = []
    matrix = np.full((n, n), 0.5)
    for epoch in range(1, n * epochs + 1):
        trained = (epoch - 1) // epochs
        for j, task in enumerate(tasks):
            if trained < j:
                auc = 0.45 + 0.05 * np.sin(epoch + j)
            elif trained == j:
                auc = level[j] - 0.3 * np.exp(-((epoch - 1) % epochs + 1) / 2)
            else:
                auc = level[j] - forgetting * (trained - j) + 0.02 * np.sin(epoch * 0.7 + j)
            auc = float(np.clip(auc + rng.normal(0, 0.008), 0, 1))
            curve_rows.append(
                {
                    "run_id": run_id,
                    "epoch": epoch,
                    "training_task": tasks[trained],
                    "task": task,
                    "auc": auc,
                    "loss": 1 - auc,
                }
            )
            if epoch % epochs == 0:
                matrix[trained, j] = auc
    matrices = {"validation": matrix, "test": np.clip(matrix - 0.02, 0, 1)}
    return {
        "runs": _table(
            "runs",
            [
                config_row(config)
                | {"run_id": run_id, "status": "finished", "left_out": 0, "replayed": round(1000 * b * a) * replays}
                | metrics(matrices["validation"])
                | {f"test_{name}": value for name, value in metrics(matrices["test"]).items()}
                | provenance(data_hash, semantics_version, started_at)
                | {"seconds": 20 + 60 * b * a * replays + config.mc_samples * 0.2 + float(rng.random())}
            ],
        ),
        "r_matrix": _table(
            "r_matrix",
            [
                {
                    "run_id": run_id,
                    "split": split,
                    "trained_on": i + 1,
                    "evaluated_on": j + 1,
                    "task": tasks[j],
                    "auc": values[i, j],
                }
                for split, values in matrices.items()
                for i in range(n)
                for j in range(n)
            ],
        ),
        "curves": _table("curves", curve_rows),
        "instances": _table("instances", _instances(config, run_id, tasks, instances, rng)),
    }


def metrics(matrix: np.ndarray) -> dict[str, float]:
    """The stored metrics of an R matrix."""
    n = len(matrix)
    gains = [[matrix[j + t, j] - matrix[j, j] for t in range(1, n - j)] for j in range(n - 1)]
    return {
        "auc": float(matrix[-1].mean()),
        "bwt": float(np.mean([g[-1] for g in gains])),
        "bwt_t": float(np.mean([g[0] for g in gains])),
        "bwt_lambda": float(np.mean([np.mean(g) for g in gains])),
        "fwt": float(np.mean([matrix[j - 1, j] - 0.5 for j in range(1, n)])),
    }


def provenance(data_hash: str, semantics_version: int, started_at: datetime) -> dict[str, Any]:
    return {
        "seconds_train": 15.0,
        "seconds_acquire": 3.0,
        "seconds_evaluate": 1.0,
        "started_at": started_at,
        "data_hash": data_hash,
        "semantics_version": semantics_version,
        "package_version": "0.1.0",
        "git_commit": "0" * 40,
        "git_dirty": False,
        "python": "3.11.7",
        "torch": "2.13.0",
        "ray": "2.56.0",
        "device": "cpu",
        "backend": "cpu",
        "host": "generated",
    }


def write_given_runs(
    store: RunStore, values: Iterable[tuple[RunConfig, dict[str, float]]], data_hash: str = "generated0001"
) -> None:
    """Finished runs with exactly these values in `runs` and nothing in the other tables."""
    rows = []
    for config, given in values:
        row = config_row(config) | {"run_id": config.run_id(data_hash), "status": "finished"}
        rows.append(row | provenance(data_hash, config.semantics_version, START) | given)
    runs = _table("runs", rows)
    nothing = {name: schema.empty_table() for name, schema in SCHEMAS.items()}
    found = {}
    for position, row in enumerate(rows):
        found[row["run_id"]] = nothing | {"runs": runs.slice(position, 1)}
    _write_together(store, found)


def _write_together(store: RunStore, runs: Mapping[str, Mapping[str, pa.Table]]) -> None:
    """Finished runs in one part per table."""
    if not store.is_there():
        store.open_for_writing()
    for run_id, tables in runs.items():
        store.add(run_id, tables)
    store.flush()


def write_generated_runs(
    store: RunStore,
    spaces: Iterable[SearchSpace],
    *,
    data_hash: str = "generated0001",
    semantics_version: int = SEMANTICS_VERSION,
    keep: Callable[[RunConfig], bool] = lambda config: True,
    fails: Callable[[RunConfig], bool] = lambda config: False,
    started_at: datetime = START,
    **sizes: Any,
) -> list[str]:
    """Fills a store through its own writer; returns the ids of the runs that are there as finished."""
    written = {}
    for position, request in enumerate(r for space in spaces for r in space.requests()):
        config = request.config
        if not keep(config):
            continue
        run_id = config.run_id(data_hash, semantics_version)
        when = started_at + timedelta(minutes=position)
        if fails(config):
            write_failed_run(store, config, run_id, data_hash, when)
            continue
        written[run_id] = generated_tables(config, run_id, data_hash, semantics_version, started_at=when, **sizes)
    _write_together(store, written)
    return list(written)


def write_failed_run(
    store: RunStore, config: RunConfig, run_id: str, data_hash: str = "generated0001", started_at: datetime = START
) -> None:
    """A run that a worker gave up, as a sweep records it; tracebacks differ with the seed, their cause does not."""
    known = ("package_version", "git_commit", "git_dirty", "python", "torch", "ray", "device", "host", "started_at")
    facts = provenance(data_hash, SEMANTICS_VERSION, started_at)
    error = traceback_of_depth(config.seed)
    record_failure(store, {run_id: config}, error, lambda config: data_hash, {name: facts[name] for name in known})


def traceback_of_depth(calls: int) -> str:
    """What Python says of an exception that was raised so many calls further down."""

    def fail(calls: int) -> None:
        if calls == 0:
            raise ValueError("generated failure")
        fail(calls - 1)

    try:
        fail(calls)
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


def _instances(
    config: RunConfig, run_id: str, tasks: Sequence[str], count: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    rows = []
    by_instance = np.random.default_rng(7)  # difficulty belongs to the instance, so all runs share it
    for k, task in enumerate(tasks):
        intrinsic = by_instance.normal(0, 0.02, count)
        s = 18.85 + 0.03 * (k % 3) + intrinsic + rng.normal(0, 0.01, count)
        stored = np.zeros(count, dtype=bool)
        if config.strategy == "clops":
            stored[np.argsort(-s)[: max(1, int(count * config.storage_fraction))]] = True
        replayed = np.where(stored, rng.integers(0, 6, count), 0) * (k < len(tasks) - 1)
        for i in range(count):
            rows.append(
                {
                    "run_id": run_id,
                    "task": task,
                    "instance": k * count + i,
                    "patient": f"p{(k * count + i) // 4:03d}",
                    "label": (task.split("-") * 2)[i % 2],
                    "s": float(s[i]) if config.storage_order != "random" and config.strategy == "clops" else None,
                    "beta": float(s[i] / 19),
                    "stored": bool(stored[i]),
                    "times_replayed": int(replayed[i]),
                }
            )
    return rows


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = SCHEMAS[name]
    return pa.Table.from_pylist([{field: row.get(field) for field in schema.names} for row in rows], schema=schema)


assert set(METRICS) >= set(metrics(np.eye(3)))
