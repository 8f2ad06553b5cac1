"""Code that changed since it computed stored runs: what a launch and `sweep` say."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.preloaded import Preloaded

SPACE = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np
from layers import body

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, network


@dataset("mine")
def mine(data_root):
    rng, kind = np.random.default_rng(0), np.arange(40) % 2
    x = np.sin(np.arange(32) / 5 * (1 + kind[:, None])) + rng.normal(0, 0.6, (40, 32))
    return Recordings(
        signals=x.astype(np.float32), sampling_rate=32, channels=("c",), units="mV", labels=kind, classes=("a", "b"),
        patients=np.arange(40) // 4,
    )


@network("two_layers")
def two_layers(channels, samples, outputs):
    return body(channels * samples, outputs)


SPACE = SearchSpace("mine", RunConfig(dataset="mine", network="two_layers", epochs_per_task=1), seeds=1)
"""
LAYERS = """
from torch import nn

def body(values, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(values, {width}), nn.ReLU(), nn.Linear({width}, outputs))
"""
SWEEP = """
import warnings
from clops_sweep import sweep

warnings.simplefilter("always")
for _ in range(2):
    with warnings.catch_warnings(record=True) as caught:
        outcome = sweep("space.py", "results", no_ray=True)
    print([str(warning.message) for warning in caught], outcome.changed_code, str(outcome))
"""
SAID = "network 'two_layers': its code is no longer what computed 1 stored run (space.py); under another name it is"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two folders, with a module that the search space finds by the path."""
    for name, text in (("exp/space.py", SPACE), ("src/layers.py", LAYERS.format(width=4))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(project: Path, commands: Preloaded) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command, or a program in its place, in a process of its own."""

    def run(*arguments: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CLOPS_PREPARED_ROOT": str(project / "prepared")}
        done = commands.run(project / "exp", environment, *arguments, program=program)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_a_launch_and_sweep_say_that_a_module_of_another_folder_changed(
    project: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    launch = ("space.py", "--no-ray", "--no-report")
    first = run(*launch)
    assert "1 finished" in first.stdout
    assert SAID not in first.stdout + first.stderr
    assert SAID not in run(*launch).stderr
    (project / "src/layers.py").write_text(LAYERS.format(width=32))
    assert SAID in run("plan", "space.py").stdout
    again = run(*launch)
    assert "nothing is pending" in again.stdout
    assert SAID in again.stderr
    assert json.loads(run(*launch, "--json").stdout)["changed_code"][0].startswith(SAID)
    for line in run(program=SWEEP).stdout.splitlines():
        assert line.count(SAID) == 3
