"""Time of a worker between two runs, in a sweep over short runs with a worker on every core.

``python -m benchmarks.between_runs RUNS`` measures one such sweep and prints it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

import clops_sweep
from benchmarks.timing import table

SPACE = '''
import os
import time

from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

FOLDER = {folder!r}


@strategy("noting")
class Noting(FineTuning):
    """Plain training, which leaves a line in a file when it ends."""

    def counts(self):
        file = os.open(f"{{FOLDER}}/ended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{{os.getpid()}} {{time.time()}}\\n".encode())
        os.close(file)
        return {{}}


BASE = RunConfig(dataset="synthetic", strategy="noting", epochs_per_task={epochs})
SPACE = SearchSpace("short", BASE, seeds=range({runs}))
'''
EPOCHS = 60


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    runs = 40 if quick else 160
    taken, each = measured(runs)
    cores = len(os.sched_getaffinity(0))
    row = [str(runs), str(cores), f"{1e3 * taken:.0f}", f"{1e3 * each:.0f}", f"{1e3 * (each - taken):.0f}"]
    return "## Between two runs\n\n" + table(
        ["runs", "cores", "`seconds`, ms", "from end to end, ms", "between, ms"], [row]
    )


def measured(runs: int) -> tuple[float, float]:
    """Return the mean `seconds` of runs, and the mean time from the end of a worker's run to the end of its next."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "space.py").write_text(SPACE.format(folder=folder, epochs=EPOCHS, runs=runs))
        environment = {**os.environ, "CLOPS_PREPARED_ROOT": str(root / "prepared")}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        command = [sys.executable, "-m", "clops_sweep.cli"]
        for arguments in (["data", "prepare", "synthetic"], ["space.py", "--no-report"]):
            subprocess.run([*command, *arguments], cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
        ends = defaultdict(list)
        for line in (root / "ended").read_text().splitlines():
            pid, moment = line.split()
            ends[pid].append(float(moment))
        taken = clops_sweep.read(root / "results", "runs")["seconds"]
        assert len(taken) == runs
        return float(taken.mean()), float(np.concatenate([np.diff(np.sort(found)) for found in ends.values()]).mean())


if __name__ == "__main__":
    taken, each = measured(int(sys.argv[1]))
    print(f"{taken:.4f} s by the column `seconds`, {each:.4f} s from end to end, {1e3 * (each - taken):.0f} ms between")
