"""The package from Python: a sweep in one call, a table in another, and names that stay what they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import clops_sweep
from clops_sweep.machine import installed_version
from tests.helpers.preloaded import Preloaded

SCRIPT = """
import json, sys, warnings
warnings.filterwarnings("error", category=DeprecationWarning, module="clops_sweep")
from clops_sweep import OptunaSearch, FloatDistribution, RunConfig, SearchSpace, read, sweep

base = RunConfig(epochs_per_task=1, mc_samples=2)
grid = SearchSpace("grid", base, {"strategy": ["finetune", "clops"], "mc_samples": [2, 3]}, seeds=range(2))
search = SearchSpace("search", base, seeds=[0],
                     search=OptunaSearch({"learning_rate": FloatDistribution(1e-4, 1e-2, log=True)}, n_trials=1))
outcome = sweep([grid, search], "results", settings={"batch_size": 32}, seeds=1, cpus_per_trial=2, address="auto")
again = sweep([grid, search], "results", settings={"batch_size": 32}, seeds=1)
runs = read("results", "runs", columns=["run_id", "strategy", "batch_size", "auc"])
print(json.dumps([
    outcome.complete, outcome.counts, outcome.ran, outcome.plan.cells_and_seeds, str(outcome),
    again.ran, again.complete,
    [search.count("complete") for search in outcome.searches],
    sorted(runs["strategy"]), sorted(set(runs["batch_size"])), len(outcome.store.read("runs")), outcome.failures,
    repr(outcome), outcome._repr_html_(), sorted(outcome.runs["strategy"]), bool(outcome.runs.isna().all().any()),
]))
"""


@pytest.mark.nightly
def test_a_sweep_from_python(tmp_path: Path, ray_at_hand: dict[str, str], drivers: Preloaded) -> None:
    done = drivers.run(tmp_path, ray_at_hand, program=SCRIPT, seconds=800)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("[1/4] finished") for line in lines)  # the display that the command has

    *found, shown, html, of_outcome, any_empty = json.loads(lines[-1])
    complete, counts, ran, places, said, again, still, trials, strategies, sizes, stored, failed = found
    assert (shown.splitlines()[0], of_outcome, any_empty) == (f"<Outcome: {said}", strategies, False)
    assert "test AUC 0." in shown
    assert f"<caption>{said}</caption>".replace("'", "&#x27;") in html
    assert (complete, counts, ran, places) == (True, {"finished": 3, "pending": 0, "failed": 0}, True, 4)
    assert said == "3 runs asked for, 3 finished, 0 pending, 0 failed; search 'search': 1 trial complete"
    assert (again, still, trials) == (False, True, [1])
    assert strategies == ["clops", "clops", "clops", "finetune"]  # fine-tuning has no T: one run for both
    assert (sizes, stored, failed) == ([32], 4, {})


def test_everything_that_is_promised_is_there() -> None:
    for name in clops_sweep.__all__:
        assert getattr(clops_sweep, name) is not None
    assert clops_sweep.__version__ == installed_version("clops-sweep")
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = clops_sweep.nothing


def test_importing_it_needs_neither_torch_nor_ray_nor_pandas() -> None:
    code = (
        "import sys, clops_sweep; print(sorted({'torch', 'ray', 'pandas', 'optuna', 'pyarrow'} & sys.modules.keys())); "
        "import clops_sweep.analysis.people.patient_intervals; print({'torch', 'matplotlib'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "set()"]
