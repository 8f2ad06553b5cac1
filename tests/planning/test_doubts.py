from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command

SPACE = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

PERSON = np.arange(96) // 4


@dataset("wards", scenarios=["domain_il"])
def wards(data_root):
    y = np.arange(96) % 2
    x = np.random.default_rng(0).normal(size=(96, 2, 50)) + y[:, None, None]
    ward = np.array(["A", "B"])[PERSON % 2]
    people = {"patients": PERSON, "domains": {"ward": ward}}
    return Recordings(x, 50, ["I", "II"], "mV", labels=y, classes=["no", "yes"], **people)


SPACE = SearchSpace("wards", RunConfig(dataset="wards", scenario="domain_il", network="small_cnn"DOMAIN), seeds=[0])
"""


@pytest.mark.parametrize(
    ("domain", "is_said"), [("", True), (", domain='lead'", False), (", domain='ward'", False)], ids=repr
)
def test_domains_that_are_not_used_are_named(domain: str, is_said: bool, tmp_path: Path) -> None:
    file = tmp_path / "wards.py"
    file.write_text(SPACE.replace("DOMAIN", domain))
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    run = CliRunner().invoke
    done = run(command, ["data", "prepare", "wards", "--plugins", str(file), *prepared])
    assert done.exit_code == 0, done.output
    assert "wards, domain_il by ward: frames (patients) per task" in done.output
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    assert plan.exit_code == 0, plan.output
    sentence = "wards, domain_il: each task is a lead; for tasks by ward, set domain='ward', or domain='lead' to keep"
    assert (sentence in plan.output) == is_said, plan.output
