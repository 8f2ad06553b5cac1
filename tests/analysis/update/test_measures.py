"""Flips, calibration, sensitivity and drift against scikit-learn, scipy and loops; intervals over patients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm, t
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, recall_score, roc_curve

from clops_sweep import UsageError
from clops_sweep.analysis.update.earlier import earlier_tasks
from clops_sweep.analysis.update.last_task import TaskFacts
from clops_sweep.analysis.update.measures import FIXED, Measures, reliability
from clops_sweep.analysis.update.page import shares_of
from clops_sweep.analysis.update.paired import Paired, last_models, last_update
from tests.analysis.predictions import with_logits

PEOPLE, OF_EACH = 12, 5
NAMES = ("AF", "N", "O")


def stage(seed: int, kind: str = "softmax", trained_on: int = 1, tasks: int = 1) -> pd.DataFrame:
    """What a model predicts: three classes with a softmax, one sigmoid for two, or three labels with sigmoids."""
    rng, rows = np.random.default_rng(seed), []
    for place in range(tasks * PEOPLE * OF_EACH):
        person, truth = place % PEOPLE, place % 3
        row = {"run_id": "a", "trained_on": trained_on, "evaluated_on": place % tasks + 1, "instance": place}
        row |= {"task": f"t{place % tasks}", "patient": f"p{person}"}
        if kind == "binary":
            label = place % 2
            row |= {"label": NAMES[label], "target_0": label, "probability_0": rng.beta(1 + label, 2 - label)}
        else:
            target = np.eye(3, dtype=int)[truth] if kind == "softmax" else np.array([truth == 0, place % 5 > 1, True])
            given = rng.dirichlet(1 + 2 * np.eye(3)[truth]) if kind == "softmax" else rng.beta(1 + target, 2 - target)
            row["label"] = "+".join(name for name, there in zip(NAMES, target, strict=True) if there)
            row |= {f"target_{k}": int(target[k]) for k in range(3)} | {f"probability_{k}": given[k] for k in range(3)}
        rows.append(row)
    return with_logits(pd.DataFrame(rows), exclusive=kind == "softmax")


def columns(table: pd.DataFrame, prefix: str) -> np.ndarray[Any, Any]:
    return table[[name for name in table if name.startswith(prefix)]].to_numpy()


def test_flips_are_those_of_a_count() -> None:
    before, after = stage(1), stage(2)
    truth = columns(before, "target_").argmax(1)
    said = [columns(it, "probability_").argmax(1) for it in (before, after)]
    everything, *others = Measures(last_models(before, after)).slices()
    assert everything.accuracy.before.value == pytest.approx(accuracy_score(truth, said[0]))
    assert everything.accuracy.after.value == pytest.approx(accuracy_score(truth, said[1]))
    for it in (everything, *others):
        rows = [n for n in range(len(truth)) if it.name in ("all", NAMES[truth[n]])]
        wrong = sum(said[0][n] == truth[n] and said[1][n] != truth[n] for n in rows)
        right = sum(said[0][n] != truth[n] and said[1][n] == truth[n] for n in rows)
        assert (it.instances, it.units) == (len(rows), len({n % PEOPLE for n in rows}))
        assert (it.right_to_wrong.value, it.wrong_to_right.value) == pytest.approx(
            (wrong / len(rows), right / len(rows))
        )
    assert [it.name for it in others] == list(NAMES)


def test_a_page_shows_a_calibration_error_as_a_share() -> None:
    """Labels are drawn with the predicted probabilities, so the estimate is below 0 in about half of the tables."""
    changes = []
    for seed in range(6):
        table = stage(seed, "binary")
        table["target_0"] = np.random.default_rng(seed).random(len(table)) < table["probability_0"]
        changes.append(Measures(last_models(table, table)).calibration_error())
    assert min(it.after.value for it in changes) < 0
    assert min(it.after.low for it in changes) < 0
    shown = [cell.text for it in changes for cell in shares_of(it, 100)]
    assert not [text for text in shown if "-" in text]


def test_before_after_and_difference_of_a_calibration_error_agree() -> None:
    """Labels are drawn with the probabilities of the second model: its estimate is below 0 for some seeds."""
    cut_off = 0
    for seed in range(6):
        before, after = stage(seed + 20, "binary"), stage(seed, "binary")
        labels = np.random.default_rng(seed).random(len(after)) < after["probability_0"]
        before["target_0"] = after["target_0"] = labels
        measures = Measures(last_models(before, after))
        signed = measures.calibration_error()
        for change in (measures.beyond_chance(), measures.plain_calibration_error()):
            assert change.difference.value == pytest.approx(change.after.value - change.before.value, abs=1e-12)
            assert min(change.before.value, change.after.value) >= 0
        beyond = measures.beyond_chance()
        assert beyond.after.value == max(0, signed.after.value)
        assert beyond.difference.low <= beyond.difference.value <= beyond.difference.high
        assert beyond.difference.low >= -beyond.before.high - 1e-9
        cut_off += signed.after.value < 0
        plain = expected_calibration_error(after)
        assert measures.plain_calibration_error().after.value == pytest.approx(plain)
    assert cut_off


def expected_calibration_error(table: pd.DataFrame) -> float:
    """Expected calibration error of one sigmoid by loops over decisions and bins."""
    sums: dict[int, float] = {}
    for truth, probability in zip(table["target_0"], table["probability_0"], strict=True):
        confidence = max(probability, 1 - probability)
        right = (probability > 0.5) == bool(truth)
        number = min(14, int(confidence * 15))
        sums[number] = sums.get(number, 0.0) + right - confidence
    return sum(abs(total) for total in sums.values()) / len(table)


@pytest.mark.parametrize("kind", ["softmax", "binary", "several"])
def test_calibration_is_that_of_scikit_learn(kind: str) -> None:
    before, after = stage(1, kind), stage(2, kind)
    paired = last_models(before, after)
    measures = Measures(paired)
    targets, given = columns(after, "target_"), columns(after, "probability_")
    if kind == "softmax":
        confidence, right = given.max(1), given.argmax(1) == targets.argmax(1)
        brier = np.mean([sum((p - t) ** 2) for p, t in zip(given, targets, strict=True)])
    else:
        confidence, right = np.maximum(given, 1 - given).ravel(), ((given > 0.5) == targets).ravel()
        brier = np.mean([brier_score_loss(t, p, labels=[0, 1]) for t, p in zip(targets.T, given.T, strict=True)])
    assert measures.brier().after.value == pytest.approx(brier)
    decisions, right = right - confidence, right.astype(float)
    curve = reliability(paired.after)
    shares, means = calibration_curve(right, confidence, n_bins=15)
    np.testing.assert_allclose([(it.accuracy, it.confidence) for it in curve], np.column_stack([shares, means]))
    expected, people = 0.0, np.repeat(after["patient"].to_numpy(), len(confidence) // len(after))
    for place in range(15):
        there = (confidence * 15).astype(int) == place
        for person in set(people):
            own = there & (people == person)
            expected += np.sign(decisions[there & ~own].sum()) * decisions[own].sum() / len(confidence)
    assert measures.calibration_error().after.value == pytest.approx(expected)
    counts = np.histogram(confidence, 15, (0, 1))[0]
    plain = np.abs(shares - means) @ counts[counts > 0] / len(confidence)
    assert measures.plain_calibration_error().after.value == pytest.approx(plain)


@pytest.mark.parametrize("kind", ["softmax", "binary", "several"])
def test_sensitivity_and_specificity_are_those_of_scikit_learn(kind: str) -> None:
    before, after = stage(1, kind), stage(2, kind)
    targets, given = columns(after, "target_"), columns(after, "probability_")
    if kind == "binary":
        targets, given = np.hstack([1 - targets, targets]), np.hstack([1 - given, given])
    said = given == given.max(1, keepdims=True) if kind == "softmax" else given > 0.5
    found = list(Measures(last_models(before, after)).classes())
    assert [it.name for it in found] == list({"softmax": NAMES, "binary": NAMES[:2], "several": NAMES[:2]}[kind])
    for place, it in enumerate(found):
        truth = targets[:, place]
        assert it.sensitivity.after.value == pytest.approx(recall_score(truth, said[:, place]))
        assert it.specificity.after.value == pytest.approx(recall_score(1 - truth, ~said[:, place]))
        false, true, _ = roc_curve(truth, given[:, place], drop_intermediate=False)
        assert it.sensitivity_at_specificity.after.value == pytest.approx(true[false <= 1 - FIXED + 1e-9].max())
        assert it.specificity_at_sensitivity.after.value == pytest.approx(1 - false[true >= FIXED - 1e-9].min())


@pytest.mark.parametrize("names", [("ST", "T+", "ST+T+"), ("A", "B", "A+B"), ("A+", "+B", "C")])
def test_a_plus_in_the_name_of_a_class_joins_no_labels(names: tuple[str, str, str]) -> None:
    before, after = stage(1, "labels"), stage(2, "labels")
    targets = columns(before, "target_")
    labels = []
    for has in targets:
        labels.append("+".join(name for name, is_there in zip(names, has, strict=True) if is_there))
    paired = last_models(before.assign(label=labels), after.assign(label=labels))
    assert {name: has.tolist() for name, has in paired.classes.items()} == {
        name: (targets[:, output] == 1).tolist() for output, name in enumerate(names)
    }
    of_classes = {one.name: one.sensitivity for one in Measures(paired).classes()}
    for output, name in enumerate(names):
        truth = targets[:, output]
        if truth.all():
            continue
        for table, found in ((before, of_classes[name].before), (after, of_classes[name].after)):
            said = columns(table, "probability_")[:, output] > 0.5
            assert found.value == pytest.approx(recall_score(truth, said))


def test_an_equal_change_for_all_patients_has_no_interval() -> None:
    """Every patient has one more right decision of eight; sums of eighths differ in their last bits."""
    truth = np.arange(24) // 12
    patient, own = np.arange(24) % 3, np.arange(24) // 3
    rights = [own < 1 + 2 * patient + more for more in (0, 1)]
    tables = []
    for right in rights:
        rows = {"run_id": "a", "trained_on": 1, "evaluated_on": 1, "instance": np.arange(24), "task": "t"}
        rows |= {"patient": patient.astype(str), "label": np.array(["N", "AF"])[truth]}
        rows |= {"target_0": truth, "probability_0": np.where(right, truth * 0.8 + 0.1, 0.9 - truth * 0.8)}
        tables.append(with_logits(pd.DataFrame(rows), exclusive=False))
    accuracy = next(Measures(last_models(*tables)).slices()).accuracy
    assert accuracy.before.low < accuracy.before.high
    assert accuracy.difference.value == 0.125
    assert np.isnan(accuracy.difference.low)


def test_drift_is_that_of_scipy() -> None:
    before, after = stage(1), stage(2)
    measures = Measures(last_models(before, after))
    counts = [
        [np.histogram(column, 10, (0, 1))[0] for column in columns(it, "probability_").T] for it in (before, after)
    ]
    expected = np.mean([jensenshannon(*pair, base=2) for pair in zip(*counts, strict=True)])
    assert measures.drift().value == pytest.approx(expected)
    changed = np.mean(columns(before, "probability_").argmax(1) != columns(after, "probability_").argmax(1))
    assert measures.changed_decisions().value == pytest.approx(changed)
    assert Measures(last_models(before, before)).drift().value == 0


def test_an_interval_is_that_of_drawing_patients() -> None:
    before, after = stage(1), stage(2)
    found = next(Measures(last_models(before, after)).slices()).right_to_wrong
    truth = columns(before, "target_").argmax(1)
    right = [columns(it, "probability_").argmax(1) == truth for it in (before, after)]
    by_person = (right[0] & ~right[1]).reshape(OF_EACH, PEOPLE).mean(0)
    rng = np.random.default_rng(7)
    drawn = [by_person[rng.integers(0, PEOPLE, PEOPLE)].mean() for _ in range(2000)]
    width = found.high - found.low
    tail = norm.cdf(t.ppf(0.025, PEOPLE - 1) * np.sqrt(PEOPLE / (PEOPLE - 1)))
    np.testing.assert_allclose((found.low, found.high), np.quantile(drawn, (tail, 1 - tail)), atol=width / 8)


def old_and_new(predictions: pd.DataFrame) -> tuple[Paired, Paired]:
    update = last_update(predictions)
    return update.rows.take(update.old).once(), update.rows.take(update.new).once()


def test_the_last_update_is_judged_on_earlier_tasks_and_an_instance_counts_once() -> None:
    stages = [stage(seed, tasks=3).assign(trained_on=seed) for seed in (1, 2, 3)]
    old, new = old_and_new(pd.concat(stages))
    assert (len(old), len(new)) == (2 * PEOPLE * OF_EACH, PEOPLE * OF_EACH)
    assert set(old.tasks) == {"t0", "t1"}
    of_nobody = [
        it[it["task"] == "t0"].assign(evaluated_on=0, task="none", instance=it["instance"] + 999) for it in stages
    ]
    with_others = old_and_new(pd.concat([*stages, *of_nobody]))
    assert [set(it.tasks) for it in with_others] == [set(old.tasks), set(new.tasks)]
    one = [stage(seed).assign(trained_on=seed) for seed in (1, 2)]
    everywhere = [it.assign(evaluated_on=task, task=f"t{task}") for it in one for task in (1, 2)]
    old, new = old_and_new(pd.concat(everywhere))  # the same people are tested after every task
    assert (len(old), len(new)) == (PEOPLE * OF_EACH, 0)


def test_what_cannot_be_compared_is_refused() -> None:
    one = stage(1)
    with pytest.raises(UsageError, match="not tested on the same instances"):
        last_models(one, one[one["instance"] > 3])
    swapped = one.rename(columns={"target_0": "target_1", "target_1": "target_0"})
    with pytest.raises(UsageError, match="different order of labels"):
        last_models(one, swapped)
    with pytest.raises(UsageError, match="all tasks at once"):
        last_update(one)
    with pytest.raises(UsageError, match="--keep predictions"):
        last_update(one[:0])


def test_the_last_task_has_the_interval_of_its_criteria_if_it_is_compared() -> None:
    """People of both tasks are other people, so draws of all people are not draws of those of the last task."""
    tables = [stage(seed, tasks=2) for seed in (3, 4)]
    for table in tables:
        table["patient"] = table["task"] + table["patient"]
    compared = last_models(*tables)
    last = compared.take(compared.tasks == "t1")
    facts = TaskFacts("domain_il", "domains", "ward", False, False, {}, None, None, {}, {}, False)
    first, second = earlier_tasks(Measures(compared), Measures(compared), ["t0", "t1"], facts, last)
    alone = next(Measures(last).slices()).accuracy
    assert second.accuracy == alone
    assert second.accuracy != Measures(compared).accuracy(compared.tasks == "t1"), "the test can fail"
    assert first.accuracy == Measures(compared).accuracy(compared.tasks == "t0")
    apart = compared.take(compared.tasks == "t0")
    (only,) = earlier_tasks(Measures(apart), Measures(apart), ["t0", "t1"], facts, last)
    assert only.accuracy == next(Measures(apart).slices()).accuracy
