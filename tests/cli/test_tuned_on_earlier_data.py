"""A tuned study whose data have changed since: commands that read show it and say so, and a launch is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Command
from tests.helpers.preloaded import Preloaded

SPACE = """
import numpy as np

from clops_sweep import Claim, Contrast, OptunaSearch, Recordings, RunConfig, SearchSpace, Side, TuneOn, dataset


@dataset("mine", scenarios=["class_il_union"], files=["x.npz"], epochs_per_task=1)
def mine(data_root):
    stored = np.load(data_root / "x.npz")
    labels, people = stored["labels"], stored["people"]
    return Recordings(stored["x"], 50, ["c"], "g", labels=labels, classes=list("klmn"), patients=people)


BASE = RunConfig(dataset="mine", scenario="class_il_union", network="small_cnn")
METHODS = {"er": {"replay_ratio": [0.5, 1.0]}, "finetune": {}}
TUNED = SearchSpace(
    "mine",
    BASE,
    search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(tasks=1)),
    seeds=1,
)
GRID = SearchSpace("grid", BASE, {"strategy": ["er"], "replay_ratio": [0.5, 1.0]}, seeds=1)
SIDES = [Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})]
CLAIM = Claim("above", "ER is above fine-tuning", Contrast(*SIDES, "test_balanced_accuracy"))
"""
SPACE_TUNED = f"{SPACE}SPACE, CLAIMS = TUNED, [CLAIM]\n"
CHANGED = "search space 'mine': its study was made on an earlier edition of the data, which have changed since"
BY_PYTHON = """
import warnings
from clops_sweep import claims, read, scores, write_report

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(len(scores("space.py")), len(claims("space.py")), len(read("results", "runs", space="space.py")))
    write_report("space.py", folder="report_of_python")
print(sum("earlier edition" in str(warning.message) for warning in caught))
"""


def _write(project: Path, people: int) -> None:
    labels = np.tile(np.arange(8) % 4, people)
    noise = np.random.default_rng(people).normal(size=(len(labels), 1, 100))
    x = (noise + labels[:, None, None]).astype("float32")
    np.savez(project / "x.npz", x=x, labels=labels, people=np.arange(people).repeat(8))


@pytest.mark.nightly
def test_a_finished_tuned_study_is_read_after_its_data_changed(
    tmp_path: Path, clops_sweep: Command, commands: Preloaded, environment: dict[str, str]
) -> None:
    roots = {"CLOPS_PREPARED_ROOT": str(tmp_path / "prepared"), "CLOPS_DATA_ROOT": str(tmp_path)}
    launch = ("space.py", "--no-ray", "--no-report")
    reading = ("plan", "status", "claims", "runs", "report", "checklist")
    (tmp_path / "space.py").write_text(SPACE_TUNED)
    _write(tmp_path, 20)
    assert clops_sweep(*launch, **roots).returncode == 0
    runs = json.loads(clops_sweep("runs", "space.py", "--json", **roots).stdout)["runs"]
    checklist = clops_sweep("checklist", "space.py", **roots).stdout.splitlines()[:5]

    (tmp_path / "another.py").write_text(SPACE_TUNED.replace('    "mine",\n    BASE', '    "another",\n    BASE'))
    planned = clops_sweep("plan", "another.py", **roots).stdout
    assert "up to 2 runs to do: 0 of trials, 2 to report" in planned
    assert "the store has 2 runs of trials already" in planned
    before = clops_sweep("plan", "space.py", **roots).stdout
    assert "a launch prepares them again" not in before

    _write(tmp_path, 22)
    announced = clops_sweep("plan", "space.py", **roots)
    assert announced.returncode == 0, announced.stderr
    sentence = "search space 'mine': its study was made before mine changed: a launch prepares them again, and is"
    assert announced.stdout.count(sentence) == 1, announced.stdout
    for _ in range(2):  # the first launch prepares the data
        refused = clops_sweep(*launch, **roots)
        assert refused.returncode == 2
        assert f"{CHANGED}: a launch is refused; give the space another name" in refused.stderr
    for name in reading:
        done = clops_sweep(name, "space.py", **roots)
        said = done.stdout + done.stderr
        assert (done.returncode, said.count(CHANGED)) == (0, 1), said
        assert "trials and runs of the earlier edition are shown" in said
        assert "to do" not in said
    assert json.loads(clops_sweep("runs", "space.py", "--json", **roots).stdout)["runs"] == runs
    checked = clops_sweep("check", "space.py", **roots)
    assert (checked.returncode, checked.stdout.count(CHANGED)) == (0, 1), checked.stdout
    (of_file,) = json.loads(clops_sweep("check", "space.py", "--json", **roots).stdout)["files"]
    assert [sentence.startswith(CHANGED) for sentence in of_file["launch_refused"]] == [True]
    counted = json.loads(clops_sweep("status", "space.py", "--json", **roots).stdout)
    assert (counted["finished"], counted["pending"], len(counted["launch_refused"])) == (2, 0, 1)
    assert clops_sweep("checklist", "space.py", **roots).stdout.splitlines()[:5] == checklist
    by_python = commands.run(tmp_path, environment | roots, program=BY_PYTHON)
    assert by_python.stdout.splitlines()[:1] == ["2 1 4"], by_python.stderr
    assert by_python.stdout.splitlines()[-1] == "4"
    assert clops_sweep("claims", "space.py", "--seal", **roots).returncode == 2

    (tmp_path / "grid.py").write_text(f"{SPACE}SPACE = GRID\n")
    assert clops_sweep("grid.py", "--no-ray", "--no-report", **roots).returncode == 0
    mixed = clops_sweep("claims", "space.py", **roots)
    assert "trials of the earlier edition are shown beside reported runs of the present data" in mixed.stderr
    of_both = json.loads(clops_sweep("status", "space.py", "--json", **roots).stdout)["tuned"]
    assert [(row["mixed_editions"], row["optimism"]) for row in of_both if row["method"] == "er"] == [(True, None)]
    said = clops_sweep("status", "space.py", **roots).stdout
    assert "tuning and reported runs are of different editions of the data, so their scores cannot be compared" in said

    (tmp_path / "space.py").write_text(SPACE_TUNED.replace("seeds=1", "seeds=2"))
    for name in reading:
        other = clops_sweep(name, "space.py", **roots)
        assert other.returncode == 2
        assert "was made with seeds [0] and not [0, 1]" in other.stderr
