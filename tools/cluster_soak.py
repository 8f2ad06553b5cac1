"""A sweep on a cluster under everything that happens to clusters. Run by hand, as root.

    CLOPS_PREPARED_ROOT=folder PYTHONPATH=. python tools/cluster_soak.py --runs 2000 --minutes 15 --seed 1

Three machines are network namespaces that a bridge joins; a fourth one joins and leaves. Results lie on an S3 server,
which answers some requests with 500 or 503, and at times all. Nodes are killed, cut off from the others for a minute
and slowed; so is the head with the driver. What has ended is started again, as Kubernetes would. When the time is up,
the same command ends undisturbed. All four tables must be bit-equal to those of a sweep on one quiet machine.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from tests.helpers.launching import TABLES, assert_same, comparable, kill, kill_all, tagged, wait_for
from tests.helpers.network import Machine, network
from tests.helpers.preloaded import new_tag
from tests.helpers.s3_server import CREDENTIALS, serving_s3

SPACE = """
import os
import time

from clops_sweep import RunConfig, SearchSpace, augmentation

LONGEST = float(os.environ.get("SOAK_SECONDS", "0"))  # that a training pass waits; the draws are the same with 0


@augmentation("waiting")
def waiting(frames, rng):
    time.sleep(LONGEST * rng.random() ** 4)
    return frames


