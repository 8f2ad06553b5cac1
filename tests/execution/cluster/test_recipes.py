"""The recipes of `clops-sweep new`, run with stubs of Slurm's commands, on network namespaces instead of machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from clops_sweep.experiment.spaces.search_space import all_requests, load_spaces
from tests.helpers.launching import assert_same, kill_all, runs_alone, tagged, wait_for
from tests.helpers.network import Machine, network
from tests.helpers.preloaded import Preloaded, new_tag
from tests.helpers.slurm import batch_shell, install

Write = Callable[..., None]

SPACE = """
import json
import time
from pathlib import Path

from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

FOLDER = Path({folder!r})


@strategy("unhurried")
class Unhurried(FineTuning):
    def begin_task(self, task):
        name = f"{{self.training.seeds[0]}}-{{task}}"
        (FOLDER / name).touch()
        end = time.monotonic() + 1.5
        while task and not (FOLDER / "fast").exists() and ({waits} or time.monotonic() < end):
            time.sleep(0.01)
        (FOLDER / f"{{name}}-begun").write_text(json.dumps(self.seen()))

    def seen(self):
        import ray

        return [ray.get_runtime_context().get_node_id(), ray.cluster_resources()] if ray.is_initialized() else []


SPACE = SearchSpace("unhurried", RunConfig(strategy="unhurried", epochs_per_task=1), seeds=range({runs}))
"""


class Job:
    """A submitted recipe: what `sbatch` prints, and the processes of the job."""

    def __init__(self, folder: Path, environment: dict[str, str], number: int = 1000) -> None:
        self.tag, self.number, self.state = new_tag(), number, Path(environment["FAKE_SLURM"])
        environment = environment | {"CLOPS_TEST_TAG": self.tag, "FAKE_SLURM_JOB": str(number)}
        self.process = subprocess.Popen(
            [self.state / "sbatch", "job.sh"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )

    def ended(self) -> str:
        """The exit status of each task, by its number."""
        return self.process.communicate(timeout=600)[0].splitlines()[-1]

    def printed(self, task: int = 0) -> str:
        return (self.state / f"{self.number + task}.out").read_text()

    def close(self) -> None:
        self.process.kill()
        kill_all(self.tag)
        self.process.communicate()


@pytest.fixture
def write(commands: Preloaded, environment: dict[str, str], tmp_path: Path) -> Write:
    """Writes a recipe into the test's folder as a user would, with a few of its lines changed."""

    def run(*arguments: str, **changes: str) -> None:
        done = commands.run(tmp_path, environment, "new", "job.sh", *arguments, "--space", "space.py")
        assert (done.returncode, done.stderr) == (0, "")
        text = (tmp_path / "job.sh").read_text()
        for option, value in changes.items():
            name = option.replace("_", "-")
            text, count = re.subn(rf"^#+SBATCH --{name}=.*$", f"#SBATCH --{name}={value}", text, flags=re.MULTILINE)
            assert count == 1, option
        (tmp_path / "job.sh").write_text(text)

    return run


def test_a_job_array_whose_task_is_signalled_and_requeued_gives_what_one_sweep_gives(
    write: Write, environment: dict[str, str], prepared_root: Path, tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(SPACE.format(folder=str(tmp_path), runs=3, waits=False))
    write("--slurm-array", "--shards", "2")
    (tmp_path / "bin").mkdir()
    with closing(Job(tmp_path, environment | install(tmp_path / "bin", {"here": []}))) as job:
        wait_for(lambda: list(tmp_path.glob("*-1")), "a run in its second task")
        for task in (1, 2):
            with suppress(OSError):  # a shard without runs has ended
                os.kill(batch_shell(job.state, job.number + task), signal.SIGUSR1)
        wait_for(lambda: "\ninterrupted" in job.printed(1) + job.printed(2), "a task that has stopped")
        (tmp_path / "fast").touch()
        assert job.ended() == "1:0 2:0"
        assert "\nresumed " in job.printed(1) + job.printed(2)
    configs = [request.config for request in all_requests(load_spaces(tmp_path / "space.py"))]
    assert_same(tmp_path / "results", runs_alone(configs, prepared_root))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    with network(tmp_path, ["node-a", "node-b"]) as (_, machines):
        yield machines
    for left in Path("/tmp").glob("clops-sweep-70[01]0*"):
        shutil.rmtree(left, ignore_errors=True)


def _job_on_machines(
    folder: Path, environment: dict[str, str], machines: list[Machine], number: int, state: str
) -> Job:
    temporary = Path(f"/tmp/clops-sweep-{number}")
    for machine in machines:
        machine.private(temporary)
    (folder / state).mkdir()
    entering = {machine.name: machine.inside(folder) for machine in machines}
    # Both nodes share this machine's memory.
    limits = {"RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(100 * 2**20), "RAY_prestart_worker_first_driver": "0"}
    return Job(folder, environment | limits | install(folder / state, entering), number)


def test_a_job_on_two_nodes_takes_its_cpus_and_gpus_and_a_port_that_is_free(
    write: Write, environment: dict[str, str], machines: list[Machine], prepared_root: Path, tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(SPACE.format(folder=str(tmp_path), runs=2, waits=True))
    write("--slurm", nodes="2", cpus_per_task="1", gpus_per_node="3")
    number = 7_000_001  # its port would be 10002
    command = machines[0].inside(tmp_path, sys.executable, "-c", OTHER_JOB, machines[0].address, "10002")
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"listening\n"
    with closing(_job_on_machines(tmp_path, environment, machines, number, "bin")) as job:
        wait_for(lambda: len(list(tmp_path.glob("*-1"))) == 2, "two runs in their second task", seconds=400)
        heads = [command for command in tagged(job.tag).values() if "gcs_server" in command]
        assert ["--gcs_server_port=10004" in command for command in heads] == [True]
        (tmp_path / "fast").touch()
        assert job.ended() == "0:0", job.printed()
        wait_for(lambda: not tagged(job.tag), "the end of all processes of the job")
        seen = [json.loads((tmp_path / f"{seed}-1-begun").read_text()) for seed in (0, 1)]
        assert len({node for node, _ in seen}) == 2
        assert [(cluster["CPU"], cluster["GPU"]) for _, cluster in seen] == [(2, 6), (2, 6)]
    other.communicate()
    configs = [request.config for request in all_requests(load_spaces(tmp_path / "space.py"))]
    assert_same(tmp_path / "results", runs_alone(configs, prepared_root))


OTHER_JOB = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))):
    print("listening", flush=True)
    sys.stdin.read()
"""
