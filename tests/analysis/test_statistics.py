from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from clops_sweep import UsageError
from clops_sweep.analysis.statistics import (
    ALPHA,
    Fold,
    Partition,
    clipped,
    estimate,
    estimates,
    holm,
    holm_levels,
    paired_difference,
    paired_differences,
    partitions,
    standard_error,
    units_of,
)
from clops_sweep.experiment.metrics import metric_named


def test_estimate_of_three_numbers_and_a_gap() -> None:
    summary = estimate([0.7, math.nan, 0.8, 0.9])
    assert (summary.n, summary.mean, summary.sd) == (3, pytest.approx(0.8), pytest.approx(0.1))
    assert estimate([0.5]).n == 1
    assert math.isnan(estimate([0.5]).sd)
    assert math.isnan(estimate([]).mean)
    assert standard_error(np.array([0.7, 0.8, 0.9])) == pytest.approx(0.1 / math.sqrt(3))


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


def test_folds_are_units_with_the_same_formula() -> None:
    """Two repeats of three folds: n = 6, rho = 1 / 2."""
    folds = [Fold(repeat, part, 3) for repeat in range(2) for part in (1, 2, 3)]
    known = {fold: Partition(str(fold), validation=1.0, test=0.5) for fold in folds}
    differences = [0.03, 0.01, 0.05, -0.01, 0.02, 0.04]
    found = paired_difference(differences, np.zeros(6), [(fold, 0) for fold in folds], known, "test_auc")
    assert (found.units.kind, found.n, found.units.overlap) == ("folds", 6, 0.5)
    error = np.std(differences, ddof=1) * math.sqrt(1 / 6 + 0.5)
    assert found.p == pytest.approx(2 * stats.t.sf(np.mean(differences) / error, 5))
    some = paired_difference(differences[:5], np.zeros(5), [(fold, 0) for fold in folds[:5]], known)
    assert math.isnan(some.p)
    assert some.units.obstacle == "fold 3/3 of split seed 1 missing"
    one = units_of([(folds[0], seed) for seed in range(5)], known)
    assert one.obstacle == "folds 2/3, 3/3 missing"


def test_folds_and_random_splits_are_refused_together() -> None:
    with pytest.raises(UsageError, match="random splits and 3 folds of the same people"):
        units_of([(Fold(0, 1, 3), 0), (4, 0)], {})
    with pytest.raises(UsageError, match="3 folds and 5 folds"):
        units_of([(Fold(0, 1, 3), 0), (Fold(0, 1, 5), 0)], {})


def test_a_published_example_of_the_corrected_test() -> None:
    """scikit-learn's "Statistical comparison of models using grid search": rbf and linear SVC, 10 x 10 folds.

    It prints a corrected t of 0.750 and a one-sided p of 0.227, and 2.611 and 0.005 without the correction.
    """
    x, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=it, random_state=0), x, y, cv=folds, scoring="roc_auc") for it in ("rbf", "linear")
    )
    replicates = [(Fold(repeat, part, 10), 0) for repeat in range(10) for part in range(1, 11)]
    known = {fold: Partition(str(fold), test=10 / 90) for fold, _ in replicates}
    found = paired_difference(rbf, linear, replicates, known, "test_auc")
    assert found.p / 2 == pytest.approx(0.227, abs=0.0005)
    assert found.mean / float(standard_error(rbf - linear, 1 / 9)) == pytest.approx(0.750, abs=0.0005)
    assert paired_difference(rbf, linear, replicates).p / 2 == pytest.approx(0.005, abs=0.0005)


def test_equal_but_for_rounding_is_no_spread() -> None:
    found = paired_difference([0.1 + 0.2, 0.3, 0.6 - 0.3], np.zeros(3))
    assert math.isnan(found.p)
    assert math.isnan(found.low)


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
    known = partitions(runs)
    assert list(known) == [0, 1]
    assert [(it.name, it.validation, it.test) for it in known.values()] == [("a", 0.2, 0.4), ("b", 0.5, 0.75)]
    assert known[0].training == pytest.approx(30 / 18), "f / (1 - f) with f = 30 / 48"
    assert math.isnan(known[0].unseen)
    assert units_of([(0, 0), (1, 0)], partitions(runs), "test_auc").overlap == pytest.approx((0.4 + 0.75) / 2)
    assert units_of([(0, 0), (1, 0), (2, 0)], partitions(runs)).kind == "runs"
    folds = runs.assign(split=["fold:1/3", "fold:1/3", "fold:2/3", None], split_seed=7)
    assert list(partitions(folds)) == [Fold(7, 1, 3), Fold(7, 2, 3)]
    mixed = runs.assign(split=[None, None, "fold:2/3", None])
    assert list(partitions(mixed)) == [0, Fold(1, 2, 3)]
    without = runs.assign(patients_validation=0)
    assert partitions(without)[0].validation == 0.4, "judged by test people where there are no others"