SPACE = SearchSpace(
    "soak",
    RunConfig(augment="waiting", mc_samples=3),
    {{"strategy": ["finetune", "er", "ewc", "clops"], "epochs_per_task": [1, 4]}},
    seeds=range({seeds}),
)
"""
PORT, S3_PORT, CPUS = 6400, 9000, 3
BUCKET = "soak"
TEMPORARY = Path("/tmp/clops-soak")  # each machine has its own
QUIET = 3600  # seconds that the last launch may take, once nothing disturbs it any more


class Node:
    """A machine with a node of the cluster, which is started again when it has ended.

    Attributes:
        tag: of its processes.
    """

    def __init__(self, machine: Machine, folder: Path, environment: Mapping[str, str], head: Machine) -> None:
        self.machine, self.tag, self._folder = machine, new_tag(), folder
        self.is_head = machine is head
        machine.private(TEMPORARY)
        self._environment = {**environment, "CLOPS_TEST_TAG": self.tag, "RAY_TMPDIR": str(TEMPORARY)}
        address = f"{head.address}:{PORT}"
        role = ["--head", f"--port={PORT}", "--include-dashboard=false"] if self.is_head else [f"--address={address}"]
        self._command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", *role, "--block", "--num-gpus=0"),
            *(f"--node-ip-address={machine.address}", f"--num-cpus={CPUS}", "--object-store-memory=100000000"),
            *("--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.down_until = 0.0

    def keep_up(self) -> bool:
        """Start it if it has ended and is not down on purpose. Return whether it was started."""
        if time.monotonic() < self.down_until or (self._process is not None and self._process.poll() is None):
            return False
        kill_all(self.tag)
        self.machine.run("sh", "-c", f"rm -rf {TEMPORARY}/*")  # as after a start of the machine
        with open(self._folder / f"{self.machine.name}.log", "ab") as log:
            self._process = subprocess.Popen(
                self.machine.inside(self._folder, *self._command),
                env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return True

    def kill(self, seconds: float) -> None:
        """Kill all its processes; it comes back after some seconds."""
        self.down_until = time.monotonic() + seconds
        kill_all(self.tag)
        if self._process is not None:
            self._process.wait()

    def workers(self) -> list[int]:
        return [number for number, title in tagged(self.tag).items() if title.startswith("ray::")]


class Soak:
    """A sweep on machines, and what happens to them.

    Attributes:
        happened: how often each thing happened.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], hub: Machine, machines: list[Machine], seed: int):
        self.folder, self.hub, self.draw = folder, hub, random.Random(seed)
        self.happened: collections.Counter[str] = collections.Counter()
        self.environment = {
            **environment, **CREDENTIALS, "COLUMNS": "200", "SOAK_SECONDS": "0.1", "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": uuid.uuid4().hex * 2, "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
        }  # fmt: skip
        self.nodes = [Node(machine, folder, self.environment, machines[0]) for machine in machines]
        self.head, *self.others = self.nodes
        self.others[-1].down_until = float("inf")  # it joins later
        self.results = f"s3://{BUCKET}/results?endpoint_override={hub.address}:{S3_PORT}&scheme=http&region=us-east-1"
        self.driver: subprocess.Popen[bytes] | None = None
        self.driver_tag = new_tag()
        self.healed: dict[float, tuple[Machine, str, list[str]]] = {}  # what ends when, and how

    def command(self, machine: Machine, *arguments: str, log: str, tag: str) -> subprocess.Popen[bytes]:
        script = str(Path(sys.executable).with_name("clops-sweep"))
        environment = {**self.environment, "CLOPS_TEST_TAG": tag}
        with open(self.folder / log, "ab") as out:
            return subprocess.Popen(
                machine.inside(self.folder, script, *arguments),
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    def step(self) -> bool:
        """Start again what has ended, and end what should last no longer. Return whether the sweep is finished."""
        now = time.monotonic()
        for due in [due for due in self.healed if due <= now]:
            machine, _, command = self.healed.pop(due)
            machine.run(*command)
        self.happened["nodes started"] += sum([node.keep_up() for node in self.nodes])
        if self.driver is not None and (status := self.driver.poll()) is not None:
            self.happened[f"launches that ended with {status}"] += 1
            kill_all(self.driver_tag)
            if status == 0:
                return True
            self.driver = None
        if self.driver is None and self._answers():
            self.driver = self.command(
                self.head.machine,
                *("space.py", "--results", self.results, "--address", f"{self.head.machine.address}:{PORT}"),
                *("--no-report", "--max-retries", "1000", "--device", "cpu"),
                log="driver.log", tag=self.driver_tag,
            )  # fmt: skip
        time.sleep(0.5)
        return False

    def _answers(self) -> bool:
        """Whether the head can be connected to."""
        probe = f"import socket; socket.create_connection(('{self.head.machine.address}', {PORT}), 1)"
        command = self.head.machine.inside(Path("/"), sys.executable, "-c", probe)
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0

    def disturb(self) -> None:
        """Do one of the things that happen to clusters."""
        self.draw.choice([
            *[self._kill_node] * 3, self._kill_worker, self._partition, self._slow, self._stop_workers, self._outage,
            self._kill_driver, self._kill_head, self._join_or_leave,
        ])()  # fmt: skip

    def _kill_node(self) -> None:
        up = [node for node in self.others if node.down_until < time.monotonic()]
        if not up:
            return
        self.draw.choice(up).kill(self.draw.uniform(1, 20))
        self.happened["nodes killed"] += 1

    def _kill_worker(self) -> None:
        if found := self.draw.choice(self.nodes).workers():
            kill(self.draw.choice(found))
            self.happened["workers killed"] += 1

    def _kill_head(self) -> None:
        self.head.kill(self.draw.uniform(1, 10))
        kill_all(self.driver_tag)
        self.happened["head and driver killed"] += 1

    def _kill_driver(self) -> None:
        kill_all(self.driver_tag)
        self.happened["drivers killed"] += 1

    def _partition(self) -> None:
        """Drop all packets of a machine for a minute."""
        machine = self.draw.choice(self.others[:-1]).machine
        if self._disturbs(machine, 60, f"ip link set {machine.port} master bridge", self.hub):
            self.hub.run(*f"ip link set {machine.port} nomaster".split())
            self.happened["nodes cut off for a minute"] += 1

    def _slow(self) -> None:
        """Give a machine a slow line."""
        machine = self.draw.choice(self.others[:-1]).machine
        if self._disturbs(machine, self.draw.uniform(20, 60), "tc qdisc del dev eth0 root", machine):
            slow = "tc qdisc add dev eth0 root tbf rate 2mbit burst 16kb latency 500ms"
            machine.run(*slow.split())
            self.happened["nodes with a line of 2 Mbit/s for a while"] += 1

    def _disturbs(self, machine: Machine, seconds: float, undo: str, where: Machine) -> bool:
        """Note what ends a disturbance of a machine's line, and when; one at a time."""
        if any(name == machine.name for _, name, _ in self.healed.values()):
            return False
        self.healed[time.monotonic() + seconds] = (where, machine.name, undo.split())
        return True

    def _stop_workers(self) -> None:
        """Let the workers of a node stand still for a few seconds."""
        found = self.draw.choice(self.nodes).workers()
        subprocess.run(["kill", "-STOP", *map(str, found)], stderr=subprocess.DEVNULL)
        time.sleep(self.draw.uniform(2, 10))
        subprocess.run(["kill", "-CONT", *map(str, found)], stderr=subprocess.DEVNULL)
        self.happened["nodes whose workers stood still for 2 to 10 s"] += 1

    def _outage(self) -> None:
        """Let S3 refuse everything for a few seconds."""
        outage = self.folder / "outage"
        outage.touch()
        time.sleep(self.draw.uniform(1, 15))
        outage.unlink()
        self.happened["times S3 refused everything for 1 to 15 s"] += 1

    def _join_or_leave(self) -> None:
        node = self.others[-1]
        if node.down_until > time.monotonic():
            node.down_until = 0
            self.happened["times a fourth node joined"] += 1
        else:
            node.kill(float("inf"))
            self.happened["times a fourth node left"] += 1

    def run(self, minutes: float) -> float:
        """Disturb the sweep for so long, then let it end. Return the seconds that it took."""
        began = time.monotonic()
        end, due, finished = began + 60 * minutes, began + 30, False
        while not finished:
            if due < time.monotonic() < end:
                self.disturb()
                due = time.monotonic() + self.draw.uniform(3, 20)
                print(f"{time.monotonic() - began:.0f} s: {dict(self.happened)}", flush=True)
            finished = self.step()
            assert time.monotonic() < end + QUIET, "the sweep does not end"
        return time.monotonic() - began

    def close(self) -> None:
        for node in self.nodes:
            kill_all(node.tag)
        kill_all(self.driver_tag)


def serve(host: str, folder: Path, seed: int) -> None:
    """Serve S3 until standard input is closed, with faults; write how often each occurred."""
    draw, answered = random.Random(seed), collections.Counter[int]()

    def fault() -> int:
        status = 503 if (folder / "outage").exists() else draw.choices([0, 500, 503], [0.99, 0.005, 0.005])[0]
        answered[status] += 1
        return status

    with serving_s3(BUCKET, fault=fault, host=host, port=S3_PORT):
        print("serving", flush=True)
        sys.stdin.read()
    print(f"S3 answered {answered.total()} requests, {answered[500]} of them with 500 and {answered[503]} with 503")


def soak(folder: Path, environment: Mapping[str, str], runs: int, minutes: float, seed: int) -> list[str]:
    """Run the soak in an empty folder. Return its figures, by line.

    Raises:
        AssertionError: a table differs, a launch printed a traceback, or the sweep does not end.
    """
    (folder / "space.py").write_text(SPACE.format(seeds=runs // 8))
    script = str(Path(sys.executable).with_name("clops-sweep"))
    began = time.monotonic()
    subprocess.run(
        [script, "space.py", "--results", "quiet", "--no-report"],
        cwd=folder, env=dict(environment), stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    figures = [f"quiet sweep of {runs} runs: {time.monotonic() - began:.0f} s"]
    expected = {table: comparable(table, pd.read_parquet(folder / "quiet" / table)) for table in TABLES}
    assert len(expected["runs"]) == runs
    with network(folder, ["node-a", "node-b", "node-c", "node-d"]) as (hub, machines):
        serving = [sys.executable, __file__, "serve", hub.address, str(folder), str(seed)]
        with subprocess.Popen(
            hub.inside(folder, *serving),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "PYTHONPATH": str(Path(__file__).parents[1])},
            text=True,
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "serving\n"
            it = Soak(folder, environment, hub, machines, seed)
            try:
                figures.append(f"disturbed sweep: {it.run(minutes):.0f} s")
                merged = it.command(hub, "merge", "merged", it.results, log="merge.log", tag=it.driver_tag)
                assert merged.wait() == 0, (folder / "merge.log").read_text()
            finally:
                it.close()
                wait_for(lambda: not any(tagged(node.tag) for node in it.nodes), "the end of all processes")
            figures.append(server.communicate()[0].strip())
    assert_same(folder / "merged", expected)
    assert "Traceback" not in (folder / "driver.log").read_text()
    figures += [f"{times:5} {what}" for what, times in sorted(it.happened.items())]
    return [*figures, f"all four tables of all {runs} runs are bit-equal"]


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="a multiple of 8")
    parser.add_argument("--minutes", type=float, default=15, help="of disturbances")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cluster-soak-"))
    print(folder, flush=True)
    print("\n".join(soak(folder, os.environ, asked.runs, asked.minutes, asked.seed)))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
