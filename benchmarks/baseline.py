"""Figures that must not get worse: ``python -m benchmarks.baseline FILE.json [--only NAME ...]``.

Each name is measured by itself and replaces its entry in the file, which also names the machine. Times are wall-clock
seconds unless a name says otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import torch  # noqa: E402

import clops_sweep  # noqa: E402
from benchmarks import between_runs, methods, own_data, reported_store, shapes, sleeping  # noqa: E402
from benchmarks.timing import cpu_model  # noqa: E402
from clops_sweep.store.run_store import RunStore  # noqa: E402

REPOSITORY = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "clops_sweep.cli"]
SPACE = '''
import os
import time

import numpy as np
from torch import nn

from clops_sweep import FloatOption, Recordings, RunConfig, SearchSpace, dataset, network, strategy
from clops_sweep.learning.method.strategy import Strategy


@dataset("noise", scenarios=("class_il",))
def noise(data_root=None):
    draws = np.random.default_rng(0)
    return Recordings(
        signals=draws.normal(size=(80, 1, 64)).astype(np.float32), sampling_rate=64.0, channels=("x",), units="1",
        labels=np.tile(np.arange(4), 20), classes=("a", "b", "c", "d"), patients=np.repeat(np.arange(20), 4),
    )


@network("one_layer")
def one_layer(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))


@strategy("computing", options={{"work": FloatOption(1.0, gt=0)}})
class Computing(Strategy):
    """Uses processor time instead of training, and writes a line with start and end when a run ends."""

    def begin_task(self, task):
        if task == 0:
            self.begun = time.time()

    def train_epoch(self, task, epoch, replay, order, dropout_keys):
        until = time.thread_time() + self.training.config.work / len(self.training.tasks)
        while time.thread_time() < until:
            pass

    def counts(self):
        file = os.open({ended!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{{self.begun}} {{time.time()}}\\n".encode())
        os.close(file)
        return {{}}


BASE = RunConfig(dataset="noise", network="one_layer", strategy="computing", epochs_per_task=1)
SPACE = SearchSpace("computing", BASE, axes={{"work": {work}}}, seeds=range({seeds}))
'''


def _timed(arguments: list[str], folder: Path, **environment: str) -> float:
    """Return the wall-clock seconds of a process."""
    begun = time.perf_counter()
    variables = {**os.environ, "CLOPS_PREPARED_ROOT": str(folder / "prepared"), "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(arguments, cwd=folder, env=variables | environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _swept(work: list[float], seeds: int) -> dict[str, float]:
    """Run a grid of runs that compute on all cores, from the command line, and return what it cost.

    The idle share is 1 - (sum of the durations of all runs) / (cores x time from the first start to the last end).
    """
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        space = SPACE.format(ended=str(folder / "ended"), work=work, seeds=seeds)
        (folder / "space.py").write_text(space)
        _timed([*COMMAND, "data", "prepare", "noise", "--plugins", "space.py"], folder)
        begun = time.time()
        whole = _timed([*COMMAND, "space.py", "--no-report"], folder)
        runs = [tuple(map(float, line.split())) for line in (folder / "ended").read_text().splitlines()]
    assert len(runs) == len(work) * seeds
    first, last = min(start for start, _ in runs), max(end for _, end in runs)
    return {
        "runs": len(runs),
        "cores": cores,
        "first_start": first - begun,
        "idle_share": 1 - sum(end - start for start, end in runs) / (cores * (last - first)),
        "runs_per_second": len(runs) / (last - first),
        "command": whole,
    }


def mixed() -> dict[str, float]:
    """Idle share over runs of 0.3 to 5 s of processor time."""
    return _swept([0.3, 0.5, 0.8, 1.2, 2.0, 3.2, 5.0], 12)


def one_second() -> dict[str, float]:
    """Idle share over runs of 1 s of processor time."""
    return _swept([1.0], 160)


def short() -> dict[str, float]:
    """10,000 runs of 10 ms of processor time."""
    return _swept([0.01], 10_000)


def between() -> dict[str, float]:
    """Milliseconds of a worker between two real short runs."""
    computed, each = between_runs.measured(160)
    return {"seconds": computed, "between_ms": 1e3 * (each - computed)}


def memory() -> dict[str, float]:
    """Megabytes (proportional set size) of a worker and of all processes, and seconds to the end of the first run."""
    found = sleeping.slept(2, 1.0, 40)
    return {"worker_mb": found.worker, "all_mb": found.together, "first_run_after": found.first}


def stores() -> dict[str, float]:
    """Commands on stores of 10,000 and 100,000 generated runs."""
    figures: dict[str, float] = {}
    for runs in (10_000, 100_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            count = reported_store.fill(
                RunStore(folder / "results"), reported_store.write_grid(runs, folder / "large_grid.py")
            )
            reading = f"import pandas; assert len(pandas.read_parquet('results/runs')) == {count}"
            figures[f"plan_{runs}"] = _timed([*COMMAND, "plan", "large_grid.py"], folder)
            figures[f"status_{runs}"] = _timed([*COMMAND, "status", "large_grid.py"], folder)
            figures[f"read_parquet_{runs}"] = _timed([sys.executable, "-c", reading], folder)
            figures[f"report_{runs}"] = _timed([*COMMAND, "report", "large_grid.py", "--output", "report"], folder)
            figures[f"index_html_mb_{runs}"] = (folder / "report/index.html").stat().st_size / 1e6
    return figures


def paper_small() -> dict[str, float]:
    """The paper's experiments, reduced, with two epochs: duration, and megabytes of the report's page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        space = str(REPOSITORY / "search_spaces/paper_small.py")
        command = _timed([*COMMAND, space, "--set", "epochs_per_task=2"], folder)
        (page,) = folder.glob("results/report/*/index.html")
        return {"command": command, "index_html_mb": page.stat().st_size / 1e6}


