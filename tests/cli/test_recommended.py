"""Commands that messages recommend work as typed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.experiment.plugins.registry import ENCODERS
from tests.data.declared_files import forget

FILE = """
import numpy as np
from torch import nn
from clops_sweep import Claim, Contrast, Recordings, RunConfig, SearchSpace, Side, dataset, encoder

@dataset("wearable", scenarios=("class_il_union",))
def wearable(data_root):
    random = np.random.default_rng(0)
    people, labels = np.repeat(np.arange(24), 8), np.tile(np.arange(4), 48)
    signals = random.normal(size=(192, 1, 64)).astype(np.float32) + labels[:, None, None]
    return Recordings(signals, 32, ["acc"], "g", labels, ("a", "b", "c", "d"), people)

@encoder("flat", channels=1, samples=64)
def flat(weights):
    return nn.Flatten()

BASE = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", epochs_per_task=1)
SPACE = SearchSpace("own", BASE, {"strategy": ["finetune", "er"], "split_seed": range(3)}, seeds=1)
ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIMS = [Claim("er", "ER is above fine-tuning", Contrast(ER, FINETUNE, "test_auc"))]
"""
ROOT = "--prepared-root", "my data"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "own.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    forget("wearable")
    yield tmp_path
    forget("wearable")
    if "flat" in ENCODERS:
        ENCODERS.forget("flat")


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def said_by(result: Result) -> str:
    return str(result.exception) if result.exception is not None else result.output


def recommended(text: str) -> list[str]:
    """Return the words of the one command that a text recommends."""
    (found,) = re.findall(r"'(clops-sweep [^']+)'", text)
    assert not re.search(r"\b[A-Z]{3,}\b", found), "no placeholder is left"
    return shlex.split(found)


def runs_as_typed(words: list[str]) -> None:
    """Run a command in a new process, which knows nothing of this one."""
    done = subprocess.run([sys.executable, "-m", "clops_sweep", *words[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


LOOK = "data", "look", "wearable", "--plugins", "own.py", *ROOT


def test_data_that_are_not_prepared(folder: Path) -> None:
    refused = run(*LOOK)
    assert refused.exit_code != 0
    runs_as_typed(recommended(said_by(refused)))
    assert run(*LOOK).exit_code == 0


@pytest.mark.parametrize("file", ["frames.npy", "manifest.json"])
def test_damaged_data(folder: Path, file: str) -> None:
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    (folder / "my data" / "wearable" / file).write_bytes(b"damaged")
    runs_as_typed(recommended(said_by(run(*LOOK))))
    assert run(*LOOK).exit_code == 0


def test_features_that_are_not_computed(folder: Path) -> None:
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.errors import UsageError
    from clops_sweep.experiment.config import RunConfig
    from clops_sweep.learning.encoders.encoders import Encoders

    of = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", encoder="flat")
    data = PreparedData(folder / "my data", None, Encoders(lambda run_id: b""))
    with pytest.raises(UsageError) as refused:
        data.frames(of.data_key)
    runs_as_typed(recommended(str(refused.value)))
    assert PreparedData(folder / "my data", None, data.encoders).frames(of.data_key).encoded is not None


def test_evict_names_the_folder(folder: Path) -> None:
    runs_as_typed(["clops-sweep", "data", "prepare", "wearable", "--plugins", "own.py", *ROOT])
    runs_as_typed(shlex.split(data_command("evict", "wearable", prepared_root=Path("my data"))))
    assert not (folder / "my data" / "wearable").exists()


@pytest.mark.parametrize("prepared", [True, False])
def test_claims_on_own_data_with_several_splits_are_sealed(folder: Path, prepared: bool) -> None:
    if prepared:
        assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    sealed = run("claims", "own.py", "--seal", *ROOT)
    assert sealed.exit_code == 0, said_by(sealed)
    (seal,) = Path("results/claims").iterdir()
    assert len(json.loads(seal.read_text())["data"]) == 3, "a hash of each split"


def test_plan_solves_splits_of_prepared_data(folder: Path) -> None:
    before = json.loads(run("plan", "own.py", "--json", *ROOT).stdout)
    assert before["unprepared"] == ["wearable"]
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    forget("wearable")
    assert json.loads(run("plan", "own.py", "--json", *ROOT).stdout)["unprepared"] == []


MESSAGES = Path(__file__).parents[1] / "messages.txt"


def test_recommended_commands_are_made_by_one_function() -> None:
    """A message that spells out a command knows neither the file nor the folder; that of generated data needs none."""
    assert re.findall(r"'clops-sweep (\w+ \w*)", MESSAGES.read_text()) == ["data prepare"]
