"""Workers are started once, whatever they have to do."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.execution.conftest import Launch

pytestmark = pytest.mark.nightly


RUNS = 16

SPACE = f'''
import os
import time
from pathlib import Path

from clops_sweep import RunConfig, SearchSpace, acquisition_function

FOLDER = Path({{folder!r}})
STARTED = FOLDER / "started"


def arrive():
    """Where a worker starts: it leaves its number, and takes longer than {RUNS // 2} runs unless it is the first."""
    with STARTED.open("a") as file:
        first = file.tell() == 0
        file.write(f"{{{{os.getpid()}}}}\\n")
    end = time.monotonic() + 60
    while not first and len(list(FOLDER.glob("results/runs/*.parquet"))) < {RUNS // 2} and time.monotonic() < end:
        time.sleep(0.05)


class Luggage:
    def __call__(self, context, rows):
        raise AssertionError("no run asks for it")

    def __reduce__(self):
        return arrive, ()


acquisition_function("luggage")(Luggage())
SPACE = SearchSpace(name="short", base=RunConfig(strategy="finetune", epochs_per_task=1), seeds=range({RUNS}))
'''


def test_a_worker_that_starts_slowly_is_not_given_up_for_one_that_is_free(attach: Launch, tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(SPACE.format(folder=str(tmp_path)))
    sweep = attach("space.py", "--no-report", workers=2)
    assert sweep.wait() == 0, sweep.errors
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert (len(runs), set(runs["status"])) == (RUNS, {"finished"})
    assert len((tmp_path / "started").read_text().splitlines()) == 2  # as many as there are CPUs
