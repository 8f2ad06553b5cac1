"""Sweeps from the command line: commands on a store of 10,000 runs, the start of a sweep, and the cost of a trial."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pandas as pd

from benchmarks.storage import fill, space
from benchmarks.timing import table
from clops_sweep import RunConfig
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.run_store import RunStore

GRID = """
from benchmarks.storage import space
SPACE = space({runs})
"""

TRIVIAL = """
from clops_sweep import RunConfig, SearchSpace
SPACE = SearchSpace("trivial", RunConfig(strategy="finetune", epochs_per_task=1), seeds=range({runs}))
"""


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare("synthetic", prepared_root=root / "prepared", data_root=None)
        parts = [
            "## Commands on a large store\n\nEach a process of its own, from its start to its end.\n\n"
            + _commands(root, 1_000 if quick else 10_000),
            "## A sweep of trivial runs\n\nBy the clock, and processor time of all its processes together.\n\n"
            + _trivial(root, 20 if quick else 200),
        ]
    return "\n\n".join(parts)


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "CLOPS_PREPARED_ROOT": str(root / "prepared"), "COLUMNS": "120"}


def _commands(root: Path, runs: int) -> str:
    """Measure commands on a store of finished runs."""
    (root / "grid.py").write_text(GRID.format(runs=runs))
    asked = space(runs)
    content = data_hash("synthetic", prepared_root=root / "prepared")
    assert content is not None
    requests = list(asked.requests())
    distinct = len({request.config.run_id(content) for request in requests})  # equivalent cells share a run
    store = RunStore(root / "results")
    store.open_for_writing()
    fill(store, requests, content)
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
            f"import pandas; assert len(pandas.read_parquet({str(root / 'results' / 'runs')!r})) == {distinct}",
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
    """Measure the time to the first trial, and the overhead per trial, from sweeps with different numbers of runs."""
    begun, few, used_few = _swept(root, max(2, runs // 10))
    first = few["started_at"].min().timestamp() - begun
    begun, many, used = _swept(root, runs)
    started = sorted(when.timestamp() for when in many["started_at"])
    cores = len(os.sched_getaffinity(0))
    # Until the last one starts, every core always has a trial.
    by_the_clock = cores * (started[-1] - started[0]) / (len(many) - cores)
    per_trial = (used - used_few) / (len(many) - len(few))
    computed, alone = float(many["seconds"].mean()), _alone(root)
    return table(
        ["what", "seconds", "processor time"],
        [
            ["from the command to the first trial", f"{first:.2f}", ""],
            [f"a trial, of {runs}, on {cores} cores", f"{by_the_clock:.3f}", f"{per_trial:.3f}"],
            ["training, acquisition and evaluation of its run", f"{computed:.3f}", f"{alone:.3f}"],
            ["everything else", f"{by_the_clock - computed:.3f}", f"{per_trial - alone:.3f}"],
            ["a whole command without the trials", "", f"{used - runs * per_trial:.1f}"],
        ],
    )


def _swept(root: Path, runs: int) -> tuple[float, pd.DataFrame, float]:
    """Run a sweep from the command line; return its start, its table `runs` and the processor time of all processes."""
    (root / "trivial.py").write_text(TRIVIAL.format(runs=runs))
    results, tag = root / f"trivial-{runs}", f"CLOPS_BENCHMARK={uuid.uuid4().hex}"
    arguments = [
        sys.executable,
        "-m",
        "clops_sweep.cli",
        "trivial.py",
        "--results",
        str(results),
        "--no-report",
    ]
    begun = time.time()
    environment = {**_environment(root), **dict([tag.split("=")])}
    process = subprocess.Popen(arguments, cwd=root, env=environment, stdout=subprocess.DEVNULL)
    used: dict[int, float] = {}
    while process.poll() is None:
        used |= _used_by(tag)
        time.sleep(0.2)
    assert process.returncode == 0
    found = pd.read_parquet(results / "runs")
    assert (found["status"] == "finished").all()
    return begun, found, sum(used.values())


def _used_by(tag: str) -> dict[int, float]:
    """Return the processor time so far of every process with a variable in its environment, including Ray's."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if tag.encode() in (folder / "environ").read_bytes():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / ticks
        except OSError:  # it has ended, or belongs to another user
            continue
    return used


def _alone(root: Path) -> float:
    """Return the processor time of such a run in this process."""
    frames = open_frames("synthetic", prepared_root=root / "prepared")
    config = RunConfig(strategy="finetune", epochs_per_task=1)
    ContinualRun(config, frames).run()
    begun = time.process_time()
    for _ in range(5):
        ContinualRun(config, frames).run()
    return (time.process_time() - begun) / 5
