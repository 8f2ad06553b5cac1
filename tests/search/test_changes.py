"""Code that changed since it computed stored runs: what a launch and `sweep` say."""

from __future__ import annotations

import json
import os
import shlex
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
        outcome = sweep("space.py", "results", ray=False)
    print([str(warning.message) for warning in caught], outcome.changed_code, str(outcome))
"""
SAID = (
    "network 'two_layers': 1 stored run is of an earlier version of its code (space.py) and counts as finished; to run"
)


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


@pytest.mark.nightly
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
    lines = run(program=SWEEP).stdout.splitlines()
    assert [line.count(SAID) for line in lines if line.startswith("[")] == [3, 3]


SCORES = "from clops_sweep import read; print(read('results', 'runs')[['auc', 'test_auc']].to_numpy().tolist())"
LOADED = """
import warnings
from clops_sweep import load_model, read
import space

with warnings.catch_warnings(record=True) as caught:
    load_model("results", read("results", "runs")["run_id"][0])
print([str(warning.message) for warning in caught])
"""


@pytest.mark.nightly
def test_numbers_of_a_finished_run_are_not_replaced_by_those_of_other_code(
    project: Path, run: Callable[..., subprocess.CompletedProcess[str]], commands: Preloaded
) -> None:
    launch = ("space.py", "--no-ray", "--no-report")
    run(*launch)
    scores = run(program=SCORES).stdout
    (project / "src/layers.py").write_text(LAYERS.format(width=32))
    environment = {**os.environ, "CLOPS_PREPARED_ROOT": str(project / "prepared")}
    for keep in ("predictions", "models"):
        refused = commands.run(project / "exp", environment, *launch, "--keep", keep)
        assert refused.returncode == 2
        assert "network 'two_layers': its code (space.py) has changed since run" in refused.stderr
    assert run(program=SCORES).stdout == scores
    (project / "src/layers.py").write_text(LAYERS.format(width=4))
    run(*launch, "--keep", "predictions")
    assert run(program=SCORES).stdout == scores
    (project / "src/layers.py").write_text(LAYERS.format(width=32))
    refused = commands.run(project / "exp", environment, *launch, "--keep", "models")
    words = shlex.split(refused.stderr.partition("or delete the run: ")[2])
    run(*words[1:], "--yes")
    run(*launch)
    assert run(program=SCORES).stdout != scores


@pytest.mark.nightly
def test_a_model_says_that_the_code_of_its_network_has_changed(
    project: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    said = "network 'two_layers': its code has changed since it was trained in run"
    run("space.py", "--no-ray", "--no-report", "--keep", "models")
    assert run(program=LOADED).stdout == "[]\n"
    other = LAYERS.format(width=4).replace("ReLU", "Tanh")
    (project / "src/layers.py").write_text(other)
    assert said in run(program=LOADED).stdout
    pytest.importorskip("onnxruntime", reason="needs clops-sweep[onnx]")
    run_id = run(program="from clops_sweep import read; print(read('results', 'runs')['run_id'][0])").stdout.strip()
    assert said in run("export", run_id, "model.onnx", "--plugins", "space.py").stderr


REDEFINED = """
import warnings
from torch import nn
from clops_sweep import RunConfig, SearchSpace, network, sweep

def said(results):
    space = SearchSpace("mine", RunConfig(network="mine", strategy="finetune", epochs_per_task=1), seeds=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = sweep(space, results, ray=False)
    warned = [str(warning.message) for warning in caught if "its code" in str(warning.message)]
    print(results, outcome.ran, warned, outcome.changed_code)

def registered(width):
    @network("mine")
    def within(channels, samples, outputs):
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, width), nn.Linear(width, outputs))

for width in (4, 4, 8):
    registered(width)
    said("in_function")

for width in (4, 4, 8):
    @network("mine")
    def in_loop(channels, samples, outputs):
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, width), nn.Linear(width, outputs))
    said("in_loop")

@network("mine")
def twice(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 4), nn.Linear(4, outputs))
said("twice")
said("twice")

@network("mine")
def twice(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 8), nn.Linear(8, outputs))
said("twice")
"""


@pytest.mark.nightly
def test_a_script_that_defines_a_network_anew_under_one_name_is_told_that_stored_runs_had_the_other(
    tmp_path: Path, commands: Preloaded
) -> None:
    (tmp_path / "script.py").write_text(REDEFINED)
    program = "import runpy; runpy.run_path('script.py', run_name='__main__')"
    environment = {**os.environ, "CLOPS_PREPARED_ROOT": str(tmp_path / "prepared")}
    done = commands.run(tmp_path, environment, program=program)
    assert done.returncode == 0, done.stderr
    said = (
        "network 'mine': 1 stored run is of an earlier version of its code (script.py) and counts as finished; to run"
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("in_function", "in_loop", "twice"))]
    assert len(lines) == 9
    for first, again, changed in (lines[:3], lines[3:6], lines[6:]):
        assert first.partition(" ")[2] == "True [] ()"
        assert again.partition(" ")[2] == "False [] ()"
        assert " False [" in changed
        assert changed.count(said) == 2


NOISY = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, sweep

for noise in (0.1, 3.0, 3.0, 0.1):
    @dataset("noisy")
    def noisy(data_root):
        rng, kind = np.random.default_rng(0), np.arange(40) % 2
        x = np.sin(np.arange(32) / 5 * (1 + kind[:, None])) + rng.normal(0, noise, (40, 32))
        return Recordings(
            signals=x.astype(np.float32), sampling_rate=32, channels=("c",), units="mV", labels=kind,
            classes=("a", "b"), patients=np.arange(40) // 4,
        )
    base = RunConfig(dataset="noisy", strategy="finetune", network="mlp", epochs_per_task=1)
    outcome = sweep(SearchSpace("noisy", base, seeds=1), "results", ray=False)
    print("run", outcome.ran, outcome.runs["data_hash"].item())
"""


@pytest.mark.nightly
def test_a_data_set_that_a_script_defines_anew_is_prepared_anew(tmp_path: Path, commands: Preloaded) -> None:
    (tmp_path / "script.py").write_text(NOISY)
    program = "import runpy; runpy.run_path('script.py', run_name='__main__')"
    environment = {**os.environ, "CLOPS_PREPARED_ROOT": str(tmp_path / "prepared")}
    done = commands.run(tmp_path, environment, program=program)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("run ")]
    hashes = [data_hash for _, _, data_hash in lines]
    assert [ran for _, ran, _ in lines] == ["True", "True", "False", "False"]
    assert hashes == [hashes[0], hashes[1], hashes[1], hashes[0]]
    assert hashes[0] != hashes[1]
