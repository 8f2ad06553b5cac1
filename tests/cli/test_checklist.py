"""`clops-sweep checklist`: every item of REFORMS once, and values of a real store."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from clops_sweep import read, sweep
from clops_sweep.analysis.report.checklist import Study, checklist
from clops_sweep.cli.commands import command
from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.errors import UsageError
from clops_sweep.search.records import StudyRecord, TrialRecord

SPACE = """
from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side

METHODS = {"er": {"strategy": "er"}, "finetune": {"strategy": "finetune"}}
SPACE = SearchSpace("small", RunConfig(epochs_per_task=1), {"method": METHODS}, seeds=[3, 7])
CLAIMS = [
    Claim("helps", "ER helps", Contrast(Side("ER", {"strategy": "er"}), Side("none", {"strategy": "finetune"}), "auc"))
]
"""
ITEMS = {1: "abc", 2: "abcde", 3: "abcdefg", 4: "abc", 5: "abcdef", 6: "abc", 7: "abc", 8: "ab"}
"""Of the modules of REFORMS, Table 1."""
MODULES = [
    "Study goals", "Computational reproducibility", "Data quality", "Data preprocessing", "Modeling", "Data leakage",
    "Metrics and uncertainty", "Generalizability and limitations",
]  # fmt: skip


def told(*arguments: str, prepared_root: Path) -> Result:
    return CliRunner().invoke(command, ["checklist", *arguments, "--prepared-root", str(prepared_root)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, prepared_root: Path) -> Path:
    """Four finished runs, and claims that were sealed before."""
    made = tmp_path_factory.mktemp("checklist")
    (made / "space.py").write_text(SPACE)
    arguments = ["claims", str(made / "space.py"), "--seal", "--results", str(made / "results")]
    assert CliRunner().invoke(command, [*arguments, "--prepared-root", str(prepared_root)]).exit_code == 0
    outcome = sweep(made / "space.py", made / "results", prepared_root=prepared_root, no_ray=True)
    assert outcome.complete
    return made


def facts(text: str) -> dict[str, list[str]]:
    """The lines below each item."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if item := re.match(r"- \*\*(\d[a-z])\*\* ", line):
            assert item[1] not in found
            found[item[1]] = []
        elif line.startswith("  - "):
            found[[*found][-1]].append(line.removeprefix("  - "))
    return found


def test_every_item_appears_once_in_its_module(folder: Path, prepared_root: Path) -> None:
    done = told(str(folder / "space.py"), "--results", str(folder / "results"), prepared_root=prepared_root)
    assert done.exit_code == 0, done.output
    assert list(facts(done.output)) == [f"{module}{item}" for module, items in ITEMS.items() for item in items]
    assert re.findall(r"^## (\d)\. (.+)$", done.output, re.MULTILINE) == [
        (str(number), name) for number, name in enumerate(MODULES, 1)
    ]
    for items in facts(done.output).values():
        assert items  # known, or marked
    assert facts(done.output)["1a"] == facts(done.output)["8b"] == ["**To be filled in**."]


def test_values_are_those_of_the_store(folder: Path, prepared_root: Path) -> None:
    done = told(str(folder / "space.py"), "--results", str(folder / "results"), prepared_root=prepared_root)
    found, runs = facts(done.output), read(folder / "results")
    frames = open_frames("synthetic", prepared_root=prepared_root)
    assert f"SHA-256 of the prepared frames begins with {runs['data_hash'][0][:16]}" in found["2a"][0]
    assert f"clops-sweep: {runs['package_version'][0]}" in found["2b"]
    assert {f"PyTorch: {runs['torch'][0]}", f"hosts: {runs['host'][0]}", "devices: cpu"} <= set(found["2c"])
    assert f"{runs['seconds'].sum() / 3600:.3g} core-hours and 0 GPU-hours, without failed runs" in found["2c"]
    assert found["3e"] == [f"synthetic: {len(frames):,} frames of {len(np.unique(frames.patients))} people"]
    assert f"{frames.classes[0]} {int((frames.labels == 0).sum()):,}" in found["3d"][0]
    for part, name in enumerate(("train", "validation", "test")):
        assert SPLIT_NAMES[part].startswith(name)
        assert f"people in {name}: {len(np.unique(frames.patients[frames.split == part]))}" in found["5c"]
    assert "seeds: 3, 7" in found["5c"]
    assert "1 distinct partition of the people" in found["5c"]
    assert f"trainable parameters: {runs['parameters'][0]}" in found["5a"]
    assert found["5f"][0] == "runs by method: er 2, finetune 2"
    assert any(it.startswith("claims of the search-space file: sealed on ") for it in found["7c"])
    assert any("Average AUC" in it for it in found["7a"])


def test_facts_that_this_store_lacks(folder: Path) -> None:
    runs = read(folder / "results")
    runs["device"], runs["seconds"] = ["cuda", "cuda", "cpu", None], [3600.0, 1800.0, 900.0, 900.0]
    runs["learning_rate"], runs["unseen_auc"] = [0.1, 0.1, 0.2, 0.2], 0.5
    trials = tuple(TrialRecord(number, "complete", {}, (0.5,)) for number in range(3))
    record = StudyRecord("tuned", {"auc": "maximize"}, trials)
    found = facts(checklist(Study("results", runs, studies=[record], keeps_predictions=True)))
    assert "0.5 core-hours and 1.5 GPU-hours, without failed runs" in found["2c"]
    assert "values of learning_rate that were run: 0.1, 0.2" in found["5e"]
    assert "search tuned: 3 trials; objectives: auc (maximize)" in found["5e"]
    assert "people in no task" in found["8a"][0]
    assert any("stored predictions" in it for it in found["7b"])
    assert found["3e"] == ["synthetic: these data are not prepared on this machine"]
    many = replace(Study("results", pd.concat([runs] * 8, ignore_index=True).assign(seed=range(32))))
    assert "seeds: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20 more" in facts(checklist(many))["5c"]


def test_files_and_errors(folder: Path, prepared_root: Path, tmp_path: Path) -> None:
    results = ["--results", str(folder / "results")]
    done = told(*results, "-o", str(tmp_path / "page.md"), "--json", prepared_root=prepared_root)
    data = json.loads(done.output)
    assert (tmp_path / "page.md").read_text() == data["checklist"]
    assert data["file"] == str(tmp_path / "page.md")
    for arguments in (["-o", str(tmp_path / "no" / "page.md")], [str(folder / "space.py"), "--set", "batch_size=7"]):
        refused = told(*results, *arguments, prepared_root=prepared_root)
        assert isinstance(refused.exception, UsageError)
    assert isinstance(told("--results", str(tmp_path / "no"), prepared_root=prepared_root).exception, UsageError)
