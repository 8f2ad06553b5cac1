"""A few bad inputs of every area; all of them take `python -m tests.hostile`."""

from __future__ import annotations

from pathlib import Path

import pytest
from preloaded import Preloaded

from tests.hostile.__main__ import AREAS

ROOT = Path(__file__).parents[2]
PROGRAM = """
import runpy, warnings
warnings.simplefilter("ignore")
runpy.run_module("tests.hostile", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("sample", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_few_bad_inputs_of_every_area_are_answered_in_one_sentence(
    sample: int, environment: dict[str, str], forked: Preloaded, prepared_root: Path
) -> None:
    areas = [argument for area in AREAS for argument in ("--only", area)]
    prepared = ("--prepared", str(prepared_root))
    done = forked.run(ROOT, environment, *areas, "--sample", str(sample), *prepared, program=PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split() == ["all", str(sample * len(AREAS)), "0"]
