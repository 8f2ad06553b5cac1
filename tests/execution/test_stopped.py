"""Launches whose results are damaged or moved away while they run: they stop in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.helpers.at_night import mostly_at_night

SPACE = """
from pathlib import Path

from clops_sweep import OptunaSearch, RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

RESULTS = Path("results").absolute()
JOURNAL = RESULTS / "optuna.journal"


@strategy("harmful")
class Harmful(FineTuning):
    def begin_task(self, task):
        if task == 1 and Path("harm").exists():
            Path("harm").unlink()
            {harm}


SEARCH = OptunaSearch({{"learning_rate": [1e-4, 1e-3]}}, n_trials=2, sampler="random")
BASE = RunConfig(strategy="{of_search}", epochs_per_task=1)
SPACE = [
    SearchSpace("grid", BASE.replace(strategy="{of_grid}"), seeds=1),
    SearchSpace("searched", BASE, search=SEARCH, seeds=1),
]
"""
DAMAGE = "JOURNAL.write_bytes(b'no journal\\n' + (JOURNAL.read_bytes() if JOURNAL.exists() else b''))"
APPENDED = "JOURNAL.write_bytes(JOURNAL.read_bytes() + b'no line\\n')"
CASES = {
    "a journal damaged by a run of the grid": (DAMAGE, "harmful", "finetune", "damaged, or edited"),
    "a journal damaged by a trial": (APPENDED, "finetune", "harmful", "damaged, or edited"),
    "a folder moved away by a run of the grid": ("RESULTS.rename('moved')", "harmful", "finetune", "has gone"),
    "a folder moved away by a trial": ("RESULTS.rename('moved')", "finetune", "harmful", "has gone"),
}


SOME = ("a journal damaged by a trial", "a folder moved away by a run of the grid")


@pytest.mark.parametrize("case", mostly_at_night(CASES, SOME.__contains__))
def test_a_launch_stops_and_goes_on_once_the_results_are_back(clops_sweep: Command, tmp_path: Path, case: str) -> None:
    harm, of_grid, of_search, why = CASES[case]
    (tmp_path / "space.py").write_text(SPACE.format(harm=harm, of_grid=of_grid, of_search=of_search))
    (tmp_path / "harm").touch()
    stopped = clops_sweep("space.py", "--no-ray", "--no-report")
    assert "Traceback" not in stopped.stderr
    assert stopped.stderr.startswith("clops-sweep: stopped: "), stopped.stderr
    assert why in stopped.stderr
    assert "; once this is fixed, resume with: clops-sweep " in stopped.stderr
    assert (stopped.returncode, stopped.stderr.count("\n")) == (1, 1)

    if (tmp_path / "moved").exists():
        (tmp_path / "moved").rename(tmp_path / "results")
    else:
        (tmp_path / "results" / "optuna.journal").unlink()
    again = clops_sweep("space.py", "--no-ray", "--no-report")
    assert (again.returncode, again.stderr) == (0, "")
    assert "2 trials asked for, 2 complete" in again.stdout


REFUSING = """
from pathlib import Path

from clops_sweep import OptunaSearch, RunConfig, SearchSpace


def gamma(trials):
    if not Path("mended").exists():
        raise LookupError("no such table")
    return 1


BASE = RunConfig(strategy="finetune", epochs_per_task=1)
SEARCH = OptunaSearch(
    {"learning_rate": (1e-4, 1e-3)}, n_trials=3, sampler_options={"n_startup_trials": 1, "gamma": gamma}
)
SPACE = [SearchSpace("grid", BASE, seeds=1), SearchSpace("searched", BASE, search=SEARCH, seeds=1)]
"""


def test_a_sampler_that_fails_later_stops_a_launch_which_counts_what_it_computed(
    clops_sweep: Command, tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(REFUSING)
    for _ in range(2):  # the second one begins with the trial that got no value
        stopped = clops_sweep("space.py", "--no-ray", "--json")
        outcome = json.loads(stopped.stdout)
        assert "Traceback" not in stopped.stderr
        assert (stopped.returncode, outcome["finished"], outcome["pending"]) == (1, 1, 0)
        assert "sampler_options of 'tpe'" in outcome["stopped"]
        assert outcome["stopped"].endswith("LookupError: no such table")
    (tmp_path / "mended").touch()
    again = clops_sweep("space.py", "--no-ray", "--no-report")
    assert (again.returncode, again.stderr) == (0, "")
    assert "3 trials asked for, 3 complete" in again.stdout
