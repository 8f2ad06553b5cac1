"""Modules beside a user's program reach the workers however the program was started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.nightly

LAZY = """
def constant():
    return 1
"""
HELPER = """
from clops_sweep.learning.replay.acquisition import random

def scores(context, rows):
    from lazy import constant
    return constant() * random(context, rows)
"""
MODULE = """
import threading
import helper
from clops_sweep import acquisition_function

open("{imports}", "a").write("once")

@acquisition_function("mine")
def mine(context, rows):
    return helper.scores(context, rows)
"""
PROGRAM = """
import os
import beside
from clops_sweep import RunConfig, SearchSpace, sweep

SPACE = SearchSpace("mine", RunConfig(acquisition="mine", epochs_per_task=1, strategy="clops"), seeds=[0])

def test_sweep():
    os.chdir("{elsewhere}")
    for ray in (False, None):
        outcome = sweep(SPACE, f"{results}-{{ray}}", address=None if ray is False else "auto", ray=ray)
        assert outcome.complete, outcome.failures

if __name__ == "__main__":
    test_sweep()
"""


@pytest.mark.parametrize(
    ("command", "at"),
    [
        (["mine_test.py"], "folder"),
        (["{folder}/mine_test.py"], "elsewhere"),
        (["-m", "mine_test"], "folder"),
        (["-m", "folder.mine_test"], "."),
        (["-m", "pytest", "-q", "-p", "no:cacheprovider", "folder/mine_test.py"], "."),
        (["-m", "clops_sweep.cli", "folder/mine_test.py", "--results", "results", "--no-ray"], "."),
        (["-m", "clops_sweep.cli", "folder/mine_test.py", "--results", "results"], "."),
        (["notebook"], "folder"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "in " + it.replace(".", "parent"),
)
def test_they_reach_workers(
    ray_at_hand: dict[str, str], tmp_path: Path, command: list[str], at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere, imports = tmp_path / "folder", tmp_path / "elsewhere", tmp_path / "imports"
    for path in (folder, elsewhere):
        path.mkdir()
    # A notebook finds modules by the current folder, so it stays there.
    program = PROGRAM.format(elsewhere=folder if command == ["notebook"] else elsewhere, results=tmp_path / "results")
    within_package = "folder.mine_test" in command
    (folder / "lazy.py").write_text(LAZY)
    (folder / "helper.py").write_text(HELPER.replace("from lazy", "from folder.lazy") if within_package else HELPER)
    module = MODULE.format(imports=imports)
    (folder / "beside.py").write_text(
        module.replace("import helper\n", "from folder import helper\n") if within_package else module
    )
    (folder / "mine_test.py").write_text(
        program.replace("import beside", "import folder.beside") if within_package else program
    )
    if command == ["notebook"]:
        pytest.importorskip("ipykernel", reason="runs no notebooks: pip install ipykernel")
        for name, value in ray_at_hand.items():
            monkeypatch.setenv(name, value)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(program)])
        NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, timeout=250).execute()
    else:
        command = [word.format(folder=folder) for word in command]
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path / at, env=ray_at_hand, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert imports.read_text() == "once"
