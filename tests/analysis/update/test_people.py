"""People whose decisions change, confusion matrices, and bands of numbers."""

from __future__ import annotations

import hmac
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep.analysis.people.predicted import Predicted
from clops_sweep.analysis.update.bands import banded
from clops_sweep.analysis.update.measures import Measures
from clops_sweep.analysis.update.paired import Paired
from clops_sweep.analysis.update.people import (
    BECAME,
    changed_people,
    confusion,
    decisions,
    outputs_of,
    tracings_of,
)
from clops_sweep.data.prepared.pseudonyms import SECRET, Pseudonyms, kept_pseudonyms, pseudonyms
from clops_sweep.errors import UsageError

LABELS = ["a", "a", "b", "b", "b"]


def predicted(said: list[int]) -> Predicted:
    targets = np.array([[label == "a", label == "b"] for label in LABELS])
    decided = np.eye(2, dtype=bool)[said]
    return Predicted(targets, decided.astype(float), decided.astype(float), decided, exclusive=True)


def paired() -> Paired:
    before, after = predicted([0, 0, 0, 1, 1]), predicted([1, 0, 1, 1, 0])
    names = np.array(["p1", "p1", "p2", "p2", "p3"], object)
    labels, tasks = np.array(LABELS, object), np.array(["t"] * 5, object)
    return Paired(np.arange(5), tasks, labels, "patient", names, before.targets, before, after)


def test_people_with_flips_come_under_pseudonyms_and_those_who_lose_come_first() -> None:
    pair = paired()
    before, after = decisions(pair, pair.before), decisions(pair, pair.after)
    names = Pseudonyms("clinic", bytes(32), is_kept=True)
    people = changed_people(pair, before, after, names)
    assert {person.pseudonym for person in people} == {
        hmac.new(bytes(32), f"clinic\n{name}".encode(), "sha256").hexdigest()[:8] for name in ("p1", "p2", "p3")
    }
    assert [(person.count("wrong"), person.count("right")) for person in people] == [(1, 0), (1, 0), (0, 1)]
    (flip,) = people[-1].flips
    assert (flip.instance, flip.label, flip.before, flip.after, flip.became) == (2, "b", "a", "b", "right")
    assert tracings_of(people, None) == ()


def test_a_person_whose_decision_stays_wrong_but_changes_is_listed() -> None:
    targets = np.array([[True, False, False], [False, True, False], [False, True, False], [False, False, True]])

    def model(said: list[int]) -> Predicted:
        decided = np.eye(3, dtype=bool)[said]
        return Predicted(targets, decided.astype(float), decided.astype(float), decided, exclusive=True)

    labels, tasks = np.array(["a", "b", "b", "c"], object), np.array(["t"] * 4, object)
    names = np.array(["p1", "p1", "p1", "p2"], object)
    before, after = model([1, 0, 2, 1]), model([2, 1, 2, 0])
    pair = Paired(np.arange(4), tasks, labels, "patient", names, targets, before, after)
    secret = Pseudonyms("clinic", bytes(32), is_kept=True)
    people = changed_people(pair, decisions(pair, before), decisions(pair, after), secret)
    assert [person.pseudonym for person in people] == [secret.of("p1"), secret.of("p2")]
    assert [people[0].count(became) for became in BECAME] == [0, 1, 1]
    assert [people[1].count(became) for became in BECAME] == [0, 0, 1]
    assert [flip.became for flip in people[0].flips] == ["right", "wrong, otherwise"]
    (flip,) = people[1].flips
    assert (flip.instance, flip.label, flip.before, flip.after) == (3, "c", "b", "a")


def test_classes_are_in_the_order_of_the_outputs() -> None:
    """`probability_0` is of sinus rhythm if it comes first in `classes`, so a report lists it first, too."""
    labels = np.array(["sinus rhythm", "AF", "AF", "noise"], object)
    people, tasks = np.array(list("pqrs"), object), np.array(["t"] * 4, object)

    def of(targets: np.ndarray[Any, Any]) -> Paired:
        model = Predicted(targets, targets.astype(float), targets.astype(float), targets, exclusive=True)
        rows = slice(0, len(targets))
        return Paired(np.arange(4)[rows], tasks[rows], labels[rows], "patient", people[rows], targets, model, model)

    softmax = of(np.eye(3, dtype=bool)[[0, 2, 2, 1]])
    assert list(softmax.classes) == ["sinus rhythm", "noise", "AF"]
    matrix = confusion(softmax, decisions(softmax, softmax.before))
    assert [list(matrix), list(matrix["AF"])] == [list(softmax.classes)] * 2
    assert [row.name for row in Measures(softmax).classes()] == list(softmax.classes)
    assert list(of(np.array([[False], [True], [True]])).classes) == ["sinus rhythm", "AF"], "one output: absence first"
    by_position = of(np.array([[True, False], [False, True], [False, True], [True, False]]))
    assert list(by_position.classes) == ["AF", "noise", "sinus rhythm"], "an output of several classes has no order"