def test_equal_splits_of_unknown_people_are_one_partition() -> None:
    """Three split seeds of a given split counted as three splits if the data do not say whose recordings they are."""
    runs = pd.DataFrame({"split_seed": [0, 1, 2], "split_hash": "given", "patients_train": np.nan})
    units = units_of([(0, 0), (1, 0), (2, 0), (0, 1)], partitions(runs))
    assert (units.kind, units.members) == ("seeds", ((0, 1, 2), (3,)))


def test_people_in_training_and_in_evaluation_are_a_share_of_all_people() -> None:
    """Ten of 47 people are in no task; the others are in all three parts: rho = f / (1 - f) with f = 37 / 47."""
    people = {"split_hash": ["a", "b"], "split_seed": [0, 1], "split_within": "time", "patients_unseen": 10}
    runs = pd.DataFrame({**people, **dict.fromkeys(("patients_train", "patients_validation", "patients_test"), 37)})
    known = partitions(runs.assign(patients_all=47))
    for measure in ("auc", "test_auc", "prequential_auc", "training_s"):
        assert units_of([(0, 0), (1, 0)], known, measure).overlap == pytest.approx(37 / 10), measure
    assert units_of([(0, 0), (1, 0)], known, "unseen_auc").overlap == pytest.approx(10 / 37)
    assert units_of([(0, 0), (1, 0)], partitions(runs), "test_auc").kind == "runs", "not recorded"


def test_differences_are_taken_over_common_seeds() -> None:
    difference = paired_difference([0.5, 1.0, 9.0, 2.5, 4.0], [1.0, 2.0, math.nan, 4.0, 6.0])
    assert difference.n == 4
    assert difference.mean == pytest.approx(-1.25)
    assert difference.excludes_zero
    assert difference.p == pytest.approx(stats.ttest_rel([1, 2, 4, 6], [0.5, 1, 2.5, 4]).pvalue)


def test_p_of_a_large_effect_is_equal_in_both_directions() -> None:
    """1 - p loses the digits of a small p: that of a negative difference was 0."""
    ours = [1.0 + 0.01 * (number % 3) for number in range(20)]
    zeros = [0.0] * 20
    expected = stats.ttest_1samp(ours, 0).pvalue
    assert 0 < expected < 1e-30
    assert paired_difference(ours, zeros).p == pytest.approx(expected, rel=1e-6)
    assert paired_difference(zeros, ours).p == paired_difference(ours, zeros).p


def test_too_few_pairs_have_no_interval() -> None:
    difference = paired_difference([1.0, 2.0], [0.0, 0.0])
    assert math.isnan(difference.low)
    assert math.isfinite(paired_difference([1.0, 2.0, 4.0], [0.0, 0.0, 0.0]).low)
    assert paired_difference([math.nan], [1.0]).n == 0


def test_a_split_is_the_mean_over_its_seeds() -> None:
    ours, units = [1.0, 3.0, 10.0, 10.0, 0.0, 2.0], [(split, seed) for split in range(3) for seed in range(2)]
    difference = paired_difference(ours, np.zeros(6), units)
    assert difference.n == 3
    assert difference.mean == pytest.approx((2 + 10 + 1) / 3)


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


def test_holm_levels_decide_as_corrected_p_values() -> None:
    for seed in range(50):
        p = np.random.default_rng(seed).uniform(size=7) ** 4
        p[3] = np.nan
        levels = holm_levels(p)
        np.testing.assert_array_equal(p < levels, np.nan_to_num(holm(p), nan=1) < ALPHA)
    np.testing.assert_allclose(holm_levels([0.001, 0.2, 0.02, 0.03]), [0.05 / 4, 0.05 / 3, 0.05 / 3, 0.05 / 3])
    np.testing.assert_allclose(holm_levels([0.04]), [0.05])


def test_an_interval_between_the_limits_covers_what_the_whole_one_covers() -> None:
    found = paired_difference([0.999, 0.7, 0.82], np.zeros(3))
    within = clipped(found, metric_named("auc").limits)
    assert found.high > 1 == within.high
    assert within.low == found.low
    assert clipped(paired_difference([1.0], [0.5]), (0, 1)).n == 1
    assert metric_named("test_accuracy_bwt").limits == (-1, 1)
    assert metric_named("accuracy_percent").limits == (-math.inf, math.inf)
