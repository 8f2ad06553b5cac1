"""Variance components against the textbook and exact cases, power against simulation, and the figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.figures.variance import (
    METHOD,
    SEED,
    SPLIT,
    WEIGHTS,
    power_of_t_test,
    splits_needed,
    variance_by_source,
    variance_components,
)
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION


def of(found: dict[frozenset[str], float], *names: str) -> float:
    return found[frozenset(names)]


def test_one_way_is_the_f_test() -> None:
    values = np.random.default_rng(0).normal(0, 1, (4, 6))
    found = variance_components(values, ["group", "repeat"])
    f = stats.f_oneway(*values).statistic
    within = np.mean([row.var(ddof=1) for row in values])
    rows = values.mean(axis=1)
    residual = values - values.mean(axis=0) - rows[:, None] + values.mean()
    assert of(found, "group", "repeat") == pytest.approx((residual**2).sum() / 15)
    assert of(found, "group") == pytest.approx(rows.var(ddof=1) - of(found, "group", "repeat") / 6)
    assert f * within == pytest.approx(6 * rows.var(ddof=1)), "the mean square between groups is the F test's"


def test_additive_effects_come_apart_exactly() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.normal(0, size, n) for size, n in ((1.0, 3), (0.3, 5), (0.1, 4)))
    found = variance_components(a[:, None, None] + b[:, None] + c, "abc")
    for name, effect in zip("abc", (a, b, c), strict=True):
        assert of(found, name) == pytest.approx(effect.var(ddof=1))
    for effect, component in found.items():
        assert len(effect) == 1 or component == pytest.approx(0, abs=1e-12)


def test_components_are_unbiased() -> None:
    rng, truth = np.random.default_rng(2), {"a": 1.0, "b": 0.25, "ab": 0.5, "abc": 0.1}
    estimates = []
    for _ in range(200):
        values = rng.normal(0, 1.0, (4, 1, 1)) + rng.normal(0, 0.5, (1, 5, 1)) + rng.normal(0, 0.5**0.5, (4, 5, 1))
        estimates.append(variance_components(values + rng.normal(0, 0.1**0.5, (4, 5, 3)), "abc"))
    for effect in estimates[0]:
        each = np.array([found[effect] for found in estimates])
        apart = each.mean() - truth.get("".join(sorted(effect)), 0.0)
        assert abs(apart) < 4 * each.std() / np.sqrt(len(each)), sorted(effect)


def test_power_is_how_often_the_test_finds_it() -> None:
    draws = np.random.default_rng(3).normal(0.02, 0.03, (4000, 9))
    share = np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05)
    assert power_of_t_test(9, 0.03, 0.02) == pytest.approx(share, abs=0.025)
    assert power_of_t_test(9, 0.03, 0.0) == pytest.approx(0.05)
    assert (power_of_t_test(2, 0.03, 0.02), power_of_t_test(3, 0.0, 0.02)) == (0.0, 1.0)
    for deviation in (0.0005, 0.001, 0.005, 0.01, 0.02, 0.05):  # NaN here for many n, with cdf for the lower tail
        for n in (3, 5, 10, 30, 100, 500):
            shift = 0.02 / deviation * n**0.5
            assert power_of_t_test(n, deviation, 0.02) == pytest.approx(_power(n, shift), abs=1e-4)


def _power(n: int, shift: float) -> float:
    """The mean power of normal tests over the distribution of the sample standard deviation."""
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    limits = stats.t.ppf(0.975, n - 1) * np.sqrt(stats.chi2.ppf(quantiles, n - 1) / (n - 1))
    return float(np.mean(stats.norm.sf(limits - shift) + stats.norm.cdf(-limits - shift)))


METHODS = {"f": {"strategy": "finetune"}, "r": {"strategy": "replay"}, "c": {}}
EFFECT = {
    "split": np.array([0.0, 0.1, -0.05, 0.02]),
    "weights": np.array([0.0, -0.2, 0.03]),
    "seed": np.array([0.0, 0.01]),
}


def experiment(*, without: tuple[int, int] | None = None, splits: int = 4, **axes: object) -> Experiment:
    """Additive effects of split, weights and seed, and of each method on each split."""
    base = RunConfig(dataset="mitbih")
    given = axes or {"method": METHODS, "weight_seed": range(3), "split_seed": range(4)}
    space = SearchSpace("v", base, given, seeds=range(2))  # type: ignore[arg-type]
    rows = []
    for config in {r.config.identity: r.config for r in space.requests()}.values():
        method = ["finetune", "replay", "clops"].index(config.strategy)
        auc = (
            0.7
            + EFFECT["split"][config.split_seed]
            + EFFECT["weights"][config.initial_seed]
            + EFFECT["seed"][config.seed]
        )
        auc += 0.01 * method * (config.split_seed - 1.5)
        if without != (config.initial_seed, config.seed) and config.split_seed < splits:
            common = {"status": "finished", "data_hash": "x", "semantics_version": SEMANTICS_VERSION}
            started = {"started_at": pd.Timestamp("2026-01-05", tz="UTC")}
            rows.append({"run_id": config.run_id("x"), **config_row(config), **common, **started, "auc": auc})
    (found,) = collect([space], pd.DataFrame(rows))
    return found


def test_sources_of_a_search_space() -> None:
    record = variance_by_source(experiment())
    assert (record.runs, dict(record.sizes)) == (72, {METHOD: 3, SPLIT: 4, WEIGHTS: 3, SEED: 2})
    found = record.by_source
    assert found[WEIGHTS] == pytest.approx(EFFECT["weights"].var(ddof=1))
    assert found[SEED] == pytest.approx(EFFECT["seed"].var(ddof=1))
    slopes = 0.01 * np.arange(3)[:, None] * (np.arange(4) - 1.5)
    interaction = slopes - slopes.mean(axis=0)
    assert found["method x patient split"] == pytest.approx((interaction**2).sum() / 6)
    assert found["method x the others"] == pytest.approx(0, abs=1e-12)
    between, within = record.of_a_difference
    assert (between, within) == (pytest.approx(2 * (interaction**2).sum() / 6), pytest.approx(0, abs=1e-12))
    assert record.splits_needed(1) == record.splits_needed(5) == splits_needed(between**0.5)
    assert record.power(5, 3) == pytest.approx(power_of_t_test(5, between**0.5, 0.02))
