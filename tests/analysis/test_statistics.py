from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from clops_sweep.analysis.statistics import (
    RESAMPLES,
    bootstrap_interval,
    estimate,
    estimates,
    highest_coverage,
    holm,
    paired_difference,
    paired_differences,
)


def test_estimate_of_three_numbers_and_a_gap() -> None:
    summary = estimate([0.7, math.nan, 0.8, 0.9])
    assert (summary.n, summary.mean, summary.sd) == (3, pytest.approx(0.8), pytest.approx(0.1))
    assert estimate([0.5]).n == 1
    assert math.isnan(estimate([0.5]).sd)
    assert math.isnan(estimate([]).mean)


def test_interval_is_the_exact_bootstrap_within_sampling_error() -> None:
    values = np.array([0.01, 0.03, -0.02, 0.05, 0.02])
    exact = np.sort([np.mean(draw) for draw in itertools.product(values, repeat=5)])
    tail = stats.norm.cdf(-math.sqrt(5 / 4) * stats.t.ppf(0.975, 4))
    low, high = bootstrap_interval(values)
    assert low == pytest.approx(np.quantile(exact, tail), abs=0.003)
    assert high == pytest.approx(np.quantile(exact, 1 - tail), abs=0.003)


def test_coverage_for_ten_seeds_is_near_the_nominal_one() -> None:
    rng = np.random.default_rng(1)
    trials = rng.normal(0.3, 1.0, (300, 10))
    covered = [low <= 0.3 <= high for low, high in map(bootstrap_interval, trials)]
    assert 0.91 <= np.mean(covered) <= 0.99


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
    assert highest_coverage(3) == 0.75


def test_splits_are_resampled_as_a_whole() -> None:
    ours, units = [1.0, 3.0, 10.0, 10.0, 0.0, 2.0], [0, 0, 1, 1, 2, 2]
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
    for units in (None, [0, 0, 1, 1, 2, 2]):
        together = paired_differences(ours, theirs, units)
        for row, found in enumerate(together):
            alone = paired_difference(ours[row], theirs[row], units)
            assert found.n == alone.n
            values = [(found.mean, alone.mean), (found.low, alone.low), (found.high, alone.high), (found.p, alone.p)]
            np.testing.assert_allclose(*zip(*values, strict=True), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 5, 12])
def test_quantiles_of_kinds_of_resamples_are_those_of_all_resamples(n: int) -> None:
    values = np.random.default_rng(n).normal(0, 1, n)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) @ values / n
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
    assert bootstrap_interval(values) == pytest.approx(np.quantile(drawn, [tail, 1 - tail]), abs=1e-12)
