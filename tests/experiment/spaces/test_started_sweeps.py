"""A file that a command reads starts no sweep, and a call of `sweep()` without a guard is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.experiment.spaces.started_sweeps import line_that_sweeps

SCRIPT = """import clops_sweep
from clops_sweep import RunConfig, SearchSpace, sweep

SPACE = SearchSpace("own", RunConfig(), {"strategy": ["finetune", "er"]}, seeds=1)
"""
GUARDED = 'if __name__ == "__main__":\n    sweep(SPACE)\n'


@pytest.mark.parametrize(
    ("end", "line"),
    [
        ("sweep(SPACE)\n", 5),
        ("for seeds in (1, 2):\n    done = clops_sweep.sweep(SPACE, seeds=seeds)\n", 6),
        ("from clops_sweep import sweep as compute\nprint(compute(SPACE))\n", 6),
        ('if __name__ == "__main__":\n    pass\nelse:\n    sweep(SPACE)\n', 8),
        (GUARDED, None),
        ('if "__main__" == __name__:\n    sweep(SPACE)\n', None),
        ("def main():\n    sweep(SPACE)\n", None),
        ("sweep(SPACE\n", None),
    ],
)
def test_a_call_without_a_guard_is_found(end: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(SCRIPT + end)
    assert line_that_sweeps(file) == line
    assert line_that_sweeps(tmp_path / "nothing.py") is None


def test_a_command_that_reads_a_script_starts_no_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard recommended a command that executed the script, and so started its sweep."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(f"{SCRIPT}sweep(SPACE, ray=False)\n")
    refused = CliRunner().invoke(command, ["plan", "own.py", "--results", "there"])
    assert refused.exit_code != 0
    assert "own.py: it calls sweep() while it is read for its search spaces or plug-ins" in str(refused.exception)
    assert 'put the call under if __name__ == "__main__":' in str(refused.exception)
    assert not (tmp_path / "results").exists()
    file.write_text(SCRIPT + GUARDED)
    CliRunner().invoke(command, ["plan", "own.py", "--results", "there"])
    assert not (tmp_path / "results").exists()
