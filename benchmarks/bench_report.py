"""Cost of a report on stores of 10,000 and 100,000 generated runs: ``python -m benchmarks.bench_report [--quick]``.

It measures the processor time of the whole command, into a new folder, and again without changes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from benchmarks.reported_store import fill, write_grid  # noqa: E402
from benchmarks.timing import table  # noqa: E402
from clops_sweep.store.run_store import RunStore  # noqa: E402

_COMMAND = """
import sys
from pathlib import Path
from clops_sweep.cli.command import main
try:
    main(sys.argv[1:])
finally:
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""
"""Peak memory of the process in KiB; `getrusage` would include the process that it was forked from."""


def run(*, quick: bool = False) -> str:
    """Return the table; with `quick`, for the smallest size only."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [_measured(runs, Path(folder) / str(runs)) for runs in ((2_000,) if quick else (10_000, 100_000))]
    header = ["runs", "report", "again, nothing new", "peak memory", "page", "figures"]
    return "## Report\n\n" + table(header, rows)


def _measured(runs: int, folder: Path) -> list[str]:
    file = folder / "large_grid.py"
    count = fill(RunStore(folder / "results"), write_grid(runs, file))
    row, peaks = [f"{count:,}"], []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", _COMMAND, "report", str(file), "--results", "results", "--output", "report"]
        # outside the checkout, so that the installed package is used
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peaks.append(int(done.stdout.split()[-1]) / 1024)
        row.append(f"{used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime:.1f} s")
    drawn = folder / "report"
    figures = sum(it.stat().st_size for it in (drawn / "figures").iterdir())
    page = (drawn / "index.html").stat().st_size
    return [*row, f"{max(peaks):,.0f} MB", f"{page / 1e6:.0f} MB", f"{figures / 1e6:.0f} MB"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 runs alone")
    print(run(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()
