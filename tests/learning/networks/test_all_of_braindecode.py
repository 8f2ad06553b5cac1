"""All networks of braindecode: the table in the documentation is what happens to them."""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clops_sweep import native
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.registry import STRATEGIES
from tests.helpers.braindecode import require_braindecode

FOLDER = Path(__file__).parents[3] / "docs" / "braindecode"
TIMES = ("step_ms", "loop_ms")

with (FOLDER / "networks.csv").open(newline="") as file:
    ROWS = {row["model"]: row for row in csv.DictReader(file)}

Contract = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def contract() -> Iterator[Contract]:
    """The function that tries a model and returns its row."""
    if native.chosen_for_programs() is None:
        pytest.skip("the table names what the native kernels compute, and this machine has none")
    require_braindecode()
    yield runpy.run_path(str(FOLDER / "networks.py"))["contract"]
    STRATEGIES.forget("replay_by_loss")


def test_the_page_is_made_of_the_tables() -> None:
    page = (FOLDER.parent / "results" / "braindecode.md").read_text("utf-8")
    assert page == runpy.run_path(str(FOLDER / "study.py"))["page"]()


def test_the_table_has_the_networks_of_the_package() -> None:
    if why := braindecode.why_unavailable():
        pytest.skip(why)
    names = {network.removeprefix(braindecode.PREFIX) for network in braindecode.names()}
    assert names == set(ROWS)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("model", list(ROWS))
def test_a_network_is_refused_or_meets_the_demands_as_the_table_says(model: str, contract: Contract) -> None:
    found = contract(model)
    assert {name: found[name] for name in found if name not in TIMES} == {
        name: value for name, value in ROWS[model].items() if name not in TIMES
    }
