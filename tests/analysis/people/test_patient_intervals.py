"""Intervals over patients against scikit-learn on resampled rows, and the numbers of `runs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import norm, t
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from clops_sweep import RunConfig, UsageError, read
from clops_sweep.analysis.people.patient_intervals import PATIENT_METRICS, patient_bootstrap, scores
from clops_sweep.analysis.people.predicted import Predicted
from clops_sweep.store.run_store import RunStore
from tests.analysis.predictions import with_logits
from tests.helpers.stores import write_finished

PEOPLE, OF_EACH = 30, 4


def predicted(seed: int, skill: float = 1.0, tasks: int = 3, run_id: str = "a") -> pd.DataFrame:
    """A binary run: people have a label and an effect of their own on scores, each with four instances in each task."""
    rng = np.random.default_rng(seed)
    rows = []
    for trained_on in range(1, tasks + 1):
        for evaluated_on in range(1, tasks + 1):
            for person in range(PEOPLE):
                label = person % 2
                own = rng.normal(0, 1)
                for frame in range(OF_EACH):
                    logit = (2 * label - 1) * skill / (1 + abs(trained_on - evaluated_on)) + own + rng.normal(0, 0.3)
                    rows.append(
                        {
                            "run_id": run_id,
                            "trained_on": trained_on,
                            "evaluated_on": evaluated_on,
                            "task": f"task {evaluated_on}",
                            "instance": (evaluated_on * PEOPLE + person) * OF_EACH + frame,
                            "patient": f"p{person}",
                            "label": "ab"[label],
                            "target_0": label,
                            "probability_0": 1 / (1 + np.exp(-logit)),
                        }
                    )
    return with_logits(pd.DataFrame(rows), exclusive=False)


def directly(predictions: pd.DataFrame, resamples: int, seed: int) -> np.ndarray[Any, Any]:
    """AUC, accuracy, BWT of AUC and forgetting of AUC of the patients who are drawn, [resamples, 4]."""
    rng, found = np.random.default_rng(seed), []
    tasks, cells = predictions["evaluated_on"].max(), {}
    for (i, j), rows in predictions.groupby(["trained_on", "evaluated_on"]):  # each [people, instances]
        by_patient = rows.sort_values(["patient", "instance"])
        cells[i, j] = [by_patient[it].to_numpy().reshape(PEOPLE, -1) for it in ("target_0", "probability_0")]
    for _ in range(resamples):
        drawn = rng.integers(0, PEOPLE, PEOPLE)
        auc, accuracy = np.zeros((tasks, tasks)), np.zeros((tasks, tasks))
        for (i, j), (target, probability) in cells.items():
            target, probability = target[drawn].ravel(), probability[drawn].ravel()
            auc[i - 1, j - 1] = np.mean(probability[target == 1][:, None] > probability[target == 0])
            accuracy[i - 1, j - 1] = np.mean((probability > 0.5) == target)
        bwt = np.mean([auc[-1, j] - auc[j, j] for j in range(tasks - 1)])
        forgotten = np.mean([auc[:-1, j].max() - auc[-1, j] for j in range(tasks - 1)])
        found.append((auc[-1].mean(), accuracy[-1].mean(), bwt, forgotten))
    return np.array(found)


def levels(people: int) -> tuple[float, float]:
    """Levels of the ends: those of Student's t, widened as a variance over n people is too small by (n - 1) / n."""
    tail = norm.cdf(t.ppf(0.025, people - 1) * np.sqrt(people / (people - 1)))
    return tail, 1 - tail


DIRECT = ("test_auc", "test_accuracy", "test_bwt", "test_forgetting")


def test_intervals_are_those_of_a_direct_bootstrap() -> None:
    one = predicted(1, tasks=2)
    found = patient_bootstrap(one)
    low, high = np.quantile(directly(one, 1000, seed=5), levels(PEOPLE), axis=0)
    for place, name in enumerate(DIRECT):
        width = found[name].high - found[name].low
        assert found[name].low == pytest.approx(low[place], abs=width / 10)
        assert found[name].high == pytest.approx(high[place], abs=width / 10)
        assert found[name].low < found[name].value < found[name].high
    assert {it.people for it in found.values()} == {PEOPLE}


def test_patients_and_not_instances_are_resampled() -> None:
    """Copies of every instance say nothing new of the people."""
    once = predicted(2, tasks=2)
    copies = pd.concat([once.assign(instance=once["instance"] + 10_000 * copy) for copy in range(4)])
    assert patient_bootstrap(copies)["test_auc"] == patient_bootstrap(once)["test_auc"]


def test_a_difference_is_paired_by_patient() -> None:
    one, other = predicted(3, skill=1.5, tasks=2), predicted(4, tasks=2, run_id="b")
    other["probability_0"] = one["probability_0"] * 0.9 + 0.1 * other["probability_0"]
    other = with_logits(other, exclusive=False)
    paired, alone = patient_bootstrap(one, other)["test_auc"], patient_bootstrap(one)["test_auc"]
    assert paired.value == pytest.approx(alone.value - patient_bootstrap(other)["test_auc"].value)
    assert paired.high - paired.low < (alone.high - alone.low) / 2
    same = patient_bootstrap(one, one)
    assert all(it.value == 0 and np.isnan(it.low) and "resamples are equal" in it.obstacle for it in same.values())


def test_runs_on_other_people_or_classes_are_not_subtracted() -> None:
    """The instances of any two data sets are numbered from 0, and people often are."""
    one = predicted(3, tasks=2)
    other = predicted(4, tasks=2, run_id="b")
    reversed_labels = other.assign(label=other["label"].map({"a": "b", "b": "a"}), target_0=1 - other["target_0"])
    for changed in (reversed_labels, other.assign(patient="q" + other["patient"])):
        with pytest.raises(UsageError, match="not tested on the same instances, with the same people and classes"):
            patient_bootstrap(one, changed)
    other_outputs = other.assign(target_0=1 - other["target_0"])
    assert np.isfinite(patient_bootstrap(one, other_outputs)["test_auc"].low), "outputs differ between scenarios"


