"""What a verdict is worth: known verdicts on stores made for it, and how often the procedure is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.claims.claim_runs import ClaimRuns, ContrastRuns
from clops_sweep.analysis.claims.verdicts import (
    Verdict,
    decided,
    evidence_of,
    outcome_of,
    p_values,
    verdicts,
)
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.statistics import ALPHA, Partition
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Says, Side
from clops_sweep.store.run_store import RunStore

Auc = Callable[[RunConfig], float]
BOTH = ("clops", "finetune")
START = pd.Timestamp("2026-01-05", tz="UTC")


CLOPS, FINETUNE = (Side(name, {"strategy": name}) for name in ("clops", "finetune"))


def claim(says: Says = "more", ours: Side = CLOPS, theirs: Side = FINETUNE, key: str = "it") -> Claim:
    return Claim(key, "it is so", (Contrast(ours, theirs),), says, scenario="class_il")


def on(
    auc: Auc,
    claims: Sequence[Claim],
    *,
    seeds: Sequence[int] = range(5),
    splits: Sequence[int | str | None] = (0,),
    strategies: Sequence[str] = BOTH,
    keep: Callable[[RunConfig], bool] = lambda config: True,
) -> list[Verdict]:
    """The verdicts on a table `runs` that holds such runs."""
    axes = {"split_seed" if all(isinstance(it, int) for it in splits) else "split": list(splits)}
    spaces = [SearchSpace(name, RunConfig(strategy=name, dataset="mitbih"), axes, seeds) for name in strategies]
    common = {"status": "finished", "data_hash": "x", "semantics_version": SEMANTICS_VERSION, "started_at": START}
    configs = [request.config for space in spaces for request in space.requests() if keep(request.config)]
    rows = [{"run_id": c.run_id("x"), **config_row(c), **common, "auc": auc(c)} for c in configs]
    return verdicts(collect(spaces, pd.DataFrame(rows)), RunStore("nowhere"), claims=claims)


def apart(by: float, noise: float = 0.002, split: float = 0.0) -> Auc:
    """CLOPS above fine-tuning by so much, on ground that both share."""

    def auc(config: RunConfig) -> float:
        ground = 0.7 + 0.05 * config.split_seed + 0.02 * config.seed
        if config.strategy != "clops":
            return ground
        wave = (-1) ** config.seed * (1 + 0.1 * config.seed)
        return ground + by + noise * wave + split * (-1) ** config.split_seed * (1 + 0.1 * config.split_seed)

    return auc


@pytest.mark.parametrize(
    ("says", "by", "noise", "outcome"),
    [
        ("more", 0.1, 0.01, "holds"),
        ("more", -0.1, 0.01, "does not hold"),
        ("more", 0.004, 0.0005, "does not hold"),  # above 0 beyond doubt, and too small to matter
        ("more", 0.01, 0.05, "undecided"),
        ("same", 0.004, 0.002, "holds"),
        ("same", 0.1, 0.01, "does not hold"),
        ("same", -0.1, 0.01, "does not hold"),
        ("same", 0.0, 0.05, "undecided"),
        ("same", 0.021, 0.002, "undecided"),  # differs beyond doubt, and whether by as much as matters is open
        ("not less", 0.1, 0.01, "holds"),
        ("not less", -0.004, 0.0005, "holds"),  # below 0 beyond doubt, and too little to matter
        ("not less", -0.1, 0.01, "does not hold"),
        ("not less", -0.01, 0.05, "undecided"),
    ],
)
def test_known_verdicts(says: Says, by: float, noise: float, outcome: str) -> None:
    (verdict,) = on(apart(by, noise), [claim(says)])
    assert (verdict.outcome, verdict.unit, verdict.missing) == (outcome, "seeds of patient split 0", "")
    (found,) = verdict.evidence
    differences = [
        apart(by, noise)(RunConfig(seed=s)) - apart(by)(RunConfig(strategy="finetune", seed=s)) for s in range(5)
    ]
    assert (found.n, found.mean) == (5, pytest.approx(np.mean(differences)))
    two_sided = 0.95 if says == "same" and outcome != "holds" else 0.9
    low, high = stats.t.interval(two_sided, 4, np.mean(differences), stats.sem(differences))
    shown = found.interval
    if says == "same" or outcome == "undecided":
        assert (shown.low, shown.high, shown.level) == pytest.approx((low, high, two_sided))
    else:
        bounds = (low, np.inf) if outcome == "holds" else (-np.inf, high)
        assert (shown.low, shown.high, shown.level) == pytest.approx((*bounds, 0.95))
    assert len(verdict.runs.run_ids) == 10


def test_p_values_are_those_of_scipy() -> None:
    x = np.array([0.03, 0.01, 0.05, -0.01, 0.02])
    above = [stats.ttest_1samp(x, bound, alternative="greater").pvalue for bound in (-0.02, 0.0, 0.02)]
    below = [stats.ttest_1samp(x, bound, alternative="less").pvalue for bound in (-0.02, 0.0, 0.02)]
    assert p_values(x, "more", 0.02) == pytest.approx((above[1], below[2]))
    assert p_values(x, "same", 0.02) == pytest.approx((max(above[0], below[2]), min(1.0, 2 * min(above[2], below[0]))))
    assert p_values(x, "not less", 0.02) == pytest.approx((above[0], below[1]))


def test_shared_people_widen_the_interval() -> None:
    it, differences = claim(), np.array([0.03, 0.01, 0.05, -0.01, 0.02])
    known = {split: Partition(f"hash {split}", validation=0.25, test=0.5) for split in range(5)}
    values = {(split, 0): float(value) for split, value in enumerate(differences)}
    found = evidence_of(it.contrasts[0], "more", 0.02, values, known)
    error = differences.std(ddof=1) * np.sqrt(1 / 5 + 0.25)
    assert found.error == pytest.approx(error)
    assert found.p_for == pytest.approx(stats.t.sf(differences.mean() / error, 4))


# --- what is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seeds", "said"), [((0,), "1 seed where"), ((0, 1), "2 seeds where")])
def test_too_few_seeds(seeds: tuple[int, ...], said: str) -> None:
    (verdict,) = on(apart(0.1), [claim()], seeds=seeds)
    assert (verdict.outcome, verdict.missing) == ("undecided", f"{said} 3 are needed")
    assert verdict.weakest.mean == pytest.approx(0.1, abs=0.01)
    assert np.isnan(verdict.p_for)


# --- patient splits ---------------------------------------------------------------------------------------------------


def test_folds_decide_and_an_incomplete_set_does_not() -> None:
    def auc(config: RunConfig) -> float:
        part = int((config.split or "fold:1/5")[5])
        return 0.7 + (0.1 + 0.002 * part) * (config.strategy == "clops")

    (verdict,) = on(auc, [claim()], splits=folds(5), seeds=(0,))
    assert (verdict.outcome, verdict.weakest.n) == ("holds", 5)
    (verdict,) = on(auc, [claim()], splits=folds(5)[:4], seeds=(0,))
    assert (verdict.outcome, verdict.missing) == ("undecided", "fold 5/5 missing")
    (verdict,) = on(auc, [claim()], splits=[None, *folds(5)], seeds=(0,))
    assert verdict.outcome == "undecided"
    assert "cannot be compared together" in verdict.missing


# --- how often it is wrong --------------------------------------------------------------------------------------------

MANY = 250
CLAIMS = 5


def wrong(
    rng: np.random.Generator, says: Says, mean: float, outcome: str, splits: int, seeds: int, spread: float
) -> float:
    """How often any of five claims is found to be so, their true differences being the same; by hand from values."""
    it = claim(says)
    runs = ClaimRuns(it, "mitbih", (ContrastRuns(it.contrasts[0], {}),))
    found = 0
    for _ in range(MANY):
        of_split = mean + rng.normal(0, spread, (CLAIMS, splits, 1))
        values = of_split + rng.normal(0, 0.02, (CLAIMS, splits, seeds))
        tested = [
            (
                runs,
                [
                    evidence_of(
                        it.contrasts[0],
                        says,
                        it.matters,
                        dict(zip(np.ndindex(splits, seeds), each.ravel(), strict=True)),
                    )
                ],
            )
            for each in values
        ]
        found += any(verdict.outcome == outcome for verdict in decided(tested))
    return found / MANY


@pytest.mark.nightly
@pytest.mark.parametrize(("splits", "seeds", "spread"), [(1, 5, 0.0), (5, 2, 0.04)])
@pytest.mark.parametrize(
    ("says", "mean", "outcome"),
    [
        ("more", 0.0, "holds"),
        ("more", 0.02, "does not hold"),
        ("same", 0.02, "holds"),
        ("same", -0.02, "does not hold"),
        ("not less", -0.02, "holds"),
        ("not less", 0.0, "does not hold"),
    ],
)
def test_the_chance_of_one_wrong_verdict_is_what_it_says(
    says: Says, mean: float, outcome: str, splits: int, seeds: int, spread: float
) -> None:
    """At the edge of what a claim excludes, where the chance is largest, of five claims that are independent."""
    share = wrong(np.random.default_rng(3), says, mean, outcome, splits, seeds, spread)
    assert share < ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / MANY)
    if says != "same":
        assert share > ALPHA - 4 * np.sqrt(ALPHA * (1 - ALPHA) / MANY), "neither is more asked for than has to be"


def test_a_corrected_p_decides() -> None:
    assert outcome_of("more", 0.049, 1.0) == "holds"
    assert outcome_of("more", 0.051, 1.0) == outcome_of("more", float("nan"), float("nan")) == "undecided"
    assert outcome_of("same", 1.0, 0.049) == "does not hold"


def shown_by(verdict: Verdict) -> str:
    """Return the verdict that the interval of the weakest difference shows."""
    m, says, interval = verdict.claim.matters, verdict.claim.says, verdict.weakest.interval
    holds = {"more": interval.low > 0, "same": -m < interval.low and interval.high < m, "not less": interval.low > -m}
    outside = interval.low > m or interval.high < -m
    fails = {"more": interval.high < m, "same": outside, "not less": interval.high < 0}
    return "holds" if holds[says] else "does not hold" if fails[says] else "undecided"


@pytest.mark.parametrize("of", range(40))
def test_intervals_show_the_verdict(of: int) -> None:
    rng = np.random.default_rng(of)
    tested = []
    for number in range(rng.integers(1, 9)):
        says: Says = ("more", "same", "not less")[number % 3]
        it, parts = claim(says), rng.integers(1, 3)
        contrasts = it.contrasts * parts
        runs = ClaimRuns(replace(it, contrasts=contrasts), "mitbih", (ContrastRuns(it.contrasts[0], {}),) * parts)
        mean, spread = rng.choice([-0.05, -0.01, 0, 0.01, 0.05]), rng.choice([0.003, 0.01, 0.05])
        values = [{(0, seed): float(x) for seed, x in enumerate(rng.normal(mean, spread, 5))} for _ in contrasts]
        tested.append((runs, [evidence_of(it.contrasts[0], says, it.matters, each) for each in values]))
    for verdict in decided(tested):
        level = verdict.weakest.interval.level
        assert shown_by(verdict) == verdict.outcome, (verdict.claim.says, verdict.weakest)
        one_sided = verdict.claim.says != "same" and verdict.outcome != "undecided"
        assert level >= (0.95 if one_sided else 0.9) - 1e-12
        assert one_sided == bool(np.isinf([verdict.weakest.interval.low, verdict.weakest.interval.high]).any())
