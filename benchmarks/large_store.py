"""Commands on a store of many runs, of which a search space requests a fifth: ``python -m benchmarks.large_store``.

Nothing is left to compute. Each command is a process of its own, and its processor time is measured.
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

from benchmarks.reported_store import RUNS_PER_RATE, fill, write_grid  # noqa: E402
from benchmarks.timing import table  # noqa: E402
from clops_sweep.data.preparing.prepare import data_hash, prepare  # noqa: E402
from clops_sweep.store.run_store import RunStore  # noqa: E402

RUNS = 90_000
ROUNDS = 3
COMMANDS = {
    "plan SPACE": ["plan", "requested.py"],
    "status SPACE": ["status", "requested.py"],
    "launch SPACE, nothing to do": ["launch", "requested.py", "--no-report"],
    "status, without launches": ["status"],
    "status, with the launch above": ["status"],
}
"""What is measured. The store remembers a launch, so one command that lists launches runs before it, and one after."""

_BEFORE_LAUNCH = "status, without launches"


def run(*, quick: bool = False, runs: int = RUNS) -> str:
    """Return the section of results.md; with `quick`, for a small store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return _measured(folder, 4_000 if quick else runs, 1 if quick else ROUNDS)


def _measured(folder: Path, runs: int, rounds: int) -> str:
    """Return the table for a new store in a folder."""
    prepare("synthetic", prepared_root=folder / "prepared", data_root=None)
    content = data_hash("synthetic", prepared_root=folder / "prepared")
    assert content is not None
    stored = fill(RunStore(folder / "results"), write_grid(runs, folder / "stored.py"), content)
    requested = len(list(write_grid(max(RUNS_PER_RATE, runs // 5), folder / "requested.py").requests()))
    rows = []
    order = sorted(COMMANDS, key=lambda what: what != _BEFORE_LAUNCH)
    for what in order:
        seconds = min(_processor_seconds(folder, COMMANDS[what]) for _ in range(rounds))
        rows.append([what, f"{seconds:.2f}"])
    return (
        f"## Commands on a store of {stored:,} runs\n\n"
        f"The search space requests {requested:,} of them, and all are finished. The smallest processor time of "
        f"{rounds}.\n\n" + table(["command", "seconds"], rows)
    )


def _processor_seconds(folder: Path, arguments: list[str]) -> float:
    """Return the processor time of a command as a process of its own."""
    environment = {
        **os.environ,
        "CLOPS_PREPARED_ROOT": str(folder / "prepared"),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "clops_sweep.cli", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_store", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of the store, in steps of 2,000")
    parser.add_argument("--quick", action="store_true", help="a small store, to see that everything runs")
    arguments = parser.parse_args()
    print(run(quick=arguments.quick, runs=arguments.runs))


if __name__ == "__main__":
    main()
