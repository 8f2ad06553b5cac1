"""Runs on a device other than the CPU: their tensors are never mixed, and the numbers equal the CPU's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch.utils import backend_registration

from clops_sweep import native
from clops_sweep.experiment.plugins.registry import STRATEGIES
from tests.helpers.preloaded import Preloaded
from tests.learning.methods import one_kind

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
        reason="this PyTorch cannot be told of a device in Python",
    ),
]

CASES = [
    ("clops", "bald_mcd", "class_il", "clops_cnn"),
    ("clops", "balc_kld", "time_il", "clops_cnn"),
    ("clops", "bald_mcp", "domain_il", "clops_cnn"),
    ("multitask", "random", "domain_il", "clops_cnn"),
    ("mir", "random", "domain_il", "clops_cnn"),
    *((name, "random", one_kind(name), "clops_cnn") for name in STRATEGIES if name != "clops"),
    ("clops", "bald_mcd", "class_il", "own"),
    ("er", "random", "class_il", "own"),
    *((name, "random", "class_il", "own") for name in ("my_derpp", "my_ewc", "my_lwf", "my_replay", "my_momentum_er")),
]


ROOT = Path(__file__).parents[2]
PROGRAM = """
import runpy, warnings
warnings.simplefilter("error")
runpy.run_path("tests/learning/far_device.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def distances(environment: dict[str, str], commands: Preloaded) -> dict[tuple[str, ...], dict[str, float]]:
    done = commands.run(ROOT, environment | {native.ENVIRONMENT: "off"}, *map(" ".join, CASES), program=PROGRAM)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(CASES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_run_elsewhere_is_that_of_the_cpu(
    case: tuple[str, ...], distances: dict[tuple[str, ...], dict[str, float]]
) -> None:
    assert {column: distance for column, distance in distances[case].items() if not distance < 1e-5} == {}
