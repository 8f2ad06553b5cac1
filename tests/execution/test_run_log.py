"""What runs print in a launch without Ray."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

SPACE = """
import warnings

import click

from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning


@strategy("warning")
class Warning(FineTuning):
    def begin_task(self, task):
        warnings.warn("few heartbeats")
        click.echo("begins a task")


SPACE = SearchSpace("warns", RunConfig(strategy="warning", epochs_per_task=1), seeds=1)
"""


def test_a_run_may_warn_in_the_process_of_the_launch(clops_sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(SPACE)
    launched = clops_sweep("space.py", "--no-ray", "--no-report")
    assert (launched.returncode, launched.stderr) == (0, "")
    (log,) = tmp_path.glob("results/.work/logs/*.log")
    assert "few heartbeats" in log.read_text()
    assert "begins a task" in log.read_text()
