"""A sweep on a cluster of two nodes, with results in an object store; its driver and a node are lost."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import fs

from clops_sweep.store.run_store import RunStore
from tests.conftest import Command
from tests.helpers.forked_worker import PLACE
from tests.helpers.launching import (
    TABLES,
    Beginning,
    Counted,
    Sweep,
    assert_counted_like_fine_tuning,
    kill,
    kill_all,
    runs_alone,
    tagged,
    wait_for,
)
from tests.helpers.preloaded import SWEEPS, Preloaded, new_tag
from tests.helpers.s3_server import CREDENTIALS, serving_s3

RUNS = 24
BUCKET = "experiments"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a server that speaks S3; it has one bucket."""
    with serving_s3(BUCKET) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def results(endpoint: str, nodes: Nodes) -> str:
    """The store of this cluster."""
    return f"s3://{BUCKET}/{nodes.tag}?endpoint_override={endpoint}&scheme=http&region=us-east-1"


@pytest.fixture
def clops_sweep(clops_sweep: Command) -> Command:
    """The command with the credentials of the bucket."""

    def run(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        return clops_sweep(*arguments, **CREDENTIALS | changes)

    return run


@dataclass
class Nodes:
    """A cluster of two nodes, with two CPUs and one."""

    tag: str
    environment: dict[str, str]
    dashboard: str | None
    address: str
    head: str
    other: str
    other_raylet: int


@pytest.fixture(scope="module", params=["launched", pytest.param("submitted as a job", marks=pytest.mark.nightly)])
def nodes(request: pytest.FixtureRequest, environment: dict[str, str], commands: Preloaded) -> Iterator[Nodes]:
    """The cluster; jobs are submitted to its dashboard, which it has if that is how the first sweep is started."""
    if version("ray").startswith("2.50"):
        pytest.skip("of two nodes on one machine a driver of Ray 2.50 joins either, and is lost with it")
    temporary = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets need a short path
    tag = new_tag()
    port = _free_port() if "job" in request.param else 0
    changed = (
        environment
        | CREDENTIALS
        | {
            "CLOPS_TEST_TAG": tag,
            "RAY_TMPDIR": temporary,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": uuid.uuid4().hex * 2,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
            "RAY_health_check_period_ms": "200",  # a node is given up after as many looks, and not after 15 s of them
            PLACE: f"{temporary}/workers",
        }
    )
    commands.serve_workers(changed)
    script = Path(__file__).parents[2] / "helpers" / "two_nodes.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(port)],
        env=changed,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        dashboard = f"http://127.0.0.1:{port}" if port else None
        yield Nodes(tag, changed, dashboard, **json.loads(process.stdout.readline()))
    finally:
        kill_all(tag)
        process.communicate()
        shutil.rmtree(temporary, ignore_errors=True)


@dataclass
class Story:
    """What happened."""

    counted: Counted
    job: list[Beginning] = field(
        default_factory=list
    )  # what the first sweep's workers were at when its driver was killed
    resumed: list[Beginning] = field(default_factory=list)  # those of the next launch first
    held: list[Beginning] = field(default_factory=list)  # then, when the node was lost
    checkpoints: set[str] = field(default_factory=set)  # when the driver was killed
    last: Sweep | None = None


def _submit(drivers: Preloaded, folder: Path, *arguments: str) -> None:
    """Submits a job, again and again while the nodes are there but the agents that take jobs have not started yet."""
    ray = "from ray.scripts.scripts import main; main()"  # what `ray` does, from a process that has it imported
    deadline = time.monotonic() + 120
    while True:
        done = drivers.run(folder, drivers.environment, "job", "submit", *arguments, program=ray)
        if "No available agent" not in done.stderr or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def story(
    console_script: str, commands: Preloaded, nodes: Nodes, results: str, tmp_path_factory: pytest.TempPathFactory
) -> Story:
    folder = tmp_path_factory.mktemp("nodes")
    story = Story(Counted(folder, runs=RUNS, scenario="time_il"))  # three tasks, and as many checkpoints
    story.counted.gate.touch()
    drivers = Preloaded(nodes.environment, SWEEPS, commands)
    options = ["--no-report", "--results", results, "--checkpoint-every", str(story.counted.epochs)]
    sweep = [str(folder / "space.py"), *options]
    if nodes.dashboard is not None:
        command = ["sh", "-c", "exec " + shlex.join([console_script, *sweep, "--address", "auto"])]  # Ray quotes no "&"
        _submit(drivers, folder, "--address", nodes.dashboard, "--no-wait", "--", *command)
        story.job = story.counted.wait_at_gate(workers=3)
        for number, title in tagged(nodes.tag).items():
            if results in title and " job " not in title:  # its driver
                kill(number)
    else:
        first = Sweep(drivers, folder, nodes.environment, *sweep, "--address", nodes.address)
        story.job = story.counted.wait_at_gate(workers=3)
        first.kill()
    workers = {one.tag for one in story.job}
    wait_for(lambda: not any(_alive(tag, story.job) for tag in workers), "the end of the first sweep's workers")
    files = RunStore(results).files
    found = files.system.get_file_info(fs.FileSelector(f"{BUCKET}/{nodes.tag}/.work/checkpoints"))
    story.checkpoints = {info.base_name for info in found}

    alone = set(range(10))  # as many wait as could be needed, and it takes one that was not resumed to know the time
    story.counted.gate.write_text(" ".join(map(str, alone)))
    story.last = Sweep(drivers, folder, nodes.environment, *sweep, "--address", nodes.address)
    before = {one.pid for one in story.job}
    new: list[Beginning] = []

    def at_the_gate() -> bool:
        new[:] = [one for one in story.counted.beginnings(task=1) if one.pid not in before]
        return len({one.pid for one in new if one.seed not in alone}) == 3

    wait_for(at_the_gate, "the workers of the next launch")
    story.resumed = [one for one in new if one.seed in alone]
    story.held = [one for one in new if one.seed not in alone]
    kill(nodes.other_raylet)
    for pid in {one.pid for one in new if one.node == nodes.other}:
        kill(pid)
    story.counted.gate.unlink()
    story.last.wait()
    drivers.close()
    return story


def _alive(tag: str, workers: list[Beginning]) -> set[int]:
    return set(tagged(tag)) & {one.pid for one in workers}


def test_the_runs_of_a_job_are_spread_over_both_nodes(story: Story, nodes: Nodes) -> None:
    assert {one.node for one in story.job} == {nodes.head, nodes.other}


def test_the_data_are_on_each_node_once_and_its_workers_share_them(story: Story, nodes: Nodes) -> None:
    """In Ray's object store: the same place of the same file of shared memory for every worker of a node."""
    places = {node: {tuple(one.frames) for one in story.job if one.node == node} for node in (nodes.head, nodes.other)}
    assert len({one.pid for one in story.job if one.node == nodes.head}) == 2
    assert [len(found) for found in places.values()] == [1, 1]
    assert all(name.startswith("/dev/shm/plasma") for found in places.values() for name, _, _ in found)


def test_checkpoints_lie_with_the_results_and_are_found_by_the_next_launch(story: Story) -> None:
    assert len(story.checkpoints) == 3
    assert sorted(one.seed for one in story.counted.beginnings(task=0)) == list(range(RUNS))
    assert {one.seed for one in story.job} <= {one.seed for one in story.resumed}


def test_a_lost_driver_and_a_lost_node_cost_no_run_and_change_no_number(
    story: Story, nodes: Nodes, results: str, prepared_root: Path
) -> None:
    assert (story.last.returncode, story.last.errors) == (0, "")
    assert f"{RUNS} runs asked for, {RUNS} finished, 0 pending, 0 failed" in story.last.output
    lost = {one.seed for one in story.held if one.node == nodes.other}
    assert lost
    store = RunStore(results)
    found: dict[str, pd.DataFrame] = {name: store.read(name) for name in TABLES}
    assert sorted(found["runs"]["seed"]) == list(range(RUNS))
    seeds = sorted(lost | {one.seed for one in story.job})
    assert_counted_like_fine_tuning(found, runs_alone(story.counted.configs(seeds), prepared_root))
    left = store.files.system.get_file_info(fs.FileSelector(f"{BUCKET}/{nodes.tag}/.work/checkpoints"))
    assert [info.base_name for info in left] == []
