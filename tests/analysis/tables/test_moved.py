"""Decisions on earlier tasks that move although a ranking is kept are named: an AUC does not show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, read, sweep
from clops_sweep.analysis.tables.best_terminal import best_of_state
from clops_sweep.execution.outcome import Outcome
from tests.data.declared_files import forget


@pytest.fixture(autouse=True)
def _shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two classes of 30 people in two wards; in ward B all signals are higher, so each ward has its own threshold."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(tmp_path / "prepared"))

    @dataset("shifted", scenarios=["domain_il"])
    def shifted(data_root: Path | None) -> Recordings:
        people = np.arange(480) // 16
        labels = np.arange(480) % 2
        wards = np.array(["A", "B"])[people % 2]
        samples = 0.5 * np.random.default_rng(0).normal(size=(480, 1, 50)) + 1
        samples[:, 0, :10] += (4.0 * labels - 5.0 + 5.0 * (wards == "B"))[:, None]
        return Recordings(samples, 50, ["az"], "g", labels, ["no", "yes"], people, domains={"ward": wards})

    yield
    forget("shifted")


def _swept(**settings: object) -> Outcome:
    base = RunConfig(
        scenario="domain_il", domain="ward", dataset="shifted", network="linear", normalize="none", epochs_per_task=20,
        strategy="finetune", learning_rate=1e-2,
    )  # fmt: skip
    space = SearchSpace("it", base.replace(**settings), {"split_seed": range(2)}, [0])
    return sweep(space, ray=False, keep=["predictions"])


def test_the_sentence_has_the_numbers_of_the_predictions() -> None:
    outcome = _swept()
    (best,) = best_of_state(outcome.state)
    predictions = read("results", "predictions")
    earlier = predictions[predictions["task"] == "ward A"]
    before, after = [], []
    for _, of_run in earlier.groupby("run_id"):
        for trained_on, scores in ((1, before), (2, after)):
            rows = of_run[of_run["trained_on"] == trained_on]
            truth = rows["label"].to_numpy() == "yes"
            said = rows["probability_1"].to_numpy()
            scores.append((accuracy_score(truth, said > 0.5), roc_auc_score(truth, said)))
    (accuracy, auc), (accuracy_after, auc_after) = np.mean(before, axis=0), np.mean(after, axis=0)
    assert accuracy - accuracy_after > 0.1 > auc - auc_after, "the case that the sentence is about"
    (sentence,) = [text for text in best.in_doubt if text.startswith("Ranking kept, decisions moved: ")]
    assert (
        f"test accuracy {accuracy:.3f} to {accuracy_after:.3f} on earlier tasks, AUC {auc:.3f} to {auc_after:.3f}."
    ) in sentence
    assert sentence in outcome.in_doubt


def test_nothing_is_said_where_decisions_are_kept() -> None:
    said = _swept(strategy="multitask").in_doubt
    assert not [text for text in said if text.startswith("Ranking kept")]
