"""Folds test every person once, and balance classes as far as people allow; so does a share for validation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from clops_sweep import folds
from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
from clops_sweep.data.splits.dealing import deal, fold_split, strata, stratified_split, validation_share
from clops_sweep.data.splits.fold_names import fold_of

tables = hnp.arrays(
    np.int64, st.tuples(st.integers(3, 30), st.integers(1, 4)), elements=st.one_of(st.just(0), st.integers(0, 60))
)


def test_names_of_folds_and_what_they_mean() -> None:
    assert folds(4) == ["fold:1/4", "fold:2/4", "fold:3/4", "fold:4/4"]
    assert [fold_of(name) for name in folds(4)] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert fold_of("fold:12/100") == (12, 100)


@given(tables, st.integers(3, 6), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_every_person_is_tested_once_and_validates_once(counts: NDArray[np.int64], k: int, seed: int) -> None:
    splits = np.stack([fold_split(counts, i, k, seed) for i in range(1, k + 1)])
    assert ((splits == TEST).sum(0) == 1).all()
    assert ((splits == VALIDATION).sum(0) == 1).all()
    for i in range(k):  # validation is the next fold's test set; the first fold follows the last
        np.testing.assert_array_equal(splits[i] == VALIDATION, splits[(i + 1) % k] == TEST)
    assert ((splits == TRAINING) | (splits == VALIDATION) | (splits == TEST)).all()


@pytest.mark.parametrize(("people", "k"), [((4, 5, 6, 9), 4), ((3, 3, 3), 3), ((57, 4, 31), 4), ((20, 30), 5)])
def test_where_people_have_one_class_its_people_are_dealt_evenly(people: tuple[int, ...], k: int) -> None:
    classes = np.repeat(np.arange(len(people)), people)
    counts = np.eye(len(people), dtype=np.int64)[np.random.default_rng(0).permutation(classes)] * 7
    for seed in range(5):
        tests = [fold_split(counts, i, k, seed) == TEST for i in range(1, k + 1)]
        for code, many in enumerate(people):
            in_part = [int((counts[test, code] > 0).sum()) for test in tests]
            assert set(in_part) <= {many // k, -(-many // k)}


def test_where_people_have_several_classes_parts_are_far_more_even_than_at_random() -> None:
    random, dealt, drawn = np.random.default_rng(5), [], []
    for seed in range(20):
        counts = (random.random((40, 6)) < 0.3) * random.integers(1, 60, (40, 6))
        parts = deal(counts, [1 / 4] * 4, np.random.default_rng(seed))
        assert np.ptp(np.bincount(parts, minlength=4)) <= 4
        for its, found in ((parts, dealt), (random.permutation(np.arange(40) % 4), drawn)):
            people = np.stack([(counts[its == part] > 0).sum(0) for part in range(4)])
            found.append(np.ptp(people, axis=0).mean())
            assert its is not parts or people.min() >= 1
    assert np.mean(dealt) < 0.4 * np.mean(drawn)


@given(tables, st.floats(0.05, 0.95), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_share_of_people_is_as_large_as_asked_for(counts: NDArray[np.int64], share: float, seed: int) -> None:
    chosen = validation_share(counts, share, seed)
    assert chosen.shape == (len(counts),)
    np.testing.assert_array_equal(chosen, validation_share(counts, share, seed))
    alone = (counts > 0).sum(1) <= 1
    if alone.all():  # each class is off by less than a person
        for code in range(counts.shape[1]):
            has = counts[:, code] > 0
            assert abs(chosen[has].sum() - share * has.sum()) <= 1


def test_a_share_is_stratified_by_class() -> None:
    counts = np.eye(3, dtype=np.int64)[np.repeat([0, 1, 2], [100, 50, 10])]
    chosen = validation_share(counts, 0.2, 0)
    assert [int(chosen[counts[:, code] > 0].sum()) for code in range(3)] == [20, 10, 2]
    assert (chosen != validation_share(counts, 0.2, 1)).any()


@pytest.mark.parametrize("seed", range(10))
def test_the_rarest_class_is_dealt_first(seed: int) -> None:
    counts = np.random.default_rng(seed).integers(1, 60, (20, 2))
    counts[:18, 1] = 0
    parts = deal(counts, [1 / 2, 1 / 2], np.random.default_rng(seed))
    assert sorted(parts[18:]) == [0, 1]
    assert parts.sum() == 10


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(3, 40)), elements=st.integers(0, 5)),
    st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_people_of_one_site_and_class_are_dealt_60_20_20_and_into_each_part(cell: NDArray[np.int64], seed: int) -> None:
    counts = np.zeros((len(cell), 3, 2), np.int64)  # three sites, two classes
    counts.reshape(len(cell), 6)[np.arange(len(cell)), cell] = 7
    split = stratified_split(strata(counts, counts.sum(2)), seed)
    np.testing.assert_array_equal(split, stratified_split(strata(counts, counts.sum(2)), seed))
    for code in range(6):
        parts = np.bincount(split[cell == code], minlength=3)
        many = int(parts.sum())
        if many >= 3:
            assert parts.min() >= 1
        if many >= 5:
            assert (np.abs(parts - np.array([0.6, 0.2, 0.2]) * many) <= 1).all()


@given(tables, st.integers(3, 6), st.integers(0, 3), st.data())
@settings(max_examples=40, deadline=None)
def test_people_stay_in_given_parts_and_others_are_dealt(
    counts: NDArray[np.int64], k: int, seed: int, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(-1, k - 1), min_size=len(counts), max_size=len(counts)))
    fixed = np.array(drawn, np.int64)
    before = fixed.copy()
    parts = deal(counts, [1 / k] * k, np.random.default_rng(seed), fixed=fixed)
    np.testing.assert_array_equal(fixed, before)
    np.testing.assert_array_equal(parts[fixed >= 0], fixed[fixed >= 0])
    assert ((parts >= 0) & (parts < k)).all()
    of_none = deal(counts, [1 / k] * k, np.random.default_rng(seed), fixed=np.full(len(counts), -1))
    np.testing.assert_array_equal(of_none, deal(counts, [1 / k] * k, np.random.default_rng(seed)))


def test_people_without_a_part_fill_what_given_parts_lack() -> None:
    """Of 12 people with class A and 12 with B, the given ones fill parts 0 and 1 with A, and part 2 with B."""
    counts = np.repeat(np.eye(2, dtype=np.int64), 12, axis=0) * 5
    fixed = np.full(24, -1)
    fixed[:8] = [0, 0, 0, 0, 1, 1, 1, 1]  # four of class A each
    fixed[12:16] = 2  # four of class B
    for seed in range(5):
        tests = [fold_split(counts, i, 3, seed, fixed) == TEST for i in (1, 2, 3)]
        people_of_classes = [(counts[test] > 0).sum(0).tolist() for test in tests]
        assert people_of_classes == [[4, 4], [4, 4], [4, 4]]