def steps() -> dict[str, float]:
    """Microseconds of processor time of a training step: native kernels, and a method that is written as a loss."""
    torch.set_num_threads(1)
    frames = shapes.class_il()
    example = re.search(r"^```python\n(.*?)^```$", (REPOSITORY / "docs/own_method.md").read_text(), re.M | re.S)
    assert example is not None
    exec(example[1], {"__name__": "my_derpp"})
    names = "finetune", "er", "my_derpp"
    trained = {name: methods.TrainedTwice(frames, name) for name in names}
    best = dict.fromkeys(names, math.inf)
    for _ in range(25):
        best = {name: min(best[name], 1e6 * trained[name].seconds()) for name in names}
    return best


def arrays() -> dict[str, float]:
    """Preparing 100,000 frames of 12 channels and 250 samples of 16 bits (600 MB)."""
    rows = [line.strip("| ").split(" | ") for line in own_data.run(quick=False).splitlines() if "prepare to" in line]
    return {
        "seconds": min(float(row[1]) for row in rows),
        "processor_seconds": min(float(row[2]) for row in rows),
    }


def records() -> dict[str, float]:
    """Preparing CinC 2017 (4,264 records), which lies in CLOPS_DATA_ROOT."""
    with tempfile.TemporaryDirectory() as name:
        space = str(REPOSITORY / "search_spaces/methods_cinc2017.py")
        return {"seconds": _timed([*COMMAND, "data", "prepare", "cinc2017", "--plugins", space], Path(name))}


def suite() -> dict[str, object]:
    """The test suite, and its slowest items."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--durations=100"]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    slow = re.findall(r"^([\d.]+)s \w+ +(.+)$", done.stdout, re.M)
    return {
        "seconds": time.perf_counter() - begun,
        "outcome": done.stdout.strip().splitlines()[-1],
        "durations": [f"{seconds} {item}" for seconds, item in slow],
    }


NAMES: dict[str, Callable[[], dict[str, float]] | Callable[[], dict[str, object]]] = {
    "mixed": mixed,
    "one_second": one_second,
    "short": short,
    "between": between,
    "memory": memory,
    "stores": stores,
    "paper_small": paper_small,
    "steps": steps,
    "arrays": arrays,
    "records": records,
    "suite": suite,
}


def main() -> None:
    """Measure what is named, one after another, and write the file after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    arguments = parser.parse_args()
    for name in arguments.only:
        figures = json.loads(arguments.file.read_text()) if arguments.file.exists() else {}
        load = os.getloadavg()[0]
        machine = f"{cpu_model()}, {os.cpu_count()} cores; Python {platform.python_version()}"
        figures["version"] = clops_sweep.__version__
        figures[name] = {**NAMES[name](), "load_before": load, "machine": machine}
        arguments.file.write_text(json.dumps(figures, indent=1) + "\n")
        print(name, {key: value for key, value in figures[name].items() if key != "durations"}, flush=True)


if __name__ == "__main__":
    main()
