"""Number of workers that a driver can keep busy: a sweep over runs that sleep, on any number of logical cores.

``python -m benchmarks.sleeping CORES SECONDS RUNS`` measures one such sweep. The runs take almost no processor time, so
there may be more workers than cores, and idle time of workers is due to the sweep.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import table

SPACE = '''
import os
import time

import numpy as np
from torch import nn

from clops_sweep import FloatOption, Recordings, RunConfig, SearchSpace, dataset, network, strategy
from clops_sweep.learning.method.strategy import Strategy

FOLDER = {folder!r}


@dataset("noise", scenarios=("class_il",))
def noise(data_root=None):
    draws = np.random.default_rng(0)
    return Recordings(
        signals=draws.normal(size=(80, 1, 64)).astype(np.float32), sampling_rate=64.0, channels=("x",), units="1",
        labels=np.tile(np.arange(4), 20), classes=("a", "b", "c", "d"), patients=np.repeat(np.arange(20), 4),
    )


@network("one_layer")
def linear(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))


@strategy("sleeping", options={{"sleep": FloatOption(1.0, gt=0)}})
class Sleeping(Strategy):
    """Trains nothing, and leaves a line in a file when it ends."""

    def train_epoch(self, task, epoch, replay, order, dropout_keys):
        time.sleep(self.training.config.sleep / len(self.training.tasks))

    def counts(self):
        file = os.open(f"{{FOLDER}}/ended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{{os.getpid()}} {{time.time()}}\\n".encode())
        os.close(file)
        return {{}}


BASE = RunConfig(dataset="noise", network="one_layer", strategy="sleeping", epochs_per_task=1, sleep={seconds})
SPACE = SearchSpace("sleeping", BASE, seeds=range({runs}))
'''


@dataclass(frozen=True)
class Slept:
    """Cost of a sweep over sleeping runs.

    Attributes:
        cores: number of logical cores, as declared to Ray.
        seconds: sleep of each run.
        runs: number of runs.
        alone: wall-clock seconds per run without a sweep, one after another in one process.
        each: wall-clock seconds per run of a worker in the sweep, from the end of its first run to the end of its last.
        whole: wall-clock seconds from the first end of a run to the last, times cores / runs; includes idle workers.
        driver: processor seconds of the driver per run.
        first: seconds from the command to the end of the first run, without its sleep.
        worker: largest proportional set size of a worker, in megabytes.
        together: proportional set size of all processes of the sweep, in megabytes.
    """

    cores: int
    seconds: float
    runs: int
    alone: float
    each: float
    whole: float
    driver: float
    first: float
    worker: float
    together: float

    @property
    def busy(self) -> float:
        """Share of the time in which workers compute: `alone` / `each`."""
        return self.alone / self.each


def slept(cores: int, seconds: float, runs: int) -> Slept:
    """Measure a sweep."""
    with tempfile.TemporaryDirectory() as folder:
        root, tag = Path(folder), uuid.uuid4().hex
        (root / "space.py").write_text(SPACE.format(folder=folder, seconds=seconds, runs=runs))
        environment = {
            **os.environ,
            "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": cores}),
            "CLOPS_PREPARED_ROOT": str(root / "prepared"),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "CLOPS_BENCHMARK": tag,
        }
        command = [sys.executable, "-m", "clops_sweep.cli"]
        prepare = [*command, "data", "prepare", "noise", "--plugins", "space.py"]
        subprocess.run(prepare, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
        alone = _alone(root, environment)
        begun = time.time()
        process = subprocess.Popen(
            [*command, "space.py", "--no-report"], cwd=root, env=environment, stdout=subprocess.DEVNULL
        )
        used: list[tuple[float, float]] = []
        worker = together = 0.0
        while process.poll() is None:
            used.append((time.time(), _processor_time(process.pid)))
            if len(used) % 25 == 0:
                sizes = _sizes(tag)
                together = max(together, sum(size for _, size in sizes))
                worker = max([worker, *(size for title, size in sizes if "Trainable" in title)])
            time.sleep(0.2)
        assert process.returncode == 0
        ends = defaultdict(list)
        for line in (root / "ended").read_text().splitlines():
            pid, moment = line.split()
            ends[pid].append(float(moment))
    moments = sorted(moment for found in ends.values() for moment in found)
    there = max(min(found) for found in ends.values())  # all workers
    assert len(moments) == runs
    each = [(max(found) - min(found)) / (len(found) - 1) for found in ends.values() if len(found) > 1]
    before = max((time for moment, time in used if moment <= there), default=0.0)
    after = max(time for moment, time in used if moment <= moments[-1])
    done = sum(moment > there for moment in moments)
    whole = cores * (moments[-1] - there) / max(1, done)
    driver = (after - before) / max(1, done)
    return Slept(
        cores,
        seconds,
        runs,
        alone,
        statistics.fmean(each),
        whole,
        driver,
        moments[0] - begun - seconds,
        worker,
        together,
    )


def _alone(root: Path, environment: dict[str, str]) -> float:
    """Return the wall-clock seconds per run of such runs, one after another in a process."""
    code = (
        "import time\n"
        "from pathlib import Path\n"
        "from clops_sweep.data.preparing.prepare import open_frames\n"
        "from clops_sweep.experiment.spaces.space_files import load_spaces\n"
        "from clops_sweep.learning.run import ContinualRun\n"
        "(space,) = load_spaces(Path('space.py'))\n"
        "frames = open_frames('noise', prepared_root=Path('prepared'))\n"
        "moments = []\n"
        "for seed in range(21):\n"
        "    ContinualRun(space.base.replace(seed=seed), frames).run()\n"
        "    moments.append(time.perf_counter())\n"
        "print((moments[-1] - moments[0]) / 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, check=True, capture_output=True)
    (root / "ended").unlink()
    return float(done.stdout)


def _processor_time(pid: int) -> float:
    """Return the processor time of a process so far, without its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _sizes(tag: str) -> list[tuple[str, float]]:
    """Return title and proportional set size (in megabytes) of every process with a tag in its environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if tag.encode() in (folder / "environ").read_bytes():
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                lines = (folder / "smaps_rollup").read_text().splitlines()
                found.append((title, sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3))
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    cases = [(2, 1.0, 24)] if quick else [(2, 1.0, 400), (32, 1.0, 1_600), (32, 5.0, 480)]
    rows = []
    for cores, seconds, runs in cases:
        found = slept(cores, seconds, runs)
        rows.append(
            [
                f"{cores} cores, runs of {seconds:g} s",
                f"{runs:,}",
                f"{found.alone:.4f}",
                f"{found.each:.4f}",
                f"{found.each - found.alone:.4f}",
                f"{found.busy:.1%}",
                f"{found.driver:.4f}",
                f"{found.first:.1f}",
                f"{found.worker:.0f}",
                f"{found.together:,.0f}",
            ]
        )
    header = ["", "runs", "alone", "in a sweep", "more", "busy", "driver's processor a run", "first run after"]
    header += ["a worker", "all processes"]
    return (
        "## Workers that are kept busy\n\n"
        f"Runs that sleep, on {os.cpu_count()} cores of which there are said to be more; seconds by the clock a run, "
        "from the end of a worker's first run to that of its last, beside the same runs in a process of their own. "
        "Memory is proportional set size (PSS), in megabytes.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    print(slept(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
