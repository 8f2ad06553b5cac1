"""Store and planner at 10,000 runs. The runs never took place: only their number matters."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import table
from clops_sweep import RunConfig, SearchSpace
from clops_sweep.estimate import estimate
from clops_sweep.plan import make_plan
from clops_sweep.space import RunRequest
from clops_sweep.store import RunStore
from clops_sweep.tables import SCHEMAS, TableName, config_row

HASH = "benchmark"
SYNCED = 200


def space(runs: int) -> SearchSpace:
    """Cells of b, a and T with five seeds each."""
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
    """The section of the results."""
    asked = space(1_000 if quick else 10_000)
    rows: list[list[str]] = []

    def measure(what: str, work: Callable[[], object], per: int | None = None) -> None:
        start = time.perf_counter()
        work()
        taken = time.perf_counter() - start
        rows.append([what, f"{taken:.2f}", "" if per is None else f"{1e3 * taken / per:.2f}"])

    requests = list(asked.requests())
    measure(f"expand a search space of {len(requests):,} runs", lambda: list(asked.requests()), len(requests))
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "results")
        store.open_for_writing()
        measure("plan, nothing finished", lambda: make_plan(requests, store, lambda _: HASH), len(requests))
        first, rest = requests[:SYNCED], requests[SYNCED:]
        measure(f"write {SYNCED} runs, synced to the disk", lambda: _fill(store, first), len(first))
        for name in SCHEMAS:
            _fill_unsynced(store, name, rest)
        measure("which runs are finished", store.statuses)
        measure("plan, everything finished", lambda: make_plan(requests, store, lambda _: HASH), len(requests))
        plan = make_plan(requests, store, lambda _: HASH)
        measure("estimate what half of them would cost", lambda: estimate(plan.runs[::2], plan.runs, store))
        measure("read the table of runs", lambda: store.read("runs"))
        measure("compact the store", store.compact)
        measure("which runs are finished, compacted", store.statuses)
        measure("read the table of runs, compacted", lambda: store.read("runs"))
    return "## Store and planner\n\nBy the clock.\n\n" + table(["what", "seconds", "ms a run"], rows)


def _fill(store: RunStore, requests: Sequence[RunRequest]) -> None:
    for request in requests:
        store.write_finished(request.config.run_id(HASH), {name: _part(name, request) for name in SCHEMAS})


def _fill_unsynced(store: RunStore, name: TableName, requests: Sequence[RunRequest]) -> None:
    """The same parts without a wait for the disk: what it would take is measured already."""
    folder = Path(store.folder(name))
    for request in requests:
        pq.write_table(_part(name, request), folder / f"finished-{request.config.run_id(HASH)}.parquet")


def _part(name: TableName, request: RunRequest) -> pa.Table:
    """One row of a run; the columns that nobody looks at here are empty."""
    schema = SCHEMAS[name]
    row = {"run_id": request.config.run_id(HASH), **config_row(request.config), "status": "finished", "seconds": 1.0}
    return pa.Table.from_pylist([{column: row.get(column) for column in schema.names}], schema=schema)
