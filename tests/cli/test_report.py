"""`clops-sweep report` beside files of the user's own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Tables = Callable[..., dict[str, pa.Table]]

SPACE = """
from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(name="own", base=RunConfig(), seeds=range(1))
"""


def test_the_report_of_a_launch_shows_what_it_asks_for(in_turn: Command, tmp_path: Path) -> None:
    """Also if a file of that name asked for something else before, and where a notebook's backend is missing."""
    pages = []
    for rates in ([0.001, 0.002], [0.002]):
        (tmp_path / "space.py").write_text(
            "from clops_sweep import RunConfig, SearchSpace\n"
            "base = RunConfig(strategy='finetune', epochs_per_task=1)\n"
            f"SPACE = SearchSpace('s', base, {{'learning_rate': {rates}}}, seeds=range(1))\n"
        )
        done = in_turn(["space.py", "--no-ray"], MPLBACKEND="module://missing_backend")
        assert done.returncode == 0, done.stderr
        (path,) = (line.removeprefix("report: ") for line in done.stdout.splitlines() if line.startswith("report: "))
        pages.append(Path(path).read_text())
    assert [re.findall(r"(\d) of \d runs? (?:is|are) finished", page)[:1] for page in pages] == [["2"], ["1"]]