def test_pseudonyms_stay_while_their_secret_does_and_the_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    first = pseudonyms("clinic", tmp_path / "prepared")
    secret = tmp_path / "prepared" / SECRET
    assert secret.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in secret.parent.iterdir()] == [SECRET]
    assert pseudonyms("clinic", tmp_path / "prepared").of("p1") == first.of("p1") != first.of("p2")
    assert kept_pseudonyms("clinic", tmp_path / "prepared").of("p1") == first.of("p1")
    assert pseudonyms("ward", tmp_path / "prepared").of("p1") != first.of("p1")
    assert pseudonyms("clinic", tmp_path / "elsewhere").of("p1") != first.of("p1")
    assert secret.read_bytes().hex() not in repr(first)


def test_a_secret_that_is_missing_or_cut_looks_nobody_up(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.pseudonym_secret: not found; pseudonyms can be looked up only with"):
        kept_pseudonyms("clinic", tmp_path)
    (tmp_path / SECRET).write_bytes(b"short")
    with pytest.raises(UsageError, match=r"\.pseudonym_secret: has 5 bytes; expected a secret of 32"):
        pseudonyms("clinic", tmp_path)
    (tmp_path / "file").touch()
    assert not pseudonyms("clinic", tmp_path / "file").is_kept


def test_confusion_counts_decisions_by_true_class() -> None:
    pair = paired()
    assert confusion(pair, decisions(pair, pair.before)) == {"a": {"a": 2, "b": 0}, "b": {"a": 1, "b": 2}}
    assert confusion(pair, decisions(pair, pair.after)) == {"a": {"a": 1, "b": 1}, "b": {"a": 1, "b": 2}}


def test_decisions_for_a_new_class_have_its_name() -> None:
    old, new = paired(), paired()
    targets = np.array([[False, False, True]] * 5)
    wide = np.c_[old.before.targets, np.zeros(5, bool)]
    said = np.array([[False, False, True]] + [[True, False, False]] * 4)
    model = replace(old.after, targets=wide, said=said)
    old = replace(old, targets=wide, after=model)
    outputs = outputs_of({"noise": replace(new, targets=targets)})
    assert outputs == {2: "noise"}
    assert decisions(old, model, outputs).tolist() == ["noise", "a", "a", "a", "a"]
    assert decisions(old, model)[0] == "output 3"
    assert Measures(old).became({2: "noise"}) == {
        "a": {"a": 2, "b": 0, "noise": 1},
        "b": {"a": 2, "b": 0, "noise": 0},
        "noise": {"a": 0, "b": 0, "noise": 0},
    }


def test_ages_and_numbers_are_in_bands_and_other_columns_are_kept() -> None:
    ages = ["7", "19", "20", "41", "60.5", "79", "80", "95", "unknown"]
    expected = ["0 to 9", "10 to 19", "20 to 29", "40 to 49", "60 to 69", "70 to 79", "80 and older", "80 and older"]
    assert banded("age", ages) == [*expected, "unknown"]
    numbers = [str(number) for number in range(1, 9)]
    assert banded("bmi", numbers) == [
        *["1: below 2.75"] * 2,
        *["2: 2.75 to below 4.5"] * 2,
        *["3: 4.5 to below 6.25"] * 2,
        *["4: 6.25 and above"] * 2,
    ]
    assert banded("sex", ["f", "m", "1", "2", "3", "4", "5", "6"]) == ["f", "m", "1", "2", "3", "4", "5", "6"]
    assert banded("site", ["1", "2", "3"]) == ["1", "2", "3"]


def test_few_patients_do_not_show_single_years() -> None:
    assert banded("age", ["42"]) == ["40 to 49"]
    assert banded("age", ["48", "70", "79"]) == ["40 to 49", "70 to 79", "70 to 79"]
    assert banded("Age_years", ["39.9", "40", "49", "50"]) == ["30 to 39", "40 to 49", "40 to 49", "50 to 59"]
    assert banded("age", ["0", "1", "2"]) == ["0", "1", "2"], "codes of age groups"
    assert banded("age", ["unknown"]) == ["unknown"]
    assert banded("bmi", ["20", "22", "24", "30"]) == [
        *("1: below 21.5", "2: 21.5 to below 23"),
        *("3: 23 to below 25.5", "4: 25.5 and above"),
    ]
