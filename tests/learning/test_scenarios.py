"""Every strategy in every scenario; scikit-learn reproduces every measure of R and of the union from the
predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import ScenarioTasks, TaskInstances
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.experiment.plugins.registry import SCENARIOS, STRATEGIES
from clops_sweep.learning.metrics import r_matrix as metrics
from clops_sweep.learning.metrics.hits import TaskHits
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import ContractViolation, check_scenario, tiny_config, tiny_frames
from tests.helpers.at_night import mostly_at_night
from tests.learning.methods import PAPERS

GROUPS = ((0, 4, 2), (3, 5, 1))
VARIANTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "pairs": ("class_il", {}, {}),
    "groups": ("class_il", {}, {"task_classes": GROUPS}),
    "one task": ("class_il", {}, {"task_classes": ((2, 3),)}),
    "union": ("class_il_union", {}, {"task_classes": ((0, 4, 2), (3, 5))}),
    "terms": ("time_il", {}, {}),
    "leads": ("domain_il", {"tasks": 2}, {}),
    "sites": ("domain_il", {"tasks": 2}, {"domain": "site"}),
    "sites, one label": ("class_il", {"tasks": 2}, {"scenario": "domain_il", "domain": "site"}),
}


WITHIN_A_TASK = ("auc", "accuracy", "balanced_accuracy", "f1")

OTHERS = [("er_ace", "union"), ("derpp", "union"), ("gdumb", "groups"), ("er", "sites"), ("agem", "terms")]
"""Scenarios in which strategies outside the paper are tested."""


def run_of(variant: str, **settings: Any) -> tuple[ContinualRun, RunResult]:
    kind, of_frames, of_config = VARIANTS[variant]
    config = tiny_config(**({"scenario": kind, "epochs_per_task": 1} | of_config | settings))
    run = ContinualRun(config, tiny_frames(kind, **of_frames), keep_predictions=True)
    return run, run.run()


def by_scikit_learn(kind: str, targets: np.ndarray[Any, Any], p: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return the measures of probabilities on one task, from their definitions in scikit-learn."""
    varying = np.flatnonzero(np.ptp(targets, axis=0))
    if kind != "softmax" and not len(varying):
        return dict(zip(WITHIN_A_TASK, (np.nan, accuracy_score(targets > 0.5, p > 0.5), np.nan, np.nan), strict=True))
    auc = np.mean([roc_auc_score(targets[:, c], p[:, c]) for c in varying]) if len(varying) else np.nan
    if kind == "softmax":
        truth, said = targets.argmax(1), p.argmax(1)
        f1 = f1_score(truth, said, labels=np.unique(truth), average="macro", zero_division=0)
        values = (accuracy_score(truth, said), balanced(truth, said), f1)
    elif kind == "binary":
        truth, said = targets[:, 0], p[:, 0] > 0.5
        f1 = f1_score(truth, said, average="macro", zero_division=0)
        values = (accuracy_score(truth, said), balanced(truth, said), f1)
    else:
        truth, said = targets, p > 0.5
        values = (
            accuracy_score(truth, said),
            np.mean([balanced(truth[:, c], said[:, c]) for c in varying]),
            f1_score(truth[:, varying], said[:, varying], average="macro", zero_division=0),
        )
    return dict(zip(WITHIN_A_TASK, (float(auc), *map(float, values)), strict=True))


def auc_seen(rows: pd.DataFrame, own: Sequence[int]) -> float:
    """Return the mean AUC of a task's classes, each against all others, among predictions for the tasks seen."""
    return float(np.mean([roc_auc_score(rows[f"target_{c}"], rows[f"probability_{c}"].astype(float)) for c in own]))


def balanced(truth: np.ndarray[Any, Any], said: np.ndarray[Any, Any]) -> float:
    """Return `balanced_accuracy_score`, or recall if a predicted class does not occur, of which scikit-learn warns."""
    if set(said) <= set(truth):
        return float(balanced_accuracy_score(truth, said))
    return float(np.mean([(said[truth == c] == c).mean() for c in np.unique(truth)]))


CASES = [(name, variant) for name in STRATEGIES for variant in VARIANTS if name in PAPERS or (name, variant) in OTHERS]


