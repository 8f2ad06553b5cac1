"""Runs of one data set that was prepared again with other content are never paired, and the report says so."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.verdicts import verdicts
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.report.planned import planned_sections
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.tables.best import best_configurations, best_sentences
from clops_sweep.store.run_store import RunStore

GRID = SearchSpace(
    "grid", RunConfig(), {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 0.5]}, seeds=range(4)
)
TUNED = SearchSpace("tuned", RunConfig(strategy="finetune"), seeds=range(4))
CLAIM = Claim("more", "More.", (Contrast(Side("CLOPS", {"strategy": "clops"}), Side("F", {"strategy": "finetune"})),))


def stored(folder: Path, generated: ModuleType, data_of_tuned: str) -> tuple[RunStore, list[Experiment]]:
    rng = np.random.default_rng(0)
    store = RunStore(folder)
    for space, data_hash in ((GRID, "content0001"), (TUNED, data_of_tuned)):
        rows = []
        for request in space.requests():
            value = 0.6 + 0.1 * (request.config.strategy == "finetune") + float(rng.normal(0, 0.01))
            rows.append((request.config, {"auc": value, "bwt": -value}))
        generated.write_given_runs(store, rows, data_hash)
    return store, collect([GRID, TUNED], store.read("runs"))


@pytest.mark.parametrize(("data_of_tuned", "compared"), [("content0001", True), ("content0002", False)])
def test_runs_of_data_with_other_content_are_not_compared(
    data_of_tuned: str, compared: bool, tmp_path: Path, generated: ModuleType
) -> None:
    store, experiments = stored(tmp_path, generated, data_of_tuned)
    grid, tuned = experiments
    planned = planned_sections([(grid, GRID, None), (tuned, TUNED, None)], store)[0]
    kinds = {row.kind for row in planned.compared().rows}
    assert ("reference" in kinds, len(planned.references)) == (compared, int(compared))

    said = best_sentences(best_configurations(grid, [tuned]))[0]
    apart = "not compared with fine-tuning, whose runs are of other prepared data or another semantics version"
    assert ("below fine-tuning" in said, apart in said) == (compared, not compared)

    (verdict,) = verdicts(experiments, store, claims=[CLAIM])
    assert verdict.evidence[0].n == (4 if compared else 0)
    why = "the runs of the two sides are of other prepared data or another semantics version"
    assert verdict.missing == ("" if compared else why)


@pytest.mark.nightly
def test_the_report_names_what_it_does_not_compare(tmp_path: Path, generated: ModuleType) -> None:
    store, _ = stored(tmp_path / "store", generated, "content0002")
    write_report([GRID, TUNED], store, tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Not compared with tuned: its runs are of synthetic (class_il, patient split 0), data content0002" in page


def test_each_data_set_has_its_own_reference(tmp_path: Path, generated: ModuleType) -> None:
    """Fine-tuning on the first data set was compared, that on the others was not."""
    data = {"dataset": ["mitbih", "synthetic"]}
    base = {"network": "small_cnn", "epochs_per_task": 5, "learning_rate": 0.001, "dataset": "mitbih"}
    fractions = {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 0.5]}
    grid_space = SearchSpace("grid", RunConfig(**base), {**data, **fractions}, seeds=range(4))
    tuned_space = SearchSpace("tuned", RunConfig(strategy="finetune", **base), data, seeds=range(4))
    store = RunStore(tmp_path)
    rows = []
    for request in (*grid_space.requests(), *tuned_space.requests()):
        config = request.config
        value = 0.6 + 0.2 * (config.dataset == "synthetic") + 0.01 * config.seed
        value += 0.1 * (config.strategy == "clops") * (1 + 0.1 * config.seed)
        rows.append((config, {"auc": value, "bwt": -value}))
    generated.write_given_runs(store, rows)
    grid, tuned = collect([grid_space, tuned_space], store.read("runs"))
    planned = planned_sections([(grid, grid_space, None), (tuned, tuned_space, None)], store)[0]
    references = [row for row in planned.compared().rows if row.kind == "reference"]
    assert len(references) == 8
    for row in references:
        assert row.name.startswith(row.baseline)
        assert row.differences["auc"].mean == pytest.approx(0.115)
