from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from clops_sweep.analysis.statistics import (
    Partition,
    estimate,
    estimates,
    holm,
    paired_difference,
    paired_differences,
    partitions,
    units_of,
)


def test_estimate_of_three_numbers_and_a_gap() -> None:
    summary = estimate([0.7, math.nan, 0.8, 0.9])
    assert (summary.n, summary.mean, summary.sd) == (3, pytest.approx(0.8), pytest.approx(0.1))
    assert estimate([0.5]).n == 1
    assert math.isnan(estimate([0.5]).sd)
    assert math.isnan(estimate([]).mean)


def simulated(rng: np.random.Generator, people: int, parts: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Differences of two methods that are equally good, one for each part of the people that evaluates them.

    A person moves the difference where they are in the training set and where they are evaluated, both with mean 0.
    """
    trained, evaluated = rng.normal(0, 1, (2, people))
    found = []
    for test in parts:
        train = np.setdiff1d(np.arange(people), test)
        found.append(trained[train].mean() + evaluated[test].mean())
    return np.array(found)


def drawn_parts(rng: np.random.Generator, people: int, splits: int) -> list[NDArray[np.int64]]:
    """Test people of random splits, a fifth of all."""
    return [rng.permutation(people)[: people // 5] for _ in range(splits)]


def folds(rng: np.random.Generator, people: int, k: int) -> list[NDArray[np.int64]]:
    """Test people of k folds."""
    return np.array_split(rng.permutation(people), k)


@pytest.mark.parametrize(
    ("people", "splits", "kind"),
    [(47, 3, "splits"), (47, 12, "splits"), (200, 12, "splits"), (200, 20, "splits"), (47, 5, "folds")],
)
def test_false_positives_over_splits_of_the_same_people(people: int, splits: int, kind: str) -> None:
    """With no true difference at most 5 % of the p-values are below 0.05; without the correction, many more are."""
    rng, repeats = np.random.default_rng(people + splits), 1000
    replicates = [(split, 0) for split in range(splits)]
    known = {split: Partition(f"hash {split}", test=1 / 4) for split in range(splits)}
    parts = drawn_parts if kind == "splits" else folds
    values = np.stack([simulated(rng, people, parts(rng, people, splits)) for _ in range(repeats)])
    corrected = paired_differences(values, np.zeros_like(values), replicates, known, "test_auc")
    plain = paired_differences(values, np.zeros_like(values), replicates)
    error = 2 * math.sqrt(0.05 * 0.95 / repeats)
    assert np.mean([it.p < 0.05 for it in corrected]) <= 0.05 + error
    if kind == "splits":
        assert np.mean([it.p < 0.05 for it in plain]) > 0.05 + error


def test_corrected_interval_by_hand() -> None:
    """Five differences, rho = 1/4: mean 0.02, s^2 = 0.0005, SE^2 = s^2 (1/5 + 1/4), t(0.975; 4) = 2.776445."""
    differences = [0.03, 0.01, 0.05, -0.01, 0.02]
    replicates = [(split, 0) for split in range(5)]
    known = {split: Partition(f"hash {split}", validation=0.25) for split in range(5)}
    found = paired_difference(differences, np.zeros(5), replicates, known)
    assert found.high - found.mean == pytest.approx(2.776445 * math.sqrt(0.0005 * 0.45), rel=1e-6)
    assert found.p == pytest.approx(2 * stats.t.sf(0.02 / math.sqrt(0.0005 * 0.45), 4))


def test_splits_of_the_same_people_count_once() -> None:
    known = {split: Partition("one", 0.25, 0.25) for split in range(3)}
    replicates = [(split, seed) for split in range(3) for seed in range(2)]
    assert units_of(replicates, known).kind == "seeds"
    assert len(units_of(replicates, known | {2: Partition("other", 0.25, 0.25)}).members) == 2


def test_seeds_that_all_splits_have_are_compared() -> None:
    units = units_of([(0, 0), (0, 1), (1, 1), (2, 1), (2, 2)], {})
    assert (units.members, units.kind, units.seeds) == (((1,), (2,), (3,)), "runs", "common")
    units = units_of([(0, 0), (1, 1), (2, 2), (2, 0)], {})
    assert (units.members, units.seeds) == (((0,), (1,), (2, 3)), "own")
    assert units_of([(0, 0), (0, 1), (1, 0), (1, 1)], {}).seeds == "same"


def test_partitions_come_from_the_runs() -> None:
    runs = pd.DataFrame(
        {
            "split_seed": [0, 0, 1, 2],
            "split_hash": ["a", "a", "b", None],
            "patients_train": [30.0, 30.0, 20.0, np.nan],
            "patients_validation": [6.0, 6.0, 10.0, np.nan],
            "patients_test": [12.0, 12.0, 15.0, np.nan],
        }
    )
    assert partitions(runs) == {0: Partition("a", 0.2, 0.4), 1: Partition("b", 0.5, 0.75)}
    assert units_of([(0, 0), (1, 0)], partitions(runs), "test_auc").overlap == pytest.approx((0.4 + 0.75) / 2)
    assert units_of([(0, 0), (1, 0), (2, 0)], partitions(runs)).kind == "runs"


def test_differences_are_taken_over_common_seeds() -> None:
    difference = paired_difference([1.0, 2.0, math.nan, 4.0, 6.0], [0.5, 1.0, 9.0, 2.5, 4.0])
    assert difference.n == 4
    assert difference.mean == pytest.approx(1.25)
    assert difference.excludes_zero
    assert difference.p == pytest.approx(stats.ttest_rel([1, 2, 4, 6], [0.5, 1, 2.5, 4]).pvalue)


def test_too_few_pairs_have_no_interval() -> None:
    difference = paired_difference([1.0, 2.0], [0.0, 0.0])
    assert math.isnan(difference.low)
    assert not difference.excludes_zero
    assert paired_difference([math.nan], [1.0]).n == 0


def test_a_split_is_the_mean_over_its_seeds() -> None:
    ours, units = [1.0, 3.0, 10.0, 10.0, 0.0, 2.0], [(split, seed) for split in range(3) for seed in range(2)]
    difference = paired_difference(ours, np.zeros(6), units)
    assert difference.n == 3
    assert difference.mean == pytest.approx((2 + 10 + 1) / 3)


def test_equal_differences_have_no_t_test() -> None:
    assert math.isnan(paired_difference([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]).p)


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, math.nan, 0.03, 0.005]), [0.03, 0.06, math.nan, 0.06, 0.02])


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_never_below_p_nor_above_bonferroni(p: list[float]) -> None:
    corrected = holm(p)
    assert (corrected >= np.array(p)).all()
    assert (corrected <= np.minimum(np.array(p) * len(p), 1) + 1e-12).all()


def test_rows_at_once_are_the_rows_one_by_one() -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.normal(0.7, 0.1, (40, 6)), rng.normal(0.6, 0.1, (40, 6))
    ours[rng.random(ours.shape) < 0.2] = np.nan
    ours[0], ours[1] = np.nan, theirs[1] + 0.25
    assert list(map(repr, estimates(ours))) == list(map(repr, map(estimate, ours)))
    for units in (None, [(split, seed) for split in range(3) for seed in range(2)]):
        together = paired_differences(ours, theirs, units)
        for row, found in enumerate(together):
            alone = paired_difference(ours[row], theirs[row], units)
            assert found.n == alone.n
            values = [(found.mean, alone.mean), (found.low, alone.low), (found.high, alone.high), (found.p, alone.p)]
            np.testing.assert_allclose(*zip(*values, strict=True), rtol=1e-12)
