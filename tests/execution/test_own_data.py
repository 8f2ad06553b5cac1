"""The first example of docs/own_data.md, from a folder of records to a report, by the command alone."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Command
from tests.data.declared_files import write_hospital
from tests.execution.conftest import Launch
from tests.helpers.documentation import examples

pytestmark = pytest.mark.nightly


(EXAMPLE,) = (example for example in examples("own_data") if example.startswith('"""arrhythmias.py"""'))
BUDGET = ["--seeds", "1", "--set", "epochs_per_task=2", "--set", "mc_samples=2"]


def test_the_example_is_launched_repeated_and_reported(attach: Launch, clops_sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "arrhythmias.py").write_text(EXAMPLE)
    write_hospital(tmp_path / "data" / "hospital", people=3)  # more are read by processes that take longer to start
    roots = ["--data-root", "data", "--prepared-root", "prepared"]
    sweep = attach("arrhythmias.py", *roots, *BUDGET, "--no-report")
    assert sweep.wait() == 0, sweep.output + sweep.errors
    assert "2 runs asked for, 2 finished, 0 pending, 0 failed" in sweep.output
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert set(runs["dataset"]) == {"hospital"}
    assert runs["auc"].notna().all()

    def said(*arguments: str) -> str:
        done: subprocess.CompletedProcess[str] = clops_sweep(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    assert "2 finished, 0 pending" in said("plan", "arrhythmias.py", *roots, *BUDGET)
    run_id = runs["run_id"].iloc[0]
    *_, shown = said("show", run_id).splitlines()  # without the file that declares its data, as all that follows
    words = shlex.split(shown.partition("clops-sweep ")[2])
    assert words[words.index("--plugins") + 1] == "arrhythmias.py"
    assert Path(words[words.index("--prepared-root") + 1]).samefile(tmp_path / "prepared")
    assert "bit for bit" in said(*words)
    assert "bit for bit" in said("rerun", run_id, "--verify", "--prepared-root", "prepared")
    page = said("report", "--prepared-root", "prepared", "--output", "page")
    assert "index.html" in page
    assert list((tmp_path / "page").rglob("*tracings*"))
    shutil.rmtree(tmp_path / "prepared")
    lost = clops_sweep("rerun", run_id, "--prepared-root", "prepared")
    assert (lost.returncode, lost.stderr.count("\n")) == (2, 1)
    assert "dataset 'hospital' is not prepared" in lost.stderr
