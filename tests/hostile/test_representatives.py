"""A few bad inputs of every area; all of them take `python -m tests.hostile`."""

from __future__ import annotations

import subprocess
import sys

from tests.hostile.__main__ import AREAS


def test_a_few_bad_inputs_of_every_area_are_answered_in_one_sentence() -> None:
    areas = [argument for area in AREAS for argument in ("--only", area)]
    command = [sys.executable, "-W", "ignore", "-m", "tests.hostile", *areas, "--sample", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split() == ["all", str(3 * len(AREAS)), "0"]
