"""Cost of plan, status, reading and compaction on a store of up to 100,000 runs, and how it grows."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.timing import table
from clops_sweep import RunConfig
from clops_sweep.data.preparing.prepare import data_hash, prepare
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.search_space import RunRequest
from clops_sweep.store.compaction import FEW, RUNS_PER_PART
from clops_sweep.store.part_names import compacted
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName
from tests.stores import write_finished

TASKS, EPOCHS, INSTANCES = 6, 20, 240

_PANDAS = """
import json, pathlib, sys, time
import pandas
from tests.stores import write_finished
begun = time.process_time()
runs = len(pandas.read_parquet(sys.argv[1]))
used = time.process_time() - begun
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps([runs, used, int(status["VmHWM"].split()[0]) / 1024]))
"""


def run(space: Callable[[int], object], *, quick: bool) -> str:
    """Return the section of results.md.

    Args:
        space: returns a search space of about a number of runs.
        quick: whether to use small stores.
    """
    sizes = (1_000, 4_000) if quick else (10_000, 30_000, 100_000)
    measured: list[dict[str, float]] = []
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare("synthetic", prepared_root=root / "prepared", data_root=None)
        content = data_hash("synthetic", prepared_root=root / "prepared")
        assert content is not None
        for size in sizes:
            requests = list(space(size).requests())  # type: ignore[attr-defined]
            (root / "grid.py").write_text(f"from benchmarks.storage import space\nSPACE = space({size})\n")
            measured.append(_measured(root, root / f"results-{size}", requests, content))
            counts.append(len(requests))
    rows = []
    for what in measured[0]:
        values = [each[what] for each in measured]
        exponent = np.polyfit(np.log(counts), np.log(np.maximum(values, 1e-6)), 1)[0]
        rows.append([what, *(f"{value:.3g}" for value in values), f"{exponent:.2f}"])
    return (
        "## A large store\n\nSeconds of processor time, where nothing else is said. The store is as sweeps leave it: "
        f"parts of {RUNS_PER_PART:,} runs, fewer of {FEW:,}, and {FEW} runs with parts of their own; "
        f"{TASKS * TASKS * EPOCHS} rows of curves a run. The last column is the exponent of a power law.\n\n"
        + table(["what", *(f"{count:,} runs" for count in counts), "exponent"], rows)
    )


def _measured(root: Path, results: Path, requests: Sequence[RunRequest], content: str) -> dict[str, float]:
    store = RunStore(results)
    store.open_for_writing()
    ids = {request.config.run_id(content): request.config for request in requests}
    run_ids = list(ids)
    with _unsynced():
        last = run_ids[-FEW:]
        for few in _portions(run_ids[:-FEW]):
            for name, content_of in _tables(few, [ids[run_id] for run_id in few], content).items():
                store.parts[name].write_compacted(compacted(few), content_of, few)
        for run_id in last:
            write_finished(store, run_id, _tables([run_id], [ids[run_id]], content))
    found: dict[str, float] = {}
    command = [sys.executable, "-m", "clops_sweep.cli"]
    found["`plan`"] = _command(root, [*command, "plan", "grid.py", "--results", str(results)])
    found["`status`"] = _command(root, [*command, "status", "--results", str(results)])
    read = subprocess.run(
        [sys.executable, "-c", _PANDAS, str(results / "runs")], cwd=root, check=True, capture_output=True, text=True
    )
    count, seconds, megabytes = json.loads(read.stdout)
    assert count == len(ids)
    found["`pandas.read_parquet` of `runs`"] = seconds
    found["memory of a process that did so, MB"] = megabytes
    cell = random.Random(0).sample(run_ids, 20)
    for runs in (5, 20):
        found[f"curves of {runs} runs"] = _seconds(lambda runs=runs: RunStore(results).read("curves", cell[:runs]))
    one, many = (_seconds(lambda some=some: RunStore(results).read("runs", some)) for some in (last[:1], last))
    found["a part of one run, in the table of runs, ms"] = 1e3 * (many - one) / (len(last) - 1)
    with _unsynced():
        begun = time.process_time()
        RunStore(results).compact_if_many()
        found[f"putting {FEW} more runs together, ms a run"] = 1e3 * (time.process_time() - begun) / FEW
    assert len(RunStore(results).statuses()) == len(ids)
    return found


def _portions(run_ids: Sequence[str]) -> Iterator[list[str]]:
    """Yield the runs in the portions in which they are compacted."""
    full = len(run_ids) // RUNS_PER_PART * RUNS_PER_PART
    ends = [*range(0, full, RUNS_PER_PART), *range(full, len(run_ids), FEW), len(run_ids)]
    for start, end in pairwise(ends):
        yield list(run_ids[start:end])


@contextmanager
def _unsynced() -> Iterator[None]:
    """Skip fsync in the block, since waiting for the disk is not measured."""
    synced = os.fsync
    os.fsync = lambda handle: None
    try:
        yield
    finally:
        os.fsync = synced


def _seconds(work: Callable[[], object]) -> float:
    """Return the shorter of two measurements."""
    taken = []
    for _ in range(2):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def _command(root: Path, arguments: list[str]) -> float:
    """Return the processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {
        **os.environ,
        "CLOPS_PREPARED_ROOT": str(root / "prepared"),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    subprocess.run(arguments, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tables(run_ids: Sequence[str], configs: Sequence[RunConfig], content: str) -> dict[TableName, pa.Table]:
    """Return tables of simulated runs with realistic numbers and sizes of rows."""
    draw = np.random.default_rng(len(run_ids))
    count, names = len(run_ids), [f"{2 * task}-{2 * task + 1}" for task in range(TASKS)]

    def of_runs(rows: int) -> pa.Array:
        return pa.array(run_ids).take(pa.array(np.repeat(np.arange(count), rows)))

    def each(values: Sequence[object]) -> pa.Array:
        return pa.array(values).take(pa.array(np.tile(np.arange(len(values)), count)))

    def measures(rows: int, *measured: str) -> dict[str, object]:
        return {name: draw.random(count * rows).round(3) for name in measured}

    of_configs = [config_row(config) for config in configs]
    runs: dict[str, object] = {name: [row[name] for row in of_configs] for name in of_configs[0]}
    constant = {"status": "finished", "data_hash": content, "device": "cpu", "backend": "native", "host": "host"}
    runs |= {name: [value] * count for name, value in constant.items()} | {"run_id": list(run_ids)}
    phases = ("seconds", "seconds_train", "seconds_acquire", "seconds_evaluate")
    runs |= {name: draw.random(count) for name in (*METRICS, *(f"test_{name}" for name in METRICS), *phases)}
    entries, points = 2 * TASKS**2, TASKS * TASKS * EPOCHS
    columns: dict[TableName, dict[str, object]] = {
        "runs": runs,
        "r_matrix": {
            "run_id": of_runs(entries),
            "split": each(["validation"] * TASKS**2 + ["test"] * TASKS**2),
            "trained_on": each([1 + at // TASKS % TASKS for at in range(entries)]),
            "evaluated_on": each([1 + at % TASKS for at in range(entries)]),
            "task": each([names[at % TASKS] for at in range(entries)]),
            **measures(entries, "auc", "accuracy", "balanced_accuracy", "f1"),
        },
        "curves": {
            "run_id": of_runs(points),
            "epoch": each([1 + at // TASKS for at in range(points)]),
            "training_task": each([names[at // (TASKS * EPOCHS)] for at in range(points)]),
            "task": each([names[at % TASKS] for at in range(points)]),
            "loss": draw.random(count * points),
            **measures(points, "auc", "accuracy", "balanced_accuracy", "f1"),
        },
        "instances": {
            "run_id": of_runs(INSTANCES),
            "task": each([names[at * TASKS // INSTANCES] for at in range(INSTANCES)]),
            "instance": each(list(range(INSTANCES))),
            "patient": each([str(at // 8) for at in range(INSTANCES)]),
            "s": draw.random(count * INSTANCES),
            "stored": each([at % 4 == 0 for at in range(INSTANCES)]),
        },
    }
    tables = {}
    for name in EVERY_RUN:
        schema, have = SCHEMAS[name], columns[name]
        rows = len(have["run_id"])  # type: ignore[arg-type]
        arrays = [
            pa.array(have[field.name], field.type) if field.name in have else pa.nulls(rows, field.type)
            for field in schema
        ]
        tables[name] = pa.Table.from_arrays(arrays, schema=schema)
    return tables
