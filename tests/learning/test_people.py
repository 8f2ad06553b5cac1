"""Runs whose tasks are groups of people: people in no task, people tested in every task, and scores per person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score

from clops_sweep import ContinualRun, UsageError
from clops_sweep.analysis import per_person
from clops_sweep.data.frames import TEST, TRAINING, UNSEEN, VALIDATION, FrameSet
from clops_sweep.data.scenarios import Subset, Task
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.learning.metrics.evaluation import Evaluator
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames


def by_time() -> FrameSet:
    """One person of one class and three of the others, each in all parts, and two people in no task."""
    frames = tiny_frames("class_il", tasks=2)
    order = np.argsort(frames.split, kind="stable")
    split, patients = frames.split.copy(), frames.patients.copy()
    for part in (TRAINING, VALIDATION, TEST):
        rows = order[frames.split[order] == part]
        patients[rows] = np.where(frames.labels[rows] == 0, 0, 1 + np.arange(len(rows)) % 3)
    tested = np.flatnonzero(frames.split == TEST)
    unseen = np.array([tested[frames.labels[tested] == label][0] for label in range(4)])
    left = np.setdiff1d(tested, unseen)
    patients[left] = np.where(frames.labels[left] == 0, 0, 1 + np.arange(len(left)) % 3)
    split[unseen], patients[unseen] = UNSEEN, 6 + np.arange(4) % 2
    return replace(frames, split=split, patients=patients)


@pytest.fixture(scope="module", params=["er", "joint"])
def result(request: pytest.FixtureRequest) -> RunResult:
    config = tiny_config("subject_il", strategy=request.param, split_within="time", people_per_task=2)
    return ContinualRun(config, by_time(), keep_predictions=True).run()


def scores(rows: pd.DataFrame) -> dict[str, float]:
    truth = rows.filter(regex="^target_").to_numpy().argmax(1)
    p = rows.filter(regex="^probability_").to_numpy(float)
    kept = [c for c in range(p.shape[1]) if 0 < (truth == c).sum() < len(truth)]
    return {
        "accuracy": accuracy_score(truth, p.argmax(1)),
        "balanced_accuracy": balanced_accuracy_score(truth, p.argmax(1)),
        "f1": f1_score(truth, p.argmax(1), average="macro", labels=np.unique(truth)),
        "auc": np.mean([roc_auc_score(truth == c, p[:, c]) for c in kept]),
    }


def test_what_a_person_gains_and_keeps_is_counted_directly(result: RunResult) -> None:
    kept = result.predictions
    target, p = kept.filter(regex="^target_").to_numpy(), kept.filter(regex="^probability_").to_numpy(float)
    kept = kept.assign(right=target.argmax(1) == p.argmax(1))
    found = per_person(kept)
    assert len(found) == kept["patient"].nunique() == 6
    stages = sorted(kept["trained_on"].unique())

    def share(person: str, stage: int) -> float:
        return float(kept[(kept["patient"] == person) & (kept["trained_on"] == stage)]["right"].mean())

    for row in found.to_dict("records"):
        person, j = row["patient"], row["evaluated_on"]
        assert row["instances"] == kept[kept["patient"] == person]["instance"].nunique()
        assert row["accuracy"] == pytest.approx(share(person, 2))
        one_by_one = len(stages) == 2 and j > 0
        gain = share(person, j) - share(person, j - 1) if one_by_one and j > 1 else np.nan
        retention = share(person, 2) - share(person, j) if one_by_one and j < 2 else np.nan
        assert [row["gain"], row["retention"]] == pytest.approx([gain, retention], nan_ok=True)
    with pytest.raises(UsageError, match="predictions of 2 runs"):
        per_person(pd.concat([kept, kept.assign(run_id="another")]))
    with pytest.raises(UsageError, match="--keep predictions"):
        per_person(kept[:0])


def _in_orders_of_their_own(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return tasks whose test instances are the same, but not in the same order."""
    turned = []
    for number, task in enumerate(tasks):
        test = Subset(np.roll(task.test.rows, number), np.roll(task.test.targets, number, axis=0))
        turned.append(replace(task, test=test))
    return tuple(turned)


def test_people_tested_in_every_task_are_evaluated_once_and_stand_in_every_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config("subject_il", strategy="finetune", people_per_task=7)
    frames = tiny_frames("class_il", tasks=2)
    run = ContinualRun(config, frames, keep_predictions=True)
    asked: list[int] = []
    logits = run.learner.logits

    def counted(rows: torch.Tensor) -> torch.Tensor:
        asked.append(len(rows))
        return logits(rows)

    monkeypatch.setattr(run.learner, "logits", counted)
    once = run.run()
    assert set(asked) == {12}
    by_column = once.r_matrix.groupby(["split", "trained_on"])["accuracy"].nunique()
    assert (by_column == 1).all()
    asked.clear()
    apart = replace(run.scenario, tasks=_in_orders_of_their_own(run.scenario.tasks))
    scores, of_each = Evaluator(apart, "test", run.learner, joint=False).evaluate_and_predict()
    assert asked == [36]
    at_end = once.r_matrix[(once.r_matrix["split"] == "test") & (once.r_matrix["trained_on"] == len(apart.tasks))]
    for measure in MEASURES:
        np.testing.assert_allclose(at_end[measure], getattr(scores, measure), rtol=1e-6)
    predictions = once.predictions[once.predictions["trained_on"] == len(apart.tasks)].set_index("instance")
    for task, outputs in zip(apart.tasks, np.split(of_each, len(apart.tasks)), strict=True):
        kept = predictions[predictions["task"] == task.name].loc[task.test.rows].filter(regex="^(probability|logit)_")
        np.testing.assert_allclose(kept, outputs, rtol=1e-5, atol=1e-6)
    found = per_person(once.predictions)
    assert set(found["evaluated_on"]) == {0}
    assert len(found) == 12
    assert found["instances"].tolist() == [1] * 12
    assert found["accuracy"].mean() == pytest.approx(once.runs["test_accuracy"].item())
