"""Sweeps as a user meets them: commands on a store of 10,000 runs, the start of a sweep, and what a trial costs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks.storage import fill, space
from benchmarks.timing import table
from clops_sweep.data.prepare import data_hash, prepare
from clops_sweep.store import RunStore

GRID = """
from benchmarks.storage import space
SPACE = space({runs})
"""

TRIVIAL = """
from clops_sweep import RunConfig, SearchSpace
SPACE = SearchSpace("trivial", RunConfig(strategy="finetune", epochs_per_task=1), seeds=range({runs}))
"""


def run(*, quick: bool) -> str:
    """The section of the results."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare("synthetic", prepared_root=root / "prepared", data_root=None)
        parts = [
            "## Commands on a large store\n\nEach a process of its own, from its start to its end.\n\n"
            + _commands(root, 1_000 if quick else 10_000),
            "## A sweep of trivial runs\n\nBy the clock, on all cores.\n\n" + _trivial(root, 20 if quick else 200),
            "## Memory of the driver\n\n" + _memory(root, *((10, 3) if quick else (100, 4))),
        ]
    return "\n\n".join(parts)


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "CLOPS_PREPARED_ROOT": str(root / "prepared"), "COLUMNS": "120"}


def _commands(root: Path, runs: int) -> str:
    """All runs finished, all but the last hundreds of them compacted, as a sweep leaves them."""
    (root / "grid.py").write_text(GRID.format(runs=runs))
    asked = space(runs)
    content = data_hash("synthetic", prepared_root=root / "prepared")
    assert content is not None
    requests = list(asked.requests())
    store = RunStore(root / "results")
    last = len(requests) - len(requests) // 20
    for start in range(0, last, 2000):
        fill(store, requests[start : min(start + 2000, last)], content)
        store.compact()
    fill(store, requests[last:], content)
    command = [sys.executable, "-m", "clops_sweep.cli"]
    here = ["--results", str(root / "results")]
    rows = []
    for what, arguments in {
        f"plan, {len(requests):,} runs, all finished": [*command, "plan", "grid.py", *here],
        "plan, as many again pending": [*command, "plan", "grid.py", "--seeds", "10", *here],
        "status": [*command, "status", *here],
        "status of the search space": [*command, "status", "grid.py", *here],
        "show": [*command, "show", requests[0].config.run_id(content), *here],
        "python, and pandas.read_parquet of runs": [
            sys.executable,
            "-c",
            f"import pandas; assert len(pandas.read_parquet({str(root / 'results' / 'runs')!r})) == {len(requests)}",
        ],
    }.items():
        wall, used = _timed(arguments, root)
        rows.append([what, f"{wall:.2f}", f"{used:.2f}"])
    begun, used = time.perf_counter(), time.process_time()
    pd.read_parquet(root / "results" / "runs")
    rows.append(
        ["pandas.read_parquet of runs", f"{time.perf_counter() - begun:.2f}", f"{time.process_time() - used:.2f}"]
    )
    return table(["what", "seconds", "processor time"], rows)


def _timed(arguments: list[str], root: Path) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    repository = Path(__file__).parents[1]
    environment = {**_environment(root), "PYTHONPATH": str(repository)}
    subprocess.run(arguments, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _trivial(root: Path, runs: int) -> str:
    """From the command to the first trial, and what a trial costs beyond its run while the sweep is under way."""
    (root / "trivial.py").write_text(TRIVIAL.format(runs=runs))
    results = root / "trivial"
    begun = time.time()
    arguments = [sys.executable, "-m", "clops_sweep.cli", "trivial.py", "--results", str(results), "--no-report"]
    subprocess.run(arguments, cwd=root, env=_environment(root), check=True, stdout=subprocess.DEVNULL)
    ended = time.time()
    table_of_runs = pd.read_parquet(results / "runs").sort_values("started_at")
    assert (table_of_runs["status"] == "finished").all()
    started = table_of_runs["started_at"].map(lambda when: when.timestamp()).to_numpy()
    # Until the last one starts, every core always has a trial.
    cores = len(os.sched_getaffinity(0))
    per_trial = cores * (started[-1] - started[0]) / (runs - cores)
    computed = float(table_of_runs["seconds"].mean())
    return table(
        ["what", "seconds"],
        [
            ["from the command to the first trial", f"{started[0] - begun:.2f}"],
            [f"a trial, of {runs}, on {cores} cores: from its start to the start of the next", f"{per_trial:.3f}"],
            ["of that, training, acquisition and evaluation", f"{computed:.3f}"],
            ["of that, everything else", f"{per_trial - computed:.3f}"],
            ["the whole command", f"{ended - begun:.1f}"],
        ],
    )


def _memory(root: Path, shard: int, shards: int) -> str:
    """Resident memory of a driver after each Tune run, of which a sweep of many runs has several."""
    (root / "many.py").write_text(TRIVIAL.format(runs=shard * shards))
    code = f"from benchmarks.sweeps import drive; drive({str(root)!r}, {shard})"
    environment = {**_environment(root), "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    megabytes = json.loads(done.stdout.splitlines()[-1])
    rows = [[f"{(index + 1) * shard:,}", f"{value:.0f}"] for index, value in enumerate(megabytes)]
    return table(["runs done", "megabytes"], rows)


def drive(folder: str, shard: int) -> None:
    """A sweep in this process, in Tune runs of so many jobs; prints the megabytes after each."""
    from clops_sweep import sweep
    from clops_sweep.asked import Asked
    from clops_sweep.display import SweepDisplay

    root = Path(folder)
    asked = Asked((root / "many.py",), str(root / "many"), None, root / "prepared")
    sweep._JOBS_PER_TUNE_RUN = shard
    megabytes: list[float] = []
    run_jobs = sweep._run_jobs

    def measured(*arguments: object) -> None:
        run_jobs(*arguments)  # type: ignore[arg-type]
        megabytes.append(_resident())

    sweep._run_jobs = measured  # type: ignore[assignment]
    asked.store.open_for_writing()
    pending = asked.plan().of("pending")
    with SweepDisplay([]) as display:
        outcome = sweep.run_sweep(
            pending,
            asked.frames([run.config for run in pending]),
            asked.store,
            asked.work_folder,
            sweep.Resources(),
            display,
        )
    assert outcome.finished == len(pending)
    print(json.dumps(megabytes))


def _resident() -> float:
    """Resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
