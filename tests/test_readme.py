"""What the README tells people to type works as typed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from clops_sweep import ContinualRun
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.testing import tiny_frames
from tests.helpers.launching import ATTACHED, ONE_WORKER
from tests.helpers.preloaded import Preloaded

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ONE_CPU = {"RAY_OVERRIDE_RESOURCES": '{"CPU": 1}'}  # one worker: a second one costs what it takes to start
BUDGET = ["--seeds", "1", "--set", "epochs_per_task=1", "--set", "mc_samples=2"]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


CLONE, INSTALL_AND_RUN, INSTALL_AND_TEST, USAGE, REAL_DATA = _blocks("sh")
PYTHON = _blocks("python")


def _run(command: str, folder: Path, environment: dict[str, str], commands: Preloaded) -> str:
    """A line of the README with a forked command in place of the installed one, which it names or has on its path."""
    name, *arguments = shlex.split(command)
    assert name in ("clops-sweep", ".venv/bin/clops-sweep")
    done = commands.run(folder, environment | ONE_CPU, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, ray_at_hand: dict[str, str], drivers: Preloaded) -> Path:
    """What a newcomer has after the first command, on a small budget and a Ray that is there."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "search_spaces", folder / "search_spaces")
    command = shlex.join([*shlex.split(INSTALL_AND_RUN.rpartition("&&")[2]), *BUDGET, *ATTACHED, *ONE_WORKER])
    output = _run(command, folder, ray_at_hand, drivers)
    assert "9 runs asked for, 9 finished, 0 pending, 0 failed" in output
    results, report = (re.search(rf"^{what}: (.*)$", output, re.MULTILINE) for what in ("results", "report"))
    assert results
    assert report
    assert Path(results[1]) == folder / "results"
    assert Path(report[1]).is_file()
    return folder


def test_the_commands_start_from_nothing_but_a_clone() -> None:
    assert CLONE.startswith("git clone ")
    for command in (INSTALL_AND_RUN, INSTALL_AND_TEST):
        create, install, use = (part.strip() for part in command.split("&&"))
        assert create == "python3 -m venv .venv"
        assert install.startswith(".venv/bin/pip install ")
        assert use.startswith(".venv/bin/")
    assert (ROOT / shlex.split(INSTALL_AND_RUN)[-1]).is_file()


def test_continuous_integration_runs_both_commands_as_they_stand_here() -> None:
    """The commands that install are not run by the tests: they are what `.ci/run` takes from the README and runs."""
    shown = subprocess.run(
        ["bash", ROOT / ".ci" / "run", "--show"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout.splitlines()
    assert shown == [INSTALL_AND_TEST.strip(), INSTALL_AND_RUN.strip()]


def test_the_usage_works(folder: Path, environment: dict[str, str], commands: Preloaded) -> None:
    plan, launch, status, claims, report = USAGE.splitlines()
    counts = r"18 runs asked for, 0 finished, 18 pending, 0 failed\n"
    assert re.match(counts, _run(plan, folder, environment, commands))
    assert "runs asked for" in _run(f"{launch} --dry-run", folder, environment, commands)
    assert "9 runs finished, 0 failed" in _run(status, folder, environment, commands)
    assert "1 seed where 3 are needed" in " ".join(_run(claims, folder, environment, commands).split())
    assert "index.html" in _run(report, folder, environment, commands)


def test_the_python_works(folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    names: dict[str, object] = {}
    shown = [_last_value(block, names) for block in PYTHON if "sweep(" not in block]
    space, query, one_run = shown
    assert isinstance(query, pd.DataFrame)
    assert query.shape == (2, 2)  # fine-tuning has no memory, and null in both columns
    assert query.notna().all(axis=None)
    assert space is None
    assert isinstance(one_run, pd.DataFrame)
    assert one_run["auc"].between(0.5, 1).all()


def _of_page(name: str) -> list[str]:
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


ON_THE_BUDGET = """
from dataclasses import replace

from clops_sweep.search_spaces.quickstart import SPACE

CHANGES = {"epochs_per_task": 1, "mc_samples": 2}
SPACE = [replace(space, base=space.base.replace(**CHANGES), seeds=range(1)) for space in SPACE]
"""
"""The quickstart as `BUDGET` has it."""


def test_what_the_pages_ask_a_store_works(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "search_spaces").mkdir()
    (tmp_path / "search_spaces" / "quickstart.py").write_text(ON_THE_BUDGET)
    (tmp_path / "results").symlink_to(folder / "results")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    (block,) = _of_page("store")
    assert _last_value(block, names) is None
    assert isinstance(names["runs"], pd.DataFrame)
    assert list(names["runs"]) == ["run_id", "storage_fraction", "auc"]
    exec(TABLE, names)
    (drawn,) = (_last_value(block, {}) for block in _of_page("report"))
    assert isinstance(drawn, Figure)


FAIR, LEFT_OUT, TABLE = _of_page("how_to")
PAGES = [_of_page("index"), _of_page("claims"), [FAIR], [LEFT_OUT]]


@pytest.mark.parametrize("blocks", PAGES, ids=["index", "claims", "fair", "left out"])
def test_the_search_spaces_of_pages_ask_for_runs(blocks: list[str]) -> None:
    (block,) = blocks
    names: dict[str, Any] = {}
    exec(block, names)
    for request in names["SPACE"].requests():
        assert ContinualRun(request.config, tiny_frames(request.config.scenario)).tasks_trained == 0


def test_every_example_of_a_page_is_run_by_some_test() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for page in (ROOT / "docs").glob("*.md"):
        if _of_page(page.stem):
            assert f'_of_page("{page.stem}")' in tests or f'"docs" / "{page.name}"' in tests, page


@pytest.mark.nightly
def test_a_sweep_from_python_works(tmp_path: Path, forked: Preloaded) -> None:
    (block,) = (block for block in PYTHON if "sweep(" in block)
    *_, outcome, table = block.strip().splitlines()
    script = block.replace(outcome, f"print({outcome})").replace(table, f"print({table}.shape)")
    done = forked.run(tmp_path, forked.environment | ONE_CPU, program=script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["True {'finished': 4, 'pending': 0, 'failed': 0} {}", "(4, 3)"]


def test_links_and_pictures_are_there() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert targets
    for target in targets:
        if target.startswith("https://"):
            continue
        path = ROOT / (target.partition("#")[0] or "README.md")
        assert path.is_file(), target
        assert path.stat().st_size < 200_000


def _last_value(block: str, names: dict[str, object]) -> object:
    """Runs a block as a notebook cell: the value of its last line, if that is an expression."""
    import ast

    tree = ast.parse(block)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "README.md", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "README.md", "exec"), names)
    return eval(compile(ast.Expression(last.value), "README.md", "eval"), names)


def test_the_strategies_are_those_there_are() -> None:
    section = README.split("## Methods")[1].split("\n## ")[0]
    named = [
        name
        for cell in re.findall(r"^\| (?!family).*? \| (`.*) \|$", section, re.M)
        for name in re.findall(r"`(\w+)`", cell)
    ]
    assert sorted(named) == sorted(set(STRATEGIES) - set(STRATEGIES.added))
