"""What tests of whole sweeps share: the command as a process, what it has started, what its workers have counted."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.forked_worker import PLACE
from tests.helpers.preloaded import Preloaded, new_tag

TABLES = ("runs", "r_matrix", "curves", "instances")
ALL_METRICS = [prefix + name for prefix in ("", "test_") for name, it in METRICS.items() if it.measure != "auc_seen"]
"""The metrics of a run with several tasks that share their outputs."""

COMPUTED = ["run_id", "seed", "left_out", *ALL_METRICS]
PATIENCE = 280  # seconds: a busy machine may take a minute to start Ray
ATTACHED = ("--address", "auto")
ONE_WORKER = ("--ray", "--cpus-per-trial", "2")  # of the two CPUs; a second one costs what it takes to start

Tables = dict[str, pd.DataFrame]


class Sweep:
    """A launch of the command as a process of its own, with all that it starts."""

    def __init__(
        self,
        script: str | Preloaded,
        folder: Path,
        environment: dict[str, str],
        *arguments: str,
        program: str | None = None,
    ) -> None:
        self.tag = new_tag()
        self.folder = folder
        environment = {"RAY_OVERRIDE_RESOURCES": '{"CPU": 2}', **environment, "CLOPS_TEST_TAG": self.tag}  # two workers
        if "--address" in arguments:  # they are no children of this launch, and are to have its tag all the same
            job = {"runtime_env": {"env_vars": {"CLOPS_TEST_TAG": self.tag}}}
            environment["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps(job)
        self.process = (
            script.start(folder, environment, *arguments, program=program)
            if isinstance(script, Preloaded)
            else subprocess.Popen(
                [script, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # a group of its own, as a shell makes one for what it starts
            )
        )
        self.output = self.errors = ""
        self.returncode: int | None = None

    def read_until(self, text: str) -> None:
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"{text!r} was not printed: {self.output}{self._errors()}")

    def wait(self) -> int:
        """Waits for the end."""
        output, self.errors = self.process.communicate(timeout=PATIENCE)
        self.output += output
        self.returncode = self.process.returncode
        return self.returncode

    def kill(self) -> None:
        self.process.kill()
        assert self.wait() == -signal.SIGKILL

    def close(self) -> None:
        """Kills what is left of it."""
        self.process.kill()
        kill_all(self.tag)
        self.process.communicate()

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """What a terminal does on Ctrl-C, or when it is closed: to all of them."""
        os.killpg(self.process.pid, number)

    def _errors(self) -> str:
        return self.process.stderr.read() if self.process.stderr and self.process.poll() is not None else ""

    def processes(self) -> dict[int, str]:
        """The processes that this launch has started and that are there now, by id."""
        return tagged(self.tag)

    def workers(self) -> list[int]:
        """Those that train runs."""
        return [
            number for number, title in self.processes().items() if title.startswith("ray::") and "Trainable" in title
        ]

    def wait_until_gone(self) -> None:
        wait_for(lambda: not self.processes(), f"the end of what {self.tag} has started")


@contextlib.contextmanager
def running_ray(environment: dict[str, str], base: Preloaded) -> Iterator[dict[str, str]]:
    """A Ray of two CPUs that no launch has started.

    Args:
        environment: what its processes are started in.
        base: what its workers are forked from.

    Yields:
        The environment of launches that attach to it, with `--address auto`.
    """
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets need a short path
    tag = new_tag()
    environment = environment | {
        "RAY_TMPDIR": folder,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": uuid.uuid4().hex * 2,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on the loopback interface
        PLACE: f"{folder}/workers",
    }
    base.serve_workers(environment | {"CLOPS_TEST_TAG": tag})
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("one_node.py")],
        cwd=folder,
        env=environment | {"CLOPS_TEST_TAG": tag},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline(), "Ray has not started"
        yield environment
    finally:
        process.communicate()
        kill_all(tag)
        shutil.rmtree(folder, ignore_errors=True)


def tagged(tag: str) -> dict[int, str]:
    """The processes with a tag in their environment, by id, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if tag.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # it has ended meanwhile
                continue
    return found


def listeners(processes: Iterable[int]) -> set[str]:
    """The addresses at which processes listen for connections over TCP."""
    sockets = set()
    for number in processes:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for descriptor in Path(f"/proc/{number}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(descriptor))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                words = bytes.fromhex(fields[1].partition(":")[0])
                address = ipaddress.ip_address(b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)))
                found.add(str(getattr(address, "ipv4_mapped", None) or address))
    return found


def kill_all(tag: str) -> None:
    """Ends all processes with a tag, and those that they start while this goes on."""
    while found := tagged(tag):
        for number in found:
            kill(number)
        time.sleep(0.05)


def kill(number: int) -> None:
    """Kills a process that may have gone by itself."""
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_for(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.05)


# --- numbers ----------------------------------------------------------------------------------------------------------


def runs_alone(configs: Iterable[RunConfig], prepared_root: Path) -> Tables:
    """What runs give in Python, one by one, without Ray and without a store."""
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for config in configs:
        key = config.data_key
        frames = open_frames(key.dataset, prepared_root=prepared_root, **key.view)
        tables = ContinualRun(config, frames).run()
        for name in TABLES:
            parts[name].append(getattr(tables, name))
    return {name: comparable(name, pd.concat(frames)) for name, frames in parts.items()}


