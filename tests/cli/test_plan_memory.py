"""`plan` says how many instances a memory will hold, and refuses more than there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command

SPACE = """
from clops_sweep import RunConfig, SearchSpace
SPACE = SearchSpace("s", RunConfig(strategy="er"), {"strategy": ["er", "agem", "finetune"]})
"""


@pytest.fixture
def plan(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(tmp_path)
    Path("space.py").write_text(SPACE)

    def planned(*arguments: str) -> Result:
        asked = ["plan", "space.py", "--prepared-root", str(prepared_root), *arguments]
        return CliRunner().invoke(command, asked, standalone_mode=False)

    return planned


def test_what_a_size_and_a_share_come_to(plan: object) -> None:
    assert callable(plan)
    held = json.loads(plan("--set", "memory_fraction=0.5", "--json").stdout)["memories"][0]
    assert held["strategies"] == ["agem", "er"]
    (most,) = set(held["of"])
    assert held["held"] == [most // 2] * 2
    line = f"memory of agem, er on synthetic, class_il: 7 of {most:,} training instances\n"
    assert line in plan("--set", "memory_size=7").stdout
    refused = plan("--set", f"memory_size={most + 1}")
    assert (
        str(refused.exception)
        == f"memory_size = {most + 1}: expected at most {most}, the training instances of all tasks"
    )
