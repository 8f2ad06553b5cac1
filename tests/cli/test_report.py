"""`clops-sweep report` beside files of the user's own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.experiment.spaces.search_space import all_requests, load_spaces
from clops_sweep.store.run_store import RunStore
from tests.cli.documented import documented
from tests.helpers.stores import write_finished

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Tables = Callable[..., dict[str, pa.Table]]

SPACE = """
from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(name="own", base=RunConfig(), seeds=range(1))
"""


def test_packages_of_the_user_s_own_are_left_alone(
    in_turn: Command, tmp_path: Path, prepared_root: Path, finished_tables: Tables
) -> None:
    """Whatever a user's packages are called: those of this one are imported under its own name."""
    (tmp_path / "space.py").write_text(SPACE)
    for name in ("analysis", "search_spaces"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('raise RuntimeError("the user\'s own")\n')
        own = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=tmp_path, capture_output=True, text=True)
        assert "the user's own" in own.stderr

    content = data_hash("synthetic", prepared_root=prepared_root)
    assert content is not None
    store = RunStore(tmp_path / "results")
    for request in all_requests(load_spaces(tmp_path / "space.py")):
        run_id = request.config.run_id(content)
        write_finished(store, run_id, finished_tables(run_id, request.config))
    commands = (
        ["report", "space.py", "--json"],
        ["claims"],
        ["new", "mine.py", "--from", "paper"],
        ["plan", "mine.py"],
    )
    done = in_turn(*commands, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    printed, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert set(printed) == documented("report")
    assert Path(printed["report"]) == tmp_path / "results" / "report" / "space" / "index.html"
    assert Path(printed["report"]).is_file()


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