def comparable(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """What was computed, by run; rows of a run in their own order."""
    columns = COMPUTED if name == "runs" else SCHEMAS[name].names
    frame = frame.sort_values("run_id", kind="stable", ignore_index=True)[columns]
    for column in columns:  # pandas does not compare lists in cells
        if pa.types.is_list(SCHEMAS[name].field(column).type):
            frame[column] = frame[column].map(lambda values: None if values is None else tuple(values))
    return frame


def assert_same(results: Path, expected: Tables) -> None:
    """What pandas reads from a store is what was expected, bit for bit."""
    for name, frame in expected.items():
        assert_equal(name, pd.read_parquet(results / name), frame)


def assert_equal(name: str, found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Bit for bit."""
    pd.testing.assert_frame_equal(comparable(name, found), expected, check_exact=True, check_dtype=False)


# --- counting ---------------------------------------------------------------------------------------------------------

COUNTED = '''
import inspect
import json
import os
import time
from pathlib import Path

import ray

from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

FOLDER = Path({folder!r})


@strategy("counted")
class Counted(FineTuning):
    """Fine-tuning that leaves a line in a file whenever a task of a run begins, and waits where it is told to."""

    def begin_task(self, task):
        run = inspect.currentframe().f_back.f_locals["self"]  # that calls this, and has the data
        address = run.frames.frames.__array_interface__["data"][0]
        for line in Path("/proc/self/maps").read_text().splitlines():
            begin, _, rest = line.partition("-")
            if int(begin, 16) <= address < int(rest.split(" ")[0], 16):
                _, _, offset, _, inode, *name = line.split()
                where = [" ".join(name), inode, address - int(begin, 16) + int(offset, 16)]
        line = dict(seed=self.training.seed, task=task, pid=os.getpid(), tag=os.environ["CLOPS_TEST_TAG"],
                    node=ray.get_runtime_context().get_node_id(), moment=time.time_ns(), frames=where)
        file = os.open(FOLDER / "began", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, json.dumps(line).encode() + b"\\n")
        os.close(file)
        while task == {held} and self.is_held(line["seed"]):
            time.sleep(0.05)

    def is_held(self, seed):
        try:
            return str(seed) not in (FOLDER / "gate").read_text().split()
        except FileNotFoundError:
            return False


SPACE = SearchSpace(
    "counted", RunConfig(strategy="counted", scenario={scenario!r}, epochs_per_task={epochs}), seeds=range({runs})
)
'''


@dataclass(frozen=True)
class Beginning:
    """That a task of a run began.

    Attributes:
        seed: which run.
        task: from 0.
        pid: of the worker.
        tag: of the launch.
        node: Ray's id of the machine.
        moment: nanoseconds by this machine's clock.
        frames: what the frames lie in, and where in there.
    """

    seed: int
    task: int
    pid: int
    tag: str
    node: str
    moment: int
    frames: list[object]


class Counted:
    """A space of short runs that leave a line in a file whenever one of their tasks begins.

    Attributes:
        file: the search space.
        gate: a file; while it is there, runs wait at the beginning of task `held`, but for the seeds in it.
    """

    def __init__(self, folder: Path, runs: int, epochs: int = 1, scenario: str = "class_il", held: int = 1) -> None:
        self.held = held
        self.runs = runs
        self.epochs = epochs
        self.scenario = scenario
        self.gate = folder / "gate"
        self._began = folder / "began"
        self.file = folder / "space.py"
        made = COUNTED.format(folder=str(folder), runs=runs, epochs=epochs, scenario=scenario, held=held)
        self.file.write_text(made)

    def beginnings(self, task: int | None = None) -> list[Beginning]:
        lines = self._began.read_text().splitlines() if self._began.exists() else []
        found = [Beginning(**json.loads(line)) for line in lines]
        return [beginning for beginning in found if task in (None, beginning.task)]

    def wait_at_gate(self, workers: int, tag: str = "") -> list[Beginning]:
        """Waits until so many workers wait at the gate."""

        def waiting() -> list[Beginning]:
            return [one for one in self.beginnings(self.held) if tag in one.tag]

        wait_for(lambda: len({one.pid for one in waiting()}) >= workers, f"{workers} workers at the gate")
        return waiting()

    def configs(self, seeds: Iterable[int]) -> list[RunConfig]:
        """The same runs as the package itself has them."""
        base = RunConfig(strategy="finetune", scenario=self.scenario, epochs_per_task=self.epochs)
        return [base.replace(seed=seed) for seed in seeds]


def assert_counted_like_fine_tuning(found: dict[str, pd.DataFrame], expected: Tables) -> None:
    """The runs that are expected are among those found, with the same numbers; their ids differ with the strategy."""
    seeds = expected["runs"].set_index("run_id")["seed"]
    ids = found["runs"].set_index("seed")["run_id"]
    for name, frame in expected.items():
        renamed = frame.assign(run_id=frame["run_id"].map(seeds).map(ids))
        wanted = found[name][found[name]["run_id"].isin(set(renamed["run_id"]))]
        assert_equal(name, wanted, comparable(name, renamed))