@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
def test_weighted_scores_are_those_of_scikit_learn(kind: str) -> None:
    rng = np.random.default_rng(7)
    n, outputs = 60, {"binary": 1, "softmax": 4, "multilabel": 3}[kind]
    p = np.round(rng.uniform(size=(n, outputs)), 1 if kind != "softmax" else 8)  # with ties
    truth = rng.uniform(size=(n, outputs)) < 0.5
    if kind == "softmax":
        p /= p.sum(1, keepdims=True)
        truth = np.eye(outputs, dtype=bool)[rng.integers(0, 3, n)]  # the last class does not occur
    weights = rng.integers(1, 4, size=(2, n)).astype(float)
    logits = np.log(p) if kind == "softmax" else p - 0.5
    columns: dict[str, Any] = {"exclusive": kind == "softmax"}
    for c in range(outputs):
        columns |= {f"target_{c}": truth[:, c], f"probability_{c}": p[:, c], f"logit_{c}": logits[:, c]}
    rows = pd.DataFrame(columns, index=range(n))
    varying = range(3) if kind == "softmax" else range(outputs)
    for row, found in zip(weights, scores(Predicted.of(rows), weights).T, strict=True):
        auc = np.mean([roc_auc_score(truth[:, c], p[:, c], sample_weight=row) for c in varying])
        if kind == "softmax":
            said = np.where(p.argmax(1) == 3, 3, p.argmax(1))
            accuracy = accuracy_score(truth.argmax(1), said, sample_weight=row)
            balanced = np.mean([np.average(said[truth[:, c]] == c, weights=row[truth[:, c]]) for c in range(3)])
        else:
            said = p > 0.5
            accuracy = np.average((said == truth).all(1), weights=row)
            balanced = np.mean([balanced_accuracy_score(truth[:, c], said[:, c], sample_weight=row) for c in varying])
        assert found == pytest.approx((auc, accuracy, balanced))


def exclusive(person_right: list[bool], classes: list[int], tasks: list[int]) -> pd.DataFrame:
    """A run with one stage: person i has three instances of one class in one task, all right or all wrong."""
    rows, count = [], max(classes) + 1
    for person, (right, of_class, task) in enumerate(zip(person_right, classes, tasks, strict=True)):
        said = of_class if right else (of_class + 1) % count
        for frame in range(3):
            row = {"run_id": "a", "evaluated_on": task, "task": f"task {task}", "instance": 3 * person + frame}
            row |= {"patient": f"p{person}", "label": f"class {of_class}", "exclusive": True}
            for name, chosen in (("target", of_class), ("logit", said), ("probability", said)):
                row |= {f"{name}_{c}": float(c == chosen) for c in range(count)}
            rows += [row | {"trained_on": stage} for stage in range(1, max(tasks) + 1)]
    return pd.DataFrame(rows)


def test_people_are_drawn_from_all_people() -> None:
    """Twelve people of whom six are right: a number of people is drawn, even if each has a class or a task alone."""
    right = [n % 2 == 0 for n in range(12)]
    drawn = np.random.default_rng(3).binomial(12, 0.5, size=20_000) / 12
    low, high = np.quantile(drawn, levels(12))
    for classes, tasks in ((range(12), [1] * 12), ([n // 6 for n in range(12)], range(1, 13))):
        found = patient_bootstrap(exclusive(right, list(classes), list(tasks)))["test_accuracy"]
        assert (found.value, found.people) == (0.5, 12)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1 / 12)
        other = exclusive([not it for it in right], list(classes), list(tasks))
        less = patient_bootstrap(exclusive(right, list(classes), list(tasks)), other)["test_accuracy"]
        assert (less.low, less.high) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1 / 6), "paired"


def test_no_interval_from_two_people_of_a_class() -> None:
    one = predicted(6, tasks=2)
    few = one[~one["patient"].isin({f"p{person}" for person in range(1, PEOPLE, 2)} - {"p1", "p3"})]
    found = patient_bootstrap(few)
    assert found["test_auc"].obstacle == "2 test patients with b in task task 1 where 3 are needed"
    assert np.isnan(found["test_auc"].low)
    assert not np.isnan(found["test_auc"].value)
    assert found["test_accuracy"].low < found["test_accuracy"].value, "accuracy needs no class"


def test_a_table_of_the_runs_of_a_store(tmp_path: Path, finished_tables: Callable[..., dict[str, pa.Table]]) -> None:
    store = RunStore(tmp_path, keep=["predictions"])
    for number, run_id in enumerate(("a" * 24, "b" * 24)):
        config = RunConfig(seed=number)
        rows = predicted(9 + number, tasks=2, run_id=run_id)
        tables = finished_tables(run_id, config)
        tables["predictions"] = pa.Table.from_pandas(rows, preserve_index=False)
        write_finished(store, run_id, tables)
    table = read(tmp_path, "intervals")
    assert table["run_id"].unique().tolist() == ["a" * 24, "b" * 24]
    assert table.groupby("run_id").size().tolist() == [len(PATIENT_METRICS)] * 2
    assert (table["low"] <= table["high"]).all()
    some = read(tmp_path, "intervals", "b" * 24, ["metric", "value"])
    assert some.columns.tolist() == ["metric", "value"]
    assert len(some) == len(PATIENT_METRICS)
    with pytest.raises(UsageError, match="'intervals' has no column 'values'"):
        read(tmp_path, "intervals", columns="values")
