"""Runs whose task order follows from another run's s: that run comes first, in the same sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from clops_sweep import RunConfig
from clops_sweep.planning.curriculum import source_config
from tests.helpers.launching import Sweep

Launch = Callable[..., Sweep]

CURRICULUM = """
from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(strategy="finetune", epochs_per_task=3)
SPACE = SearchSpace("order", BASE, axes={"task_order": ["curriculum", "anti_curriculum"]}, seeds=[0])
"""


def test_the_run_that_tells_a_task_order_comes_first(attach: Launch, tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(CURRICULUM)
    sweep = attach("space.py", "--no-report")
    assert sweep.wait() == 0, sweep.errors
    lines = [line for line in sweep.output.splitlines() if not line.startswith("device: ")]
    assert lines[0] == "1 run not requested comes first: its s decides the task order of others"
    assert lines[1].startswith("3 runs to do")
    assert [line.split("]")[0] for line in lines[4:7]] == ["[1/3", "[2/3", "[3/3"]
    assert [line.partition("  ")[2].partition(":")[0] for line in sorted(lines[4:7], key=lambda line: line[1])] == [
        "for task orders, seed 0",
        "task_order curriculum, seed 0",
        "task_order anti_curriculum, seed 0",
    ]
    assert sweep.output.count("connecting to the Ray cluster") == sweep.output.count("starting workers") == 1

    runs = pd.read_parquet(tmp_path / "results" / "runs").set_index("strategy")
    source = runs.loc["clops"]
    asked = RunConfig(strategy="finetune", epochs_per_task=3, task_order="curriculum")
    assert source["run_id"] == source_config(asked).run_id(source["data_hash"])
    instances = pd.read_parquet(tmp_path / "results" / "instances")
    ease = instances[instances["run_id"] == source["run_id"]].groupby("task", sort=False)["s"].mean().to_numpy()
    orders = runs.loc["finetune"].sort_values("started_at")["task_order"]
    first = {int(order.strip("[]()").split(",")[0]) for order in orders}
    assert first == {ease.argmax(), ease.argmin()}
    assert (runs.loc["finetune", "started_at"] >= source["started_at"]).all()
