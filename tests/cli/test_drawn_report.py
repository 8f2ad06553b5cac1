"""What the report of a launch was drawn from is the same for two processes that launch the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DIGEST = """
from clops_sweep.cli.drawn_report import drawn_from
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.search_spaces import quickstart
from clops_sweep.store.run_store import RunStore

request = Request(Selection.of(quickstart.SPACE), PreparedData.found("prepared", None, None), RunStore("results"))
print(drawn_from(State.of(request)))
"""


def test_another_process_has_the_same_digest(tmp_path: Path) -> None:
    """The order of a set of texts differs between processes."""
    digests = set()
    for value in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"PYTHONHASHSEED": value},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
