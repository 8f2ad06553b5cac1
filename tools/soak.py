"""A sweep under everything that happens to sweeps, for as long as one likes. Run by hand; its disk needs root.

    CLOPS_PREPARED_ROOT=folder PYTHONPATH=. python tools/soak.py --minutes 20 --seed 1
    PYTHONPATH=. python tools/soak.py --kills 64

Sixty runs are computed undisturbed. Then they are computed on a small disk while drivers, workers and Ray's processes
are killed, parts are merged, a second driver is refused, the disk fills up and is emptied again, and between launches
a byte of a random part is flipped. At random moments the disk is copied as it is, as if the power had failed, and what
a launch would find there is compared. When the time is up the same command ends undisturbed, and its four tables must
be bit-equal.

With `--kills` so many processes of grids and of a search that prunes are killed: driver, worker and raylet while a
launch starts, computes, writes parts and stops, merges of parts, and workers for want of memory. Stores are folders and
on S3 in turn. Between launches `frames.npy` is edited in place, with its old modification time or a new one; every
launch must refuse edited frames in one sentence, and `data prepare` must make them anew. Results computed from edited
frames would differ in the end. This needs no root.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import psutil

from clops_sweep.data.prepared.manifest import file_sha256
from clops_sweep.errors import DamagedStore
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import faults, without_damage
from tests.helpers.launching import TABLES, Sweep, Tables, assert_equal, comparable, kill, kill_all
from tests.helpers.s3_server import CREDENTIALS, serving_s3

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
        {"storage_fraction": FloatDistribution(0.1, 1.0)}, n_trials=8, sampler="random", max_concurrent=1,
        pruning=True)),
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
    """Grids and a search that prunes, killed in every phase, in folders and on S3, on frames edited between launches.

    Attributes:
        happened: how often each thing happened.
    """

    PHASES = ("start", "run", "flush", "stop", "merge")
    VICTIMS = ("driver", "worker", "raylet")

    def __init__(self, folder: Path, seed: int, s3: str, requests: list[str]) -> None:
        self.folder, self.draw, self.s3, self.requests = folder, random.Random(seed), s3, requests
        self.happened: collections.Counter[str] = collections.Counter()
        self.results, self.stores = "undisturbed", 0
        prepared = folder / "prepared"
        self.frames = prepared / "synthetic" / "frames.npy"
        self.environment = {**os.environ, **CREDENTIALS, "COLUMNS": "200", "CLOPS_PREPARED_ROOT": str(prepared)}
        (folder / "space.py").write_text(SEARCH.replace("range(10)", "range(6)"))

    def command(self, *arguments: str, **changes: str) -> Sweep:
        script = str(Path(sys.executable).with_name("clops-sweep"))
        return Sweep(script, self.folder, {**self.environment, **changes}, *arguments)

    def launch(self, *options: str, **changes: str) -> Sweep:
        self.happened["launches"] += 1
        return self.command(
            "space.py", "--no-report", "--max-retries", "100", "--results", self.results, *options, **changes
        )

    def run(self, kills: int) -> None:
        """Kill so often, each process in each phase and a worker for want of memory, and let the same command end."""
        assert self.ended(self.launch())
        store = RunStore(self.folder / self.results)
        self.expected = {table: comparable(table, store.read(table)) for table in TABLES}
        self.whole = file_sha256(self.frames)
        self.new_store()
        plan = [(phase, victim) for phase in self.PHASES for victim in self.VICTIMS] + [("run", "memory")]
        due: list[tuple[str, str]] = []
        done = 0
        while done < kills:
            due = due or self.draw.sample(plan, len(plan))
            if self.disturbed(*due[0]):
                due.pop(0)
                done += 1
                if self.draw.random() < 0.2:
                    self.edit_frames()
            elif due[0][0] == "merge":  # there is nothing to merge: leave a part behind first
                due.insert(0, ("flush", "driver"))
            else:
                due.append(due.pop(0))
            print(done, dict(self.happened), flush=True)
        self.edit_frames()
        while not self.ended(self.launch()):
            pass
        self.compare()

    def new_store(self) -> None:
        """A folder or a place on S3, in turn."""
        self.stores += 1
        name = f"results-{self.stores}"
        self.results = self.s3.format(name) if self.stores % 2 else str(self.folder / name)

    def disturbed(self, phase: str, victim: str) -> bool:
        """One launch, or merge, in which a process is killed in a phase. Return whether it was."""
        if phase == "merge":
            sweep = self.command("merge", self.results, "--parts")
            if killed := self.changed(sweep, self.draw.randint(1, 5)):
                sweep.process.kill()
            assert sweep.wait() in (0, 2, -signal.SIGKILL), sweep.errors  # 2: there is no store yet
        else:
            memory = psutil.virtual_memory()
            most = (memory.total - memory.available + 2.5e9) / memory.total
            changes = {"RAY_memory_usage_threshold": str(most)} if victim == "memory" else {}
            sweep = self.launch(*self.where_it_computes(phase, victim), **changes)
            killed = self.reached(sweep, phase) and self.struck(sweep, victim)
            goes_on = killed and phase != "stop" and sweep.process.poll() is None
            if goes_on and self.draw.random() < 0.5:
                time.sleep(self.draw.uniform(1, 8))
                sweep.interrupt()
            if self.ended(sweep):
                self.compare()
                self.new_store()
        if killed:
            self.happened[f"{phase}: {'merge' if phase == 'merge' else victim} killed, {self.results[:2]}"] += 1
        return killed

    def where_it_computes(self, phase: str, victim: str) -> Sequence[str]:
        """Return options of a launch: with Ray where its start or its processes are killed, else also without."""
        if phase == "start" or victim != "driver":
            return ["--ray"]
        return self.draw.choice((["--ray"], ["--no-ray"], []))

    def reached(self, sweep: Sweep, phase: str) -> bool:
        """Wait for a phase of a launch. Return whether there was one."""
        marks = ["starting Ray", "starting workers"] if phase == "start" else ["] finished"]
        mark = self.draw.choice(marks)
        for line in sweep.process.stdout or ():
            sweep.output += line
            if mark in line:
                break
        else:
            return False  # it had nothing to do, or was refused
        if phase == "flush":
            return self.changed(sweep, self.draw.randint(1, 4))
        if phase == "stop":
            sweep.interrupt()
        time.sleep(self.draw.uniform(0, 2))
        return sweep.process.poll() is None

    def changed(self, sweep: Sweep, times: int) -> bool:
        """Wait until parts were written or removed so often. Return whether they were."""

        def parts() -> object:
            if self.results.startswith("s3"):
                return sum(
                    request.startswith(("PUT", "POST", "DELETE")) and "/.work" not in request
                    for request in self.requests
                )
            return {path.name for table in TABLES for path in (self.folder / self.results / table).glob("*")}

        before = parts()
        while times and sweep.process.poll() is None:
            if parts() != before:
                before, times = parts(), times - 1
            time.sleep(0.001)
        return not times

    def struck(self, sweep: Sweep, victim: str) -> bool:
        """Kill a process of a launch. Return whether there was one."""
        if victim == "driver":
            sweep.process.kill()
            return True
        end = time.monotonic() + 20
        while sweep.process.poll() is None and time.monotonic() < end:
            if victim == "memory":
                return self.exhausted(sweep)
            raylets = [number for number, command in sweep.processes().items() if "/raylet/raylet " in command]
            if found := sweep.workers() if victim == "worker" else raylets:
                kill(self.draw.choice(found))
                return True
        return False

    def exhausted(self, sweep: Sweep) -> bool:
        """Take memory until Ray ends a worker. Return whether it did."""
        before = set(sweep.workers())
        program = "import numpy, time; taken = numpy.ones(4 * 10**9, numpy.uint8); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", program]) as taking:
            end = time.monotonic() + 30
            while sweep.process.poll() is None and time.monotonic() < end and before <= set(sweep.workers()):
                time.sleep(0.1)
            taking.kill()
        return not before <= set(sweep.workers())

    def ended(self, sweep: Sweep) -> bool:
        """Whether a launch did all that was left. Edited frames that it refuses are made anew."""
        status = sweep.wait()
        kill_all(sweep.tag)
        self.happened[f"launches that ended with {status}"] += 1
        assert "Traceback" not in sweep.errors, sweep.errors
        if status == 2 and str(self.frames) in sweep.errors:
            assert sweep.errors.count("\n") == 1, sweep.errors
            assert file_sha256(self.frames) != self.whole, sweep.errors
            prepared = self.command("data", "prepare", "synthetic")
            assert prepared.wait() == 0, prepared.errors
            assert file_sha256(self.frames) == self.whole
            self.happened["edited frames refused"] += 1
        else:
            # 1 and 2: a process of Ray was killed, in the latter case before it was up
            refused = "clops-sweep: Ray: " in sweep.errors
            assert status in (0, 1, 130, -signal.SIGKILL, 2 if refused else 0), (status, sweep.output + sweep.errors)
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
        store = RunStore(self.results)
        for table, expected in self.expected.items():
            assert_equal(table, store.read(table), expected)
        self.happened["comparisons of all four tables, bit for bit"] += 1


def print_counts(heading: str, happened: Mapping[str, int]) -> None:
    print(heading)
    for what, times in sorted(happened.items()):
        print(f"  {times:5} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, help="of grids and a search, in all phases, on edited frames")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    if asked.kills:
        requests: list[str] = []
        try:
            with serving_s3("soak", requests.append) as port:
                options = f"?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
                killed = Killed(folder, asked.seed, "s3://soak/{}" + options, requests)
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