@pytest.mark.parametrize(
    ("strategy", "variant"),
    mostly_at_night(CASES, lambda case: case[0] in ("clops", "gem") or case in OTHERS or case[1] == "pairs"),
)
def test_predictions_give_every_measure_of_r(strategy: str, variant: str) -> None:
    run, result = run_of(variant, strategy=strategy)
    scenario, kept = run.scenario, result.predictions
    tests = [task.test for task in scenario.tasks]
    joint = STRATEGIES[strategy].joint
    r = result.r_matrix[result.r_matrix["split"] == "test"].set_index(["trained_on", "evaluated_on"])
    assert len(kept) == sum(len(test.rows) for test in tests) * (1 if joint else len(tests))
    for (trained_on, evaluated_on), rows in kept.groupby(["trained_on", "evaluated_on"]):
        test = tests[evaluated_on - 1]
        assert rows["instance"].tolist() == test.rows.tolist()
        assert np.array_equal(rows.filter(regex="^target_"), test.targets)
        kind, targets, p = scenario.kind, test.targets, rows.filter(regex="^probability_").to_numpy(np.float64)
        if joint and scenario.by_position:  # among each task's own classes
            size = scenario.outputs // len(tests)
            own = slice(size * (evaluated_on - 1), size * evaluated_on)
            targets, p = targets[:, own], p[:, own] / p[:, own].sum(1, keepdims=True)
        expected = by_scikit_learn(kind, targets, p)
        found = r.loc[(trained_on, evaluated_on)]
        assert found[list(WITHIN_A_TASK)].to_dict() == pytest.approx(expected, abs=1e-9)
        if variant == "union" and evaluated_on <= trained_on:
            seen = kept[(kept["trained_on"] == trained_on) & (kept["evaluated_on"] <= trained_on)]
            assert found["auc_seen"] == pytest.approx(
                auc_seen(seen, scenario.tasks[evaluated_on - 1].outputs), abs=1e-9
            )
        else:
            assert np.isnan(found["auc_seen"])
    if joint:
        expected = by_scikit_learn(
            scenario.kind,
            kept.filter(regex="^target_").to_numpy(),
            kept.filter(regex="^probability_").to_numpy(np.float64),
        )
        assert result.runs[[f"test_{it}" for it in WITHIN_A_TASK]].iloc[0].tolist() == pytest.approx(
            [*expected.values()]
        )
        assert result.runs["test_auc_seen"].item() == pytest.approx(
            expected["auc"] if variant == "union" else np.nan, nan_ok=True
        )
        assert result.runs[[f"test_{m}_bwt" for m in MEASURES[1:]]].isna().all(axis=None)
        return
    for measure in MEASURES:
        matrix = r[measure].to_numpy().reshape(len(tests), -1)
        chance = metrics.chance_of(measure, scenario.kind, scenario.outputs)
        for name, value in metrics.all_metrics(matrix, measure, chance).items():
            assert result.runs[f"test_{name}"].item() == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
def test_hits_of_random_scores(kind: Any) -> None:
    generator = np.random.default_rng(3)
    firsts = [[1, 1, 1], [1] + [0] * 6, [0] + [1] * 39, generator.integers(0, 2, 200)]  # of all, of one, of all but one
    targets, logits = [], []
    for first in firsts:
        classes, size = {"binary": 1, "softmax": 5, "multilabel": 4}[kind], len(first)
        hot, z = generator.integers(0, 2, (size, classes)), generator.standard_normal((size, classes))
        hot[:, 0] = first
        if kind == "softmax":  # the fifth class never occurs, but may be predicted
            hot = np.eye(5)[np.where(first, 0, generator.integers(1, 4, size))]
        else:
            z[::3, 0] = 0  # a probability of 1/2
        targets.append(hot.astype(np.float32))
        logits.append(z.astype(np.float32))
    hits = TaskHits(kind, targets, torch.device("cpu"))
    scores = hits.scores(hits.counts(torch.from_numpy(np.concatenate(logits))).double().numpy())
    for task, (hot, z) in enumerate(zip(targets, logits, strict=True)):
        p = 1 / (1 + np.exp(-z.astype(np.float64)))  # also in the order of the softmax
        expected = list(by_scikit_learn(kind, hot, p).values())[1:]
        assert [score[task] for score in scores] == pytest.approx(expected, abs=1e-12, nan_ok=True)


# --- the contract suite -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in SCENARIOS.added])
def test_every_built_in_scenario_passes_the_contract(name: str) -> None:
    check_scenario(SCENARIOS[name], tiny_frames(name, tasks=2))


def by_site(frames: FrameSet) -> ScenarioTasks:
    codes, names = frames.domains["site"]
    targets = np.eye(len(frames.classes))[frames.labels]
    return ScenarioTasks("softmax", [TaskInstances(name, codes == code, targets) for code, name in enumerate(names)])


def by_place(frames: FrameSet) -> ScenarioTasks:
    halves = np.arange(len(frames)) % 2
    whole = by_site(frames)
    return ScenarioTasks("softmax", [TaskInstances(n, halves == h, whole.tasks[0].targets) for h, n in enumerate("AB")])


def drawing(frames: FrameSet) -> ScenarioTasks:
    np.random.default_rng()
    np.random.rand()  # noqa: NPY002
    return by_site(frames)


def test_ones_own_scenario_passes_it_and_what_is_wrong_with_others_is_said() -> None:
    frames = tiny_frames("class_il", tasks=2)
    check_scenario(by_site, frames)
    for function, sentence in (
        (by_place, "task 'A' depends on the order of the instances"),
        (drawing, "the scenario draws from a global generator"),
        (lambda frames: None, "the function returns NoneType"),
    ):
        with pytest.raises(ContractViolation, match=sentence):
            check_scenario(function, frames)


def test_the_example_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text("utf-8")
    names: dict[str, Any] = {}
    try:
        exec(text.split("```python\n")[1].split("```")[0], names)
        assert len(list(names["SPACE"].requests())) == 10
        check_scenario(names["by_site"], tiny_frames("class_il", tasks=2))
    finally:
        SCENARIOS.forget("by_site")
