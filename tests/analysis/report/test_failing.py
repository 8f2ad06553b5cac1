"""Configurations of which every run failed, on the page of a report."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.failures import failure_notices
from clops_sweep.analysis.figures.profiles import profile
from clops_sweep.analysis.formats import DASH
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.tables.best import best_configurations, best_text, failing_configurations
from clops_sweep.store.run_store import RunStore

TRACEBACK = """Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/clops_sweep/learning/run.py", line 228, in advance
    self._train_epoch(task, epoch)
  File "/home/me/mine.py", line 27, in loss
    label = self.memory.y.argmax(1)
  File "/env/lib/python3.11/site-packages/torch/tensor.py", line 3, in argmax
    raise AttributeError
AttributeError: 'Memory' object has no attribute 'y'
"""


@pytest.fixture
def space() -> SearchSpace:
    return SearchSpace("methods", RunConfig(), {"strategy": ["finetune", "er", "ewc"]}, seeds=range(3))


@pytest.fixture
def store(tmp_path: Path, generated: ModuleType, space: SearchSpace) -> RunStore:
    """A store in which every run of EWC failed."""
    store = RunStore(tmp_path / "results")
    configs = [request.config for request in space.requests()]
    values = {"auc": 0.8, "bwt": -0.1}
    generated.write_given_runs(store, [(config, values) for config in configs if config.strategy != "ewc"])
    for config in configs:
        if config.strategy == "ewc":
            generated.write_failed_run(store, config, config.run_id("generated0001"))
    return store


def test_a_method_all_of_whose_runs_failed_has_a_row(space: SearchSpace, store: RunStore) -> None:
    (experiment,) = collect([space], store.read("runs"))
    (failing,) = failing_configurations(experiment)
    assert (failing.name, failing.in_words) == ("ewc", "failed (3 of 3)")
    best = best_configurations(experiment)
    last = best_text(best, "best", [failing]).rows[-1]
    assert [cell.text for cell in last[:2]] == ["ewc", "failed (3 of 3)"]
    assert {cell.text for cell in last[2:]} == {DASH}
    assert "ewc (failed: 3 of 3 runs)" in best[0].unranked


def test_a_figure_has_no_place_for_a_method_without_a_run(space: SearchSpace, store: RunStore) -> None:
    (experiment,) = collect([space], store.read("runs"))
    record = profile(experiment)
    assert record.labels == ("finetune", "er")
    assert all(values.shape[1] == 2 for values in record.values.values())


def test_failures_name_the_line_of_custom_code() -> None:
    columns = ["status", "run_id", "reason", "error"]
    reason = "AttributeError: 'Memory' object has no attribute 'y'"
    runs = pd.DataFrame([("failed", "a", reason, TRACEBACK), ("failed", "b", reason, TRACEBACK)], columns=columns)
    (said,) = failure_notices(runs)
    assert said == f"2 runs failed: 2 times {reason} (mine.py:27)."
    without = runs.assign(error=TRACEBACK.replace("/home/me/mine.py", "/env/lib/python3.11/ast.py"))
    assert next(failure_notices(without)) == f"2 runs failed: 2 times {reason}."


@pytest.mark.usefixtures("unpainted")
def test_the_page_has_the_row_the_retry_command_and_no_repeated_figure(
    space: SearchSpace, store: RunStore, tmp_path: Path
) -> None:
    page = write_report([space], store, tmp_path / "report", retry="clops-sweep m.py --retry failed").index.read_text()
    assert "failed (3 of 3)" in page
    assert "ValueError: generated failure (generated_store.py:" in page
    assert "Run the failed runs again with: clops-sweep m.py --retry failed" in page
    assert page.index("More figures:") < page.index('<figure id="methods-metrics"')
    assert page.rindex("<details>", 0, page.index('<figure id="methods-results"')) > 0
