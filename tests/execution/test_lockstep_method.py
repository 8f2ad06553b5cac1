"""The examples of docs/own_method_lockstep.md, as a user would run them, and as the contract suite sees them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from launching import Sweep

from clops_sweep import ContinualRun
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.replay import division
from clops_sweep.learning.replay.memory import LockstepMemory
from clops_sweep.testing import tiny_config, tiny_frames

Launch = Callable[..., Sweep]

PAGE = (Path(__file__).parents[2] / "docs" / "own_method_lockstep.md").read_text()
EWC, DERPP, CONTRACT = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_runs(attach: Launch, tmp_path: Path) -> None:
    assert len(EWC.splitlines()) <= 45
    (tmp_path / "my_ewc.py").write_text(EWC)
    sweep = attach(
        "my_ewc.py", "--set", "epochs_per_task=1", "--where", "my_ewc_strength == 400", "--seeds", "1", "--no-report"
    )
    assert sweep.wait() == 0, sweep.output + sweep.errors
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert runs[["strategy", "my_ewc_strength"]].to_numpy().tolist() == [["my_ewc", 400.0]]
    (path, file_sha256, _), *others = json.loads(runs["plugins"][0]).values()  # where the driver has it from
    assert (path, file_sha256, others) == ("my_ewc.py", hashlib.sha256(EWC.encode()).hexdigest(), [])


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What the three blocks of the page define."""
    found: dict[str, Any] = {}
    before = set(STRATEGIES.added)
    exec(EWC + DERPP + CONTRACT, found)
    yield found
    for name in set(STRATEGIES.added) - before:
        STRATEGIES.forget(name)


def test_the_examples_pass_the_contract_suite(names: dict[str, Any]) -> None:
    names["test_contract"]()


def test_the_example_is_the_built_in_method(names: dict[str, Any]) -> None:
    settings = {"learning_rate": 5e-3, "my_ewc_strength": 1000.0, "ewc_strength": 1000.0}
    mine, built_in, plain = (
        ContinualRun(tiny_config("class_il", strategy=name, **settings), tiny_frames("class_il")).run().curves["loss"]
        for name in ("my_ewc", "ewc", "finetune")
    )
    np.testing.assert_allclose(mine, built_in, rtol=0, atol=1e-5)
    assert np.abs(mine - plain).max() > 1e-2


def test_what_the_tables_name_is_there() -> None:
    run = ContinualRun(tiny_config("class_il", strategy="finetune"), tiny_frames("class_il"))
    training, keys = run._training, torch.zeros(1, 2, dtype=torch.int32)
    epoch = training.learner.begin_epoch(training.tasks[0], None, torch.arange(10)[None], 8, keys)
    owners = {
        "`training.`": training,
        "hook": run._strategy,
        "`learner.`": training.learner,
        "`batch.`": next(epoch.batches()),
        "`epoch.`": epoch,
    }
    for table in re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE):
        cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()]
        (head, _), _, *rows = cells
        for first, second in rows:
            names = re.findall(r"`(\w+)", first if head in owners else second)
            owner = (
                owners[head]
                if head in owners
                else LockstepMemory(training.tasks)
                if "LockstepMemory" in first
                else division
            )
            assert names or "Buffer" in first, first
            assert [name for name in names if not hasattr(owner, name)] == [], first
