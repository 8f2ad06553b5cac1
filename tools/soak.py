"""A sweep under everything that happens to sweeps, for as long as one likes. Run by hand; its disk needs root.

    CLOPS_PREPARED_ROOT=folder PYTHONPATH=. python tools/soak.py --minutes 20 --seed 1
    PYTHONPATH=. python tools/soak.py --kills 50

Sixty runs are computed undisturbed. Then they are computed on a small disk while drivers, workers and Ray's processes
are killed, parts are merged, a second driver is refused, the disk fills up and is emptied again, and between launches
a byte of a random part is flipped. At random moments the disk is copied as it is, as if the power had failed, and what
a launch would find there is compared. When the time is up the same command ends undisturbed, and its four tables must
be bit-equal.

With `--kills` so many drivers and workers of grids and of a search are killed. Between launches `frames.npy` is edited
in place, with its old modification time or a new one; every launch must refuse edited frames in one sentence, and
`data prepare` must make them anew. Results computed from edited frames would differ in the end. This needs no root.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from clops_sweep.data.prepared.manifest import file_sha256
from clops_sweep.errors import DamagedStore
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import faults, without_damage
from tests.helpers.launching import TABLES, Sweep, Tables, assert_equal, comparable, kill, kill_all
from tests.helpers.preloaded import Preloaded

SPACE = """
from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(epochs_per_task=4, mc_samples=3)
SPACE = [
    SearchSpace(name="grid", base=BASE, axes={"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.1, 0.5]},
                seeds=range(10)),
    SearchSpace(name="others", base=RunConfig(epochs_per_task=4), axes={"strategy": ["finetune", "mir"]},
                seeds=range(10)),
]
"""
SEARCH = SPACE.replace("import RunConfig,", "import FloatDistribution, OptunaSearch, RunConfig,").replace(
    "\n]\n",
    """
    SearchSpace(name="search", base=BASE, seeds=range(2), search=OptunaSearch(
        {"storage_fraction": FloatDistribution(0.1, 1.0)}, n_trials=6, sampler="random", max_concurrent=1)),
]
""",
)
RUNS = 60
LONGEST = 150  # seconds that a launch gets before it is stopped with Ctrl-C


class Disk:
    """A file system of its own in a file, so that it can fill up and be copied at any moment."""

    def __init__(self, folder: Path, megabytes: int = 24) -> None:
        self.image, self.mounted = folder / "disk.img", folder / "disk"
        self.mounted.mkdir()
        with self.image.open("wb") as file:
            file.truncate(megabytes * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        subprocess.run(["mount", "-o", "loop", self.image, self.mounted], check=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.mounted], check=True)

    def copy(self, target: Path) -> None:
        """As it is at one moment: two copies in a row that are equal, so that nothing was written between them."""
        while True:
            first, second = self.image.read_bytes(), self.image.read_bytes()
            if first == second:
                target.write_bytes(first)
                return

    def fill(self) -> Path:
        """Leaves no room. Returns the file that took it."""
        path = self.mounted / "filler"
        with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
            while True:
                file.write(b"\1" * 2**16)
        return path


class Soak:
    """One sweep and what happens to it."""

    def __init__(self, folder: Path, disk: Disk, expected: Tables, seed: int) -> None:
        self.folder, self.disk, self.expected = folder, disk, expected
        self.results = disk.mounted / "results"
        self.draw = random.Random(seed)
        self.happened: collections.Counter[str] = collections.Counter()
        self.flipped_parts: set[str] = set()  # before the last launch, and the runs in them
        self.flipped_runs: set[str] = set()
        self.script = str(Path(sys.executable).with_name("clops-sweep"))
        self.environment = dict(os.environ) | {"COLUMNS": "200"}

    def command(self, *arguments: str) -> Sweep:
        return Sweep(self.script, self.folder, self.environment, *arguments)

    def launch(self) -> Sweep:
        self.happened["launches"] += 1
        return self.command("space.py", "--no-report", "--max-retries", "100", "--results", str(self.results))

    def disturbed(self, end: float) -> None:
        """One launch, and what happens meanwhile."""
        sweeps = [self.launch()]
        stop = time.monotonic() + min(LONGEST, max(end - time.monotonic(), 10))
        faults = (
            *(self._kill_worker, self._kill_worker, self._kill_driver, self._kill_ray, self._merge, self._merge),
            *(self._second_driver, self._fill_disk, self._power_cut, self._power_cut),
        )
        while any(sweep.process.poll() is None for sweep in sweeps):
            time.sleep(self.draw.uniform(0.5, 6))
            if time.monotonic() > stop:
                for sweep in sweeps:
                    if sweep.process.poll() is None:
                        sweep.process.send_signal(2)
                        self.happened["Ctrl-C"] += 1
                break
            self.draw.choice(faults)(sweeps)
        for sweep in sweeps:
            sweep.wait()
            self.happened[f"launches that ended with {sweep.returncode}"] += 1
            # A process of Ray was killed before it was up, or another launch computes these runs.
            refused = "clops-sweep: Ray: " in sweep.errors or "another launch (process " in sweep.errors
            assert sweep.returncode in (0, 1, -9, 130, 2 if refused else 0), sweep.output + sweep.errors
            assert "Traceback" not in sweep.errors, sweep.errors
            kill_all(sweep.tag)

    def _kill_worker(self, sweeps: list[Sweep]) -> None:
        if workers := [number for sweep in sweeps for number in sweep.workers()]:
            kill(self.draw.choice(workers))
            self.happened["workers killed"] += 1

    def _kill_driver(self, sweeps: list[Sweep]) -> None:
        sweep = self.draw.choice(sweeps)
        if sweep.process.poll() is None:
            sweep.process.kill()
            self.happened["drivers killed"] += 1

    def _kill_ray(self, sweeps: list[Sweep]) -> None:
        name = self.draw.choice(["/raylet/raylet ", "/gcs/gcs_server "])
        for sweep in sweeps:
            for number, command in sweep.processes().items():
                if name in command:
                    kill(number)
                    self.happened["raylets killed" if "raylet " in name else "GCS killed"] += 1
                    return

    def _merge(self, sweeps: list[Sweep]) -> None:
        merge = self.command("merge", str(self.results), "--parts")
        assert merge.wait() in (0, 1, 2), merge.errors
        assert "Traceback" not in merge.errors, merge.errors
        self.happened["merges of parts"] += 1

    def _second_driver(self, sweeps: list[Sweep]) -> None:
        if sum(sweep.process.poll() is None for sweep in sweeps) == 1:
            sweeps.append(self.launch())
            self.happened["second drivers"] += 1

    def _fill_disk(self, sweeps: list[Sweep]) -> None:
        filler = self.disk.fill()
        time.sleep(self.draw.uniform(1, 8))
        filler.unlink(missing_ok=True)
        self.happened["times the disk was full"] += 1

    def _power_cut(self, sweeps: list[Sweep]) -> None:
        """What a launch after it finds, on a copy: the finished runs whole, and all that were finished just before."""
        try:
            before = self.finished(self.results) - self.flipped_runs
        except DamagedStore:  # the launch has not yet looked, and nobody can tell which runs are in a part
            before = set()
        image, mounted = self.folder / "cut.img", self.folder / "cut"
        self.disk.copy(image)
        mounted.mkdir(exist_ok=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            if (mounted / "results" / "runs").is_dir():
                found = RunStore(mounted / "results")
                for fault in faults(found):
                    assert any(name in fault for name in self.flipped_parts) or ": is missing" in fault, fault
                without_damage(found, None, lambda text: None)
                finished = self.finished(mounted / "results")
                assert before <= finished, f"lost by a power cut: {before - finished}"
                self.compare(mounted / "results", finished)
                self.happened["power cuts"] += 1
        finally:
            subprocess.run(["umount", mounted], check=True)

    def flip(self) -> None:
        """A byte of a part or of several; the runs in them are to be computed again."""
        parts = sorted(path for table in TABLES for path in (self.results / table).glob("*.parquet"))
        before = self.finished(self.results)
        for path in self.draw.sample(parts, min(len(parts), self.draw.randint(1, 12))):
            content = bytearray(path.read_bytes())
            content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
            path.write_bytes(content)
            self.happened["bytes flipped in parts"] += 1
            self.flipped_parts.add(path.name)
        self.flipped_runs = before  # which runs a damaged part of `runs` holds is unknown

    @staticmethod
    def finished(results: Path) -> set[str]:
        return {run_id for run_id, status in RunStore(results).statuses().items() if status == "finished"}

    def compare(self, results: Path, finished: set[str]) -> None:
        """The finished runs of a store with the undisturbed ones, bit for bit."""
        store = RunStore(results)
        for table in TABLES:
            expected = self.expected[table]
            expected = expected[expected["run_id"].isin(finished)].reset_index(drop=True)
            assert_equal(table, store.read(table, sorted(finished)), expected)


class Killed:
    """Grids and a search whose drivers and workers are killed, on frames that are edited between launches.

    Attributes:
        happened: how often each thing happened.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        script: str | Preloaded,
        environment: Mapping[str, str],
        *arguments: str,
        seeds: int = 2,
        trials: int = 6,
    ) -> None:
        self.folder, self.draw, self.script, self.arguments = folder, random.Random(seed), script, arguments
        self.happened: collections.Counter[str] = collections.Counter()
        prepared = folder / "prepared"
        self.frames = prepared / "synthetic" / "frames.npy"
        self.environment = {**environment, "COLUMNS": "200", "CLOPS_PREPARED_ROOT": str(prepared)}
        space = SEARCH.replace("range(10)", f"range({seeds})").replace("n_trials=6", f"n_trials={trials}")
        (folder / "space.py").write_text(space)

    def command(self, *arguments: str) -> Sweep:
        return Sweep(self.script, self.folder, self.environment, *arguments)

    def launch(self, results: str) -> Sweep:
        self.happened["launches"] += 1
        options = ("--no-report", "--max-retries", "100", "--results", results)
        return self.command("space.py", *options, *self.arguments)

    def run(self, kills: int) -> None:
        """Kill so many drivers and workers, edit frames at least once, and let the same command end."""
        began = time.monotonic()
        assert self.ended(self.launch("undisturbed"))
        self.seconds = time.monotonic() - began
        self.whole = file_sha256(self.frames)
        while self.happened["drivers killed"] + self.happened["workers killed"] < kills:
            if self.draw.random() < 0.5:
                self.edit_frames()
            self.disturbed()
            print(dict(self.happened), flush=True)
        self.edit_frames()
        while not self.ended(self.launch("results")):
            pass
        self.compare()

    def disturbed(self) -> None:
        """One launch, in which workers and at last the driver are killed, if it does not end before."""
        sweep = self.launch("results")
        stop = time.monotonic() + self.draw.uniform(0, 0.7 * self.seconds)
        while sweep.process.poll() is None and time.monotonic() < stop:
            time.sleep(self.draw.uniform(0, self.seconds / 4))
            if workers := sweep.workers():
                kill(self.draw.choice(workers))
                self.happened["workers killed"] += 1
        if sweep.process.poll() is None:
            sweep.process.kill()
            self.happened["drivers killed"] += 1
        if self.ended(sweep):
            self.compare()
            shutil.rmtree(self.folder / "results")
            for database in self.folder.glob("*.db"):
                database.unlink()

    def ended(self, sweep: Sweep) -> bool:
        """Whether a launch did all that was left. Edited frames that it refuses are made anew."""
        status = sweep.wait()
        kill_all(sweep.tag)
        self.happened[f"launches that ended with {status}"] += 1
        if status == 2:
            assert str(self.frames) in sweep.errors, sweep.errors
            assert sweep.errors.count("\n") == 1, sweep.errors
            assert file_sha256(self.frames) != self.whole, sweep.errors
            prepared = self.command("data", "prepare", "synthetic")
            assert prepared.wait() == 0, prepared.errors
            assert file_sha256(self.frames) == self.whole
            self.happened["edited frames refused"] += 1
        else:
            assert status in (0, -signal.SIGKILL), sweep.output + sweep.errors
        return status == 0

    def edit_frames(self) -> None:
        """Change a byte of the prepared frames in place; sometimes the file keeps its modification time."""
        before = self.frames.stat()
        with self.frames.open("r+b") as file:
            file.seek(self.draw.randrange(before.st_size // 2, before.st_size))
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ self.draw.randrange(1, 256)]))
        kept = self.draw.random() < 0.5
        if kept:
            os.utime(self.frames, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.happened[f"frames edited, time {'kept' if kept else 'not kept'}"] += 1

    def compare(self) -> None:
        """Every run with the undisturbed ones, bit for bit."""
        for table in TABLES:
            found, expected = (pd.read_parquet(self.folder / name / table) for name in ("results", "undisturbed"))
            assert_equal(table, found, comparable(table, expected))
        self.happened["comparisons of all four tables, bit for bit"] += 1


def print_counts(heading: str, happened: Mapping[str, int]) -> None:
    print(heading)
    for what, times in sorted(happened.items()):
        print(f"  {times:5} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, help="of drivers and workers of grids and a search, on edited frames")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    if asked.kills:
        try:
            killed = Killed(folder, asked.seed, str(Path(sys.executable).with_name("clops-sweep")), os.environ)
            killed.run(asked.kills)
            print_counts(f"all runs bit-equal in all four tables after {asked.kills} kills:", killed.happened)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    (folder / "space.py").write_text(SPACE)
    disk = Disk(folder)
    try:
        undisturbed = Soak(folder, disk, {}, asked.seed)
        undisturbed.results = folder / "undisturbed"
        sweep = undisturbed.launch()
        began = time.monotonic()
        assert sweep.wait() == 0, sweep.output + sweep.errors
        print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)
        expected = {table: comparable(table, pd.read_parquet(folder / "undisturbed" / table)) for table in TABLES}
        assert len(expected["runs"]) == RUNS

        soak = Soak(folder, disk, expected, asked.seed)
        end = time.monotonic() + 60 * asked.minutes
        while time.monotonic() < end:
            soak.disturbed(end)
            soak.flip()
            print(f"{(end - time.monotonic()) / 60:.0f} minutes left: {dict(soak.happened)}", flush=True)
        last = soak.launch()
        assert last.wait() == 0, last.output + last.errors
        soak.compare(soak.results, set(expected["runs"]["run_id"]))
        for table in TABLES:
            assert_equal(table, pd.read_parquet(soak.results / table), expected[table])
        print_counts(f"all {RUNS} runs bit-equal in all four tables after {asked.minutes:g} minutes:", soak.happened)
        aside = soak.results / ".work" / "damaged"
        print(f"  {len(list(aside.iterdir())) if aside.is_dir() else 0:5} damaged parts set aside")
    finally:
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
