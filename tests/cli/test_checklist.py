"""`clops-sweep checklist`: every item of REFORMS once, and values of a real store."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep import read, sweep
from clops_sweep.cli.commands import command
from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.preparing.prepare import open_frames

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
