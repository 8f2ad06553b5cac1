"""The numbers of this version are those that are kept in data/, and the comparison sees what differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from .compare import differences

TESTS = Path(__file__).parents[1]
NATIVE_ALONE = "^(?!.*(PyTorch|resnet1d|inception|generated))"
NUMBERS = {"case": ["a", "a", "b"], "auc": [0.5, float("nan"), 0.25], "steps": [[1.0, 2.0], None, None]}


def _snapshot(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, on the installed package, which holds the kernels."""
    command = [sys.executable, "-P", "-m", "snapshot", *arguments]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)


def test_native_runs_and_search_spaces_are_as_they_were() -> None:
    done = _snapshot("--only", "runs", "--only", "spaces", "--cases", NATIVE_ALONE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_everything_is_as_it_was() -> None:
    done = _snapshot()
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


def test_ids_can_be_ignored_and_pytorch_is_known_by_its_backend() -> None:
    before = {"runs": pd.DataFrame({"case": ["a"], "run_id": ["1"], "backend": ["torch"], "auc": [0.5]})}
    after = {"runs": pd.DataFrame({"case": ["a"], "run_id": ["2"], "backend": ["torch"], "auc": [0.75]})}
    assert [it.column for it in differences(before, after)] == ["run_id", "auc"]
    (found,) = differences(before, after, ignore_ids=True)
    assert (found.size, found.pytorch) == (0.25, True)
