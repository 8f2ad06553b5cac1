"""The example of docs/own_network.md, as a user would run it; and a network that cannot be trained."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Command
from tests.execution.conftest import Launch
from tests.helpers.documentation import examples
from tests.learning.kernels import BACKEND_OF_PROGRAMS

EXAMPLE, *_ = examples("own_network")
BUDGET = ("--set", "epochs_per_task=1", "--set", "mc_samples=2", "--seeds", "1")


@pytest.mark.nightly
def test_the_example_runs_and_can_be_repeated(attach: Launch, clops_sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "my_network.py").write_text(EXAMPLE)
    sweep = attach(
        "my_network.py",
        *BUDGET,
        "--where",
        "network == 'small_resnet' and width == 8",
        "--set",
        "width=8",
        "--no-report",
    )
    assert sweep.wait() == 0, sweep.output + sweep.errors
    runs = pd.read_parquet(tmp_path / "results" / "runs").set_index("strategy")
    assert sorted(runs.index) == ["clops", "finetune"]
    assert set(runs["network"]) == {"small_resnet"}
    assert set(runs["width"]) == {8}
    assert set(runs["backend"]) == {BACKEND_OF_PROGRAMS}
    again = clops_sweep("rerun", runs.loc["clops", "run_id"], "--verify", "--plugins", "my_network.py")
    assert again.returncode == 0, again.stdout + again.stderr
