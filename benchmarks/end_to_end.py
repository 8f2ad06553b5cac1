"""Duration of a complete sweep of many short runs with Ray, and processor time of the driver.

``python -m benchmarks.end_to_end CORES SECONDS RUNS`` measures one such sweep, over runs that sleep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.sleeping import SPACE
from benchmarks.timing import table

_SITE = """
import atexit
import sys
import time

def note(what, seconds):
    with open({folder!r} + "/" + what, "a") as file:
        file.write(f"{{seconds}}\\n")
"""
"""A `sitecustomize` module, which Python runs in every process."""

_DRIVER = """
import atexit
import time

from sitecustomize import note

from clops_sweep.cli.command import main

atexit.register(lambda: note("driver", time.process_time()))
main()
"""


@dataclass(frozen=True)
class Whole:
    """Cost of a sweep, from the command to its end.

    Attributes:
        cores: number of workers.
        seconds: sleep of each run.
        runs: number of runs.
        clock: wall-clock seconds.
        driver: processor time of the driver, which writes the store.
        parts: number of parts of the table `runs` at the end.
    """

    cores: int
    seconds: float
    runs: int
    clock: float
    driver: float
    parts: int


def whole(cores: int, seconds: float, runs: int) -> Whole:
    """Measure a sweep, and check that every run is in the table exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "space.py").write_text(SPACE.format(folder=folder, seconds=seconds, runs=runs))
        (root / "sitecustomize.py").write_text(_SITE.format(folder=folder))
        (root / "driver.py").write_text(_DRIVER)
        environment = {
            **os.environ,
            "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": cores}),
            "CLOPS_PREPARED_ROOT": str(root / "prepared"),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), folder]),
        }
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "driver.py", "space.py", "--no-report"],
            cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        clock = time.perf_counter() - begun
        driver = sum(float(line) for line in (root / "driver").read_text().splitlines())
        run_ids = pq.read_table(root / "results" / "runs", columns=["run_id"])["run_id"].to_pylist()
        assert len(run_ids) == len(set(run_ids)) == runs
        parts = len(list((root / "results" / "runs").glob("*.parquet")))
    return Whole(cores, seconds, runs, clock, driver, parts)


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    found = whole(2, 0.3, 300 if quick else 2_000)
    slept = found.runs * found.seconds
    rows = [
        ["by the clock", f"{found.clock:.0f}", f"{1e3 * found.clock * found.cores / found.runs:.0f}", ""],
        ["driver", f"{found.driver:.1f}", f"{1e3 * found.driver / found.runs:.1f}", f"{found.driver / slept:.1%}"],
    ]
    return (
        "## A sweep of short runs, end to end\n\n"
        f"{found.runs:,} runs that sleep {found.seconds:g} s on {found.cores} workers, each of them once in the table "
        f"of runs, which has {found.parts} parts in the end. By the clock, a run is what one of the workers takes for "
        "it; else processor time, and its share of what the runs take themselves.\n\n"
        + table(["what", "seconds", "ms a run", "share"], rows)
    )


if __name__ == "__main__":
    print(whole(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
