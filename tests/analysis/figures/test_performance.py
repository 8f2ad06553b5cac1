"""Interquartile means and performance profiles against scipy and a direct stratified bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from clops_sweep.analysis.figures.performance import THRESHOLDS, performance

RNG = np.random.default_rng(4)
STRATA = [RNG.normal(0.6, 0.1, 8), RNG.normal(0.8, 0.05, 8)]


def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy() -> None:
    found = performance(STRATA)
    assert found.interquartile_mean == pytest.approx(stats.trim_mean(np.concatenate(STRATA), 0.25))


def test_strata_count_the_same_whatever_their_sizes() -> None:
    found, twice = performance(STRATA), performance([np.repeat(STRATA[0], 3), STRATA[1]])
    assert twice.interquartile_mean == pytest.approx(found.interquartile_mean)
    assert twice.profile == pytest.approx(found.profile)


def test_the_profile_is_the_share_above() -> None:
    whole = np.concatenate(STRATA)
    assert performance(STRATA).profile == pytest.approx([(whole > it).mean() for it in THRESHOLDS])


def test_the_interval_is_that_of_a_direct_stratified_bootstrap() -> None:
    rng, found = np.random.default_rng(9), performance(STRATA)
    drawn = [stats.trim_mean(np.concatenate([rng.choice(it, it.size) for it in STRATA]), 0.25) for _ in range(2000)]
    width = found.high - found.low
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=width / 10)
    assert found.low < found.interquartile_mean < found.high
    assert (found.profile_low <= found.profile + 1e-12).all()
    assert (found.profile <= found.profile_high + 1e-12).all()
