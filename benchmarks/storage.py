"""Store and planner at 10,000 and 100,000 runs. The runs are simulated: only their number matters."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.timing import table
from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.spaces.grid import RunRequest
from clops_sweep.planning.costs import estimate
from clops_sweep.planning.plan import make_plan
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName

HASH = "benchmark"
SYNCED, RUNS_PER_FLUSH = 200, 500


def space(runs: int) -> SearchSpace:
    """Return a search space over b, a and T with five seeds."""
    cells = runs // 5
    side = max(1, int(np.sqrt(cells / 4)))
    shares = [round((i + 1) / side, 6) for i in range(side)]
    return SearchSpace(
        "grid",
        RunConfig(),
        {"storage_fraction": shares, "acquisition_fraction": shares, "mc_samples": [5, 10, 20, 50]},
        seeds=range(5),
    )


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    asked = space(1_000 if quick else 10_000)
    rows: list[list[str]] = []

    def measure(what: str, work: Callable[[], object], per: int | None = None) -> None:
        wall, used = time.perf_counter(), time.process_time()
        work()
        wall, used = time.perf_counter() - wall, time.process_time() - used
        rows.append([what, f"{wall:.2f}", f"{used:.2f}", "" if per is None else f"{1e3 * used / per:.2f}"])

    requests = list(asked.requests())
    count = len(requests)
    measure(f"expand a search space of {count:,} runs", lambda: list(asked.requests()), count)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "results")
        store.open_for_writing()
        measure("plan, nothing finished", lambda: make_plan(requests, store, lambda _: HASH), count)
        first, rest = requests[:SYNCED], requests[SYNCED:]
        measure(f"write {SYNCED} runs in one part, synced to the disk", lambda: _record(store, first), len(first))
        fill(store, rest, HASH)
        measure("which runs are finished", store.statuses)
        measure("plan, everything finished", lambda: make_plan(requests, store, lambda _: HASH), count)
        plan = make_plan(requests, store, lambda _: HASH)
        measure("estimate what half of them would cost", lambda: estimate(plan.asked[::2], plan.asked, store))
        measure("read the table of runs", lambda: store.read("runs"), count)
        measure("read three of its columns", lambda: store.read("runs", columns=["run_id", "status", "auc"]), count)
        measure("read the learning curves", lambda: store.read("curves"), count)
    return (
        "## Store and planner\n\nBy the clock, and processor time of the process; the last column is of the latter.\n\n"
        + table(["what", "seconds", "processor time", "ms a run"], rows)
    )


def fill(store: RunStore, requests: Sequence[RunRequest], content: str) -> None:
    """Write parts as a sweep does, without fsync, which is measured separately."""
    synced = os.fsync
    os.fsync = lambda handle: None
    try:
        for number, request in enumerate(requests, 1):
            store.add(request.config.run_id(content), _tables(request, content))
            if number % RUNS_PER_FLUSH == 0:
                store.flush()
        store.flush()
    finally:
        os.fsync = synced


def _record(store: RunStore, requests: Sequence[RunRequest]) -> None:
    for request in requests:
        store.add(request.config.run_id(HASH), _tables(request, HASH))
    store.flush()


def _tables(request: RunRequest, content: str) -> dict[TableName, pa.Table]:
    """Return the tables of a run with six tasks of twenty epochs; columns that are not read here are empty."""
    run_id = request.config.run_id(content)
    common = {"run_id": [run_id], **{name: [value] for name, value in config_row(request.config).items()}}
    common |= {"status": ["finished"], "auc": [0.75], "device": ["cpu"], "data_hash": [content], "host": ["host"]}
    common |= {name: [1.0] for name in ("seconds", "seconds_train", "seconds_acquire", "seconds_evaluate")}
    tasks, epochs, instances = 6, 20, 240
    numbers = np.random.default_rng(request.config.seed).random(tasks * tasks * epochs)
    columns: dict[TableName, dict[str, Sequence[object]]] = {
        "runs": common,
        "r_matrix": {"run_id": [run_id] * tasks**2, "auc": numbers[: tasks**2]},
        "curves": {"run_id": [run_id] * len(numbers), "auc": numbers, "loss": numbers},
        "instances": {"run_id": [run_id] * instances, "instance": range(instances), "s": numbers[:instances]},
    }
    tables = {}
    for name in EVERY_RUN:
        schema = SCHEMAS[name]
        rows = len(columns[name]["run_id"])
        arrays = [pa.array(columns[name].get(field.name, [None] * rows), field.type) for field in schema]
        tables[name] = pa.table(arrays, schema=schema)
    return tables
