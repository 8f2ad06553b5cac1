"""The example of a method in lockstep in docs/own_method.md, as a user would run it, and as the contract suite does."""

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

from clops_sweep import ContinualRun
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.launching import Sweep

Launch = Callable[..., Sweep]

PAGE = (Path(__file__).parents[2] / "docs" / "own_method.md").read_text()
*_, EWC = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_runs(attach: Launch, tmp_path: Path) -> None:
    (tmp_path / "my_fast_ewc.py").write_text(EWC)
    sweep = attach(
        "my_fast_ewc.py",
        "--set",
        "epochs_per_task=1",
        "--where",
        "my_ewc_strength == 400",
        "--seeds",
        "1",
        "--no-report",
    )
    assert sweep.wait() == 0, sweep.output + sweep.errors
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert runs[["strategy", "my_ewc_strength"]].to_numpy().tolist() == [["my_fast_ewc", 400.0]]
    (path, file_sha256, _), *others = json.loads(runs["plugins"][0]).values()  # where the driver has it from
    assert (path, file_sha256, others) == ("my_fast_ewc.py", hashlib.sha256(EWC.encode()).hexdigest(), [])


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What the example defines."""
    found: dict[str, Any] = {}
    before = set(STRATEGIES.added)
    exec(EWC, found)
    yield found
    for name in set(STRATEGIES.added) - before:
        STRATEGIES.forget(name)


def test_the_example_is_the_built_in_method(names: dict[str, Any]) -> None:
    settings = {"learning_rate": 5e-3, "my_ewc_strength": 1000.0, "ewc_strength": 1000.0}
    mine, built_in, plain = (
        ContinualRun(tiny_config("class_il", strategy=name, **settings), tiny_frames("class_il")).run().curves["loss"]
        for name in ("my_fast_ewc", "ewc", "finetune")
    )
    np.testing.assert_allclose(mine, built_in, rtol=0, atol=1e-5)
    assert np.abs(mine - plain).max() > 1e-2
