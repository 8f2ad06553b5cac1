"""Stubs of `sbatch`, `srun` and `scontrol` that run jobs on this machine, or on those of `network`.

They do of Slurm what the recipes rely on: options in the script, variables of the environment, signals and requeues.
`sbatch` stays until its job has ended, in all its tasks and as often as it was requeued.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

STATE = "FAKE_SLURM"
"""The environment variable with a folder: `nodes.json` in it has the command that enters each node, by name."""


def install(folder: Path, nodes: dict[str, list[str]]) -> dict[str, str]:
    """Write the three commands and `ray`, and return the changes to the environment in which they are found.

    Args:
        folder: an empty one.
        nodes: what goes before a command so that it runs on a node.
    """
    for name in ("sbatch", "srun", "scontrol"):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__)}" {name} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "ray").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ray.scripts.scripts "$@"\n')
    (folder / "ray").chmod(0o755)
    (folder / "nodes.json").write_text(json.dumps(nodes))
    path = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {STATE: str(folder), "PATH": path}


def batch_shell(state: Path, job: int) -> int:
    """The process of a job's script: what `--signal=B:` signals."""
    return int((state / f"{job}.pid").read_text())


def _sbatch(script: str) -> None:
    state = Path(os.environ[STATE])
    options = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", Path(script).read_text(), re.MULTILINE))
    job = int(os.environ.get("FAKE_SLURM_JOB", "1000"))
    print(f"Submitted batch job {job}", flush=True)
    nodes = json.loads((state / "nodes.json").read_text())
    names = list(nodes)[: int(options.get("nodes", 1))]
    cpus = options["cpus-per-task"]
    shared = {
        "SLURM_JOB_NODELIST": ",".join(names), "SLURM_JOB_NUM_NODES": str(len(names)), "SLURM_CPUS_PER_TASK": cpus,
        "SLURM_CPUS_ON_NODE": cpus,
    }  # fmt: skip
    if "gpus-per-node" in options:
        shared["SLURM_GPUS_ON_NODE"] = options["gpus-per-node"]
    first, _, last = options.get("array", "").partition("-")
    running: dict[int, subprocess.Popen[bytes]] = {}

    def start(number: int) -> None:
        task = {"SLURM_ARRAY_JOB_ID": str(job), "SLURM_ARRAY_TASK_ID": str(number)} if first else {}
        identity = job + number if first else job
        environment = os.environ | shared | task | {"SLURM_JOB_ID": str(identity)}
        with open(state / f"{identity}.out", "ab") as out:
            running[number] = subprocess.Popen(
                [*nodes[names[0]], "bash", script], env=environment, stdout=out, stderr=out, start_new_session=True
            )
        (state / f"{identity}.pid").write_text(str(running[number].pid))

    for number in range(int(first), int(last) + 1) if first else [0]:
        start(number)
    statuses = {}
    while running:
        time.sleep(0.05)
        for number, process in list(running.items()):
            if process.poll() is not None:
                del running[number]
                statuses[number] = process.returncode
                requeued = state / f"{job + number}.requeue"
                if requeued.exists():
                    assert "requeue" in options, "Slurm requeues only jobs that allow it"
                    requeued.unlink()
                    start(number)
    print(" ".join(f"{number}:{status}" for number, status in sorted(statuses.items())))


def _srun(*arguments: str) -> None:
    """One task on each node; SIGTERM goes to all their processes."""
    nodes = json.loads((Path(os.environ[STATE]) / "nodes.json").read_text())
    command = [*arguments]
    while command[0].startswith("--"):
        del command[0]
    tasks = [
        subprocess.Popen(
            [*nodes[name], *command], env=os.environ | {"SLURM_PROCID": str(number)}, start_new_session=True
        )
        for number, name in enumerate(os.environ["SLURM_JOB_NODELIST"].split(","))
    ]

    def end(*_: object) -> None:
        for task in tasks:
            if task.poll() is None:
                os.killpg(task.pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    sys.exit(max(task.wait() for task in tasks))


def _scontrol(what: str, *arguments: str) -> None:
    if what == "show":
        print("\n".join(arguments[1].split(",")))
    else:
        assert what == "requeue", what
        (Path(os.environ[STATE]) / f"{arguments[0]}.requeue").touch()


if __name__ == "__main__":
    {"sbatch": _sbatch, "srun": _srun, "scontrol": _scontrol}[sys.argv[1]](*sys.argv[2:])
