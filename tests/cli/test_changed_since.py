"""Code and data that changed since claims were sealed or runs were computed: every command says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clops_sweep.store.run_store import RunStore
from tests.conftest import Command

SPACE = """
import numpy as np
from torch import nn

from clops_sweep import Claim, Contrast, Recordings, RunConfig, SearchSpace, Side, dataset, network


@dataset("mine", files=["x.npy"])
def mine(data_root):
    x, kind = np.load(data_root / "x.npy"), np.arange(40) % 2
    return Recordings(x, 32, ["c"], "mV", labels=kind, classes=["a", "b"], patients=np.arange(40) // 4)


@network("two_layers")
def two_layers(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


BASE = RunConfig(dataset="mine", network="two_layers", epochs_per_task=1, split_seed=1)
SPACE = SearchSpace("mine", BASE, {"strategy": ["finetune", "er"]}, seeds=1)
SIDES = [Side(name, {"strategy": name}) for name in ("er", "finetune")]
CLAIMS = [Claim("above", "ER is above fine-tuning", Contrast(*SIDES))]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "space.py").write_text(SPACE.replace("WIDTH", "4"))
    _write(tmp_path, 0)
    return tmp_path


def _write(project: Path, seed: int) -> None:
    np.save(project / "x.npy", np.random.default_rng(seed).normal(size=(40, 32)))


@pytest.mark.nightly
def test_a_seal_names_code_that_was_edited(project: Path, clops_sweep: Command) -> None:
    roots = {"CLOPS_PREPARED_ROOT": str(project / "prepared"), "CLOPS_DATA_ROOT": str(project)}
    sealed = clops_sweep("claims", "space.py", "--seal", **roots)
    assert (sealed.returncode, sealed.stderr.count("Traceback")) == (0, 0), sealed.stderr
    RunStore(project / "results").open_for_writing()
    said = "before the first run"
    assert f'{said}"' in clops_sweep("claims", "space.py", "--json", **roots).stdout
    (project / "space.py").write_text(SPACE.replace("WIDTH", "8"))
    changed = clops_sweep("claims", "space.py", "--json", **roots).stdout
    assert f"{said}; changed since: the code of network 'two_layers' was edited\"" in changed


@pytest.mark.nightly
def test_every_command_says_that_data_and_code_changed_since_the_runs(project: Path, clops_sweep: Command) -> None:
    roots = {"CLOPS_PREPARED_ROOT": str(project / "prepared"), "CLOPS_DATA_ROOT": str(project)}
    done = clops_sweep("space.py", "--no-ray", "--no-report", **roots)
    assert done.returncode == 0, done.stderr
    commands = [("claims", "space.py"), ("report", "space.py")]
    for command in commands:
        assert clops_sweep(*command, **roots).stderr == ""
    (project / "space.py").write_text(SPACE.replace("WIDTH", "8"))
    for command in commands:
        said = clops_sweep(*command, **roots).stderr
        assert "network 'two_layers': 2 stored runs are of an earlier version of its code" in said
    _write(project, 1)
    for command in commands:
        said = clops_sweep(*command, **roots).stderr
        assert "clops-sweep: data set mine changed since it was prepared (edited: x.npy); a launch or 'clops-s" in said
        assert "data prepare mine --plugins space.py" in said
        assert "stored runs count as finished if the frames prove equal" in said
    status = clops_sweep("status", "space.py", **roots).stdout
    (of_data,) = [line for line in status.splitlines() if line.startswith("data set mine ")]
    assert of_data.startswith(
        "data set mine has changed since it was prepared on this machine (edited: x.npy): its runs count as pending "
        "until 'clops-sweep data prepare mine --plugins space.py"
    )
    assert of_data.endswith(
        "or a launch prepares it again; then, stored runs count as finished if the frames prove equal, and else are of "
        "the former data and computed anew"
    )
    run_id = RunStore(project / "results").rows("runs")[0]["run_id"]
    refused = clops_sweep("update-report", run_id, "--folds", "--plugins", "space.py", **roots)
    assert refused.returncode == 2
    assert "dataset 'mine' changed since it was prepared in " in refused.stderr
    assert "(edited: x.npy); prepare it again with 'clops-sweep data prepare mine --plugins space.py" in refused.stderr
    _write(project, 0)
    (project / "space.py").write_text("import math\n" + SPACE.replace("WIDTH", "4"))
    assert clops_sweep("data", "prepare", "space.py", **roots).returncode == 0
    assert "2 finished" in clops_sweep("status", "space.py", **roots).stdout, "the frames are equal, so runs are kept"


@pytest.mark.nightly
def test_a_seal_says_that_runs_are_on_other_data(project: Path, clops_sweep: Command) -> None:
    """Another file computed the same configs on other data of the same name, and the sealed data are back."""
    roots = {"CLOPS_PREPARED_ROOT": str(project / "prepared"), "CLOPS_DATA_ROOT": str(project)}
    assert clops_sweep("claims", "space.py", "--seal", **roots).returncode == 0
    (project / "other.py").write_text(
        (project / "space.py").read_text().replace('SearchSpace("mine"', 'SearchSpace("other"')
    )
    _write(project, 1)
    assert clops_sweep("other.py", "--no-ray", "--no-report", **roots).returncode == 0
    _write(project, 0)
    said = "before the first run; stored runs of mine are on other data than the sealed"
    assert said in clops_sweep("claims", "space.py", "--json", **roots).stdout
    assert clops_sweep("data", "prepare", "space.py", **roots).returncode == 0
    assert said in clops_sweep("claims", "space.py", "--json", **roots).stdout
    assert clops_sweep("space.py", "--no-ray", "--no-report", **roots).returncode == 0
    assert 'before the first run"' in clops_sweep("claims", "space.py", "--json", **roots).stdout


@pytest.mark.nightly
def test_commands_say_that_runs_are_of_an_earlier_edition_of_the_data(project: Path, clops_sweep: Command) -> None:
    roots = {"CLOPS_PREPARED_ROOT": str(project / "prepared"), "CLOPS_DATA_ROOT": str(project)}
    assert clops_sweep("space.py", "--no-ray", "--no-report", **roots).returncode == 0
    _write(project, 1)
    assert clops_sweep("data", "prepare", "space.py", **roots).returncode == 0
    said = "clops-sweep: data set mine was prepared anew since its 2 stored runs"
    for command in ("claims", "report"):
        assert said in clops_sweep(command, "space.py", **roots).stderr
    sentence = said.removeprefix("clops-sweep: ")
    assert sentence in clops_sweep("plan", "space.py", **roots).stdout
    page = (project / "results" / "report" / "mine" / "index.html").read_text()
    assert f"D{sentence.removeprefix('d')}" in page
    assert clops_sweep("space.py", "--no-ray", "--no-report", **roots).returncode == 0
    for command in ("claims", "report"):
        assert said not in clops_sweep(command, "space.py", **roots).stderr
