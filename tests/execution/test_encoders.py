"""Pretrain in one sweep, continue on features in the next: launches as users type them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

from tests.conftest import Command
from tests.helpers.launching import Sweep
from tests.learning.encoders import place
from tests.learning.encoders.place import trained

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]

FILE = place.FILE.replace("tests.learning.encoders.place", "net")
PRETRAIN = """
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(dataset="small", network="mlp", mlp_width=5, strategy="finetune", epochs_per_task=1)
SPACE = SearchSpace("pretraining", BASE, seeds=[0])
"""
HEADS = """
import os
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(dataset="other", network="linear", epochs_per_task=1, scenario="class_il_union")
ENCODERS = {"encoder": ["plain", "run:RUN_ID"], "strategy": ["er", "ncm"]}
SPACE = SearchSpace("heads", BASE, ENCODERS, seeds=[0])
"""
CALLS = """
    with open("calls", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return module

@encoder("tokens"
"""


def test_runs_on_features_of_a_stored_run(attach: Launch, clops_sweep: Command, tmp_path: Path) -> None:
    torch.save(trained(2).state_dict(), tmp_path / "plain.pth")
    (tmp_path / "net.py").write_text(inspect.getsource(place))
    counted = FILE.replace('    return module\n\n@encoder("tokens"', CALLS.strip("\n"), 1)
    assert counted != FILE
    (tmp_path / "pretrain.py").write_text(FILE + PRETRAIN)
    roots = ["--prepared-root", "prepared"]
    sweep = attach("pretrain.py", *roots, "--keep", "models", "--no-report")
    assert sweep.wait() == 0, sweep.output + sweep.errors
    run_id = pd.read_parquet(tmp_path / "results" / "runs")["run_id"].item()
    heads = counted + HEADS.replace("RUN_ID", run_id)
    (tmp_path / "heads.py").write_text(heads)
    sweep = attach("heads.py", *roots, "--no-report")
    assert sweep.wait() == 0, sweep.output + sweep.errors
    assert (tmp_path / "calls").read_text().split() == [str(sweep.process.pid)]  # once, by the driver
    runs = pd.read_parquet(tmp_path / "results" / "runs").set_index("run_id").drop(run_id)
    assert runs.groupby("encoder")["encoder_hash"].nunique().to_dict() == {"plain": 1, f"run:{run_id}": 1}
    assert runs.groupby("strategy")["stores"].first().to_dict() == {"er": "features", "ncm": "statistics"}

    again = clops_sweep("rerun", runs.index[0], "--verify", *roots, "--plugins", "heads.py")
    assert "bit for bit" in again.stdout, again.stderr
    weights = tmp_path / "plain.pth"
    torch.save(trained(2).double().float().state_dict() | {"norm.num_batches_tracked": torch.tensor(9)}, weights)
    planned = clops_sweep("plan", "heads.py", *roots)
    assert "encoder 'plain': its code, weights or declaration changed after 2 stored runs" in planned.stdout
    assert "2 finished, 2 pending" in planned.stdout
