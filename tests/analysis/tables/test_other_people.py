"""Configurations that are compared although a split seed gives them different people."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.verdicts import verdicts
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.tables.best import best_configurations, best_text
from clops_sweep.analysis.tables.comparisons import comparisons
from clops_sweep.store.run_store import RunStore

NOISE = (0.011, -0.007, 0.004, 0.015, 0.002)
AXES = {"stratify": [None, "site"], "norm": ["batch", "layer"], "split_seed": [0, 1, 2]}
SPACE = SearchSpace("splits", RunConfig(strategy="er"), AXES, seeds=[0])
SENTENCE = "The two sides have different people in training, validation or test: "


def stored(folder: Path, generated: ModuleType, *, is_same: bool = False) -> tuple[Experiment, RunStore]:
    """Return runs whose people depend on `stratify`, or not."""
    store = RunStore(folder)
    runs = []
    for request in SPACE.requests():
        config = request.config
        auc = 0.7 + NOISE[config.split_seed] + (config.norm == "layer") * NOISE[config.split_seed + 1]
        people = "same" if is_same else config.stratify
        values = {"auc": auc, "split_hash": f"{people} {config.split_seed}"}
        runs.append((config, values))
    generated.write_given_runs(store, runs)
    (found,) = collect([SPACE], store.read("runs"))
    return found, store


def test_configurations_with_other_people_are_named(tmp_path: Path, generated: ModuleType) -> None:
    found, _ = stored(tmp_path, generated)
    (note,) = [note for note in comparisons(found).notes if note.startswith(SENTENCE)]
    assert note.endswith("site, batch minus batch; site, layer minus batch; site, batch minus layer and 1 more.")
    assert any(note.startswith(SENTENCE) for note in best_text(best_configurations(found), "best").notes)


def test_nothing_is_said_of_the_same_people(tmp_path: Path, generated: ModuleType) -> None:
    found, _ = stored(tmp_path, generated, is_same=True)
    notes = *comparisons(found).notes, *best_text(best_configurations(found), "best").notes
    assert not [note for note in notes if "different people" in note]


@pytest.mark.parametrize(("field", "values"), [("stratify", ("site", None)), ("norm", ("layer", "batch"))])
def test_a_claim_says_if_its_sides_have_other_people(
    field: str, values: tuple[str, str | None], tmp_path: Path, generated: ModuleType
) -> None:
    found, store = stored(tmp_path, generated)
    ours, theirs = (Side(str(value), {field: value}) for value in values)
    claim = Claim("it", "It is above", Contrast(ours, theirs), scenario="class_il")
    (verdict,) = verdicts([found], store, claims=[claim])
    said = "in 3 of 3 pairs of split and seed, the sides have different people in training, validation or test"
    assert (said in verdict.missing) == (field == "stratify")
