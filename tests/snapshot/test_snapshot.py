"""The numbers of this version are those that are kept in data/, and the comparison sees what differs."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.preloaded import Preloaded

from .compare import differences

TESTS = Path(__file__).parents[1]
NUMBERS = {"case": ["a", "a", "b"], "auc": [0.5, float("nan"), 0.25], "steps": [[1.0, 2.0], None, None]}


PROGRAM = f"""
import runpy, sys
sys.path.insert(0, {str(TESTS)!r})
runpy.run_module("snapshot", run_name="__main__", alter_sys=True)
"""
"""`python -m snapshot`, on the installed package, which holds the kernels."""


def test_runs_of_small_networks_are_as_they_were(commands: Preloaded, tmp_path: Path) -> None:
    small = ("--only", "runs", "--cases", "^(?!resnet1d_wang|inception_time)")
    done = commands.run(tmp_path, os.environ, *small, program=PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_everything_is_as_it_was(commands: Preloaded, tmp_path: Path) -> None:
    done = commands.run(tmp_path, os.environ, program=PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tables_do_not_differ_from_themselves() -> None:
    assert not list(differences({"curves": pd.DataFrame(NUMBERS)}, {"curves": pd.DataFrame(NUMBERS)}))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"auc": [0.5, float("nan"), 0.25 + 1e-15]}, ("b", "auc", 0)),
        ({"auc": [0.5, 0.5, 0.25]}, ("a", "auc", 1)),
        ({"steps": [[1.0, 2.5], None, None]}, ("a", "steps", 0)),
        ({"case": ["a", "a", "c"]}, ("b", "case", None)),
        ({"case": ["a", "b", "b"]}, ("a", "case", None)),
        ({"loss": [1.0, 1.0, 1.0]}, ("a", "loss", 0)),
    ],
)
def test_the_first_difference_of_a_column_is_named(
    changed: dict[str, object], expected: tuple[str, str, int | None]
) -> None:
    first, *_ = differences({"curves": pd.DataFrame(NUMBERS)}, {"curves": pd.DataFrame(NUMBERS | changed)})
    assert (first.case, first.column, first.row) == expected


def test_ids_can_be_ignored() -> None:
    before = {"runs": pd.DataFrame({"case": ["a"], "run_id": ["1"], "backend": ["native-avx2"], "auc": [0.5]})}
    after = {"runs": before["runs"].assign(run_id="2", auc=0.75)}
    assert [it.column for it in differences(before, after)] == ["run_id", "auc"]
    (found,) = differences(before, after, ignore_ids=True)
    assert found.size == 0.25


@pytest.mark.parametrize(
    ("backend", "column", "difference", "same"),
    [
        ("native-avx2", "auc", 1e-15, False),
        ("native-avx2", "loss", 2e-7, True),
        ("native-avx2", "loss", 2e-6, False),
        ("torch-module", "auc", 2e-4, True),
        ("torch", "loss", 2e-4, True),
        ("torch", "loss", 2e-3, False),
    ],
)
def test_the_backend_alone_says_how_exact_a_run_is(backend: str, column: str, difference: float, same: bool) -> None:
    runs = {"runs": pd.DataFrame({"case": ["a"], "backend": [backend]})}
    before, after = (
        runs | {"curves": pd.DataFrame({"case": ["a"], column: [number]})} for number in (0.5, 0.5 + difference)
    )
    (found,) = differences(before, after)
    assert (found.size <= found.allowed) is same
