"""Verdicts on declared claims: which runs are compared, against differences computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.verdicts import Verdict, verdicts
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.report.claims_section import contrast_in_words
from clops_sweep.analysis.statistics import standard_error
from clops_sweep.store.run_store import RunStore
from tests.analysis.claims.test_claims import rows_of

ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
SPACE = SearchSpace(
    "s",
    RunConfig(epochs_per_task=1),
    axes={
        "method": {
            "finetune": {"strategy": "finetune"},
            "ER, small": {"strategy": "er", "memory_fraction": 0.1},
            "ER, large": {"strategy": "er", "memory_fraction": 0.5},
        },
        "learning_rate": [0.001, 0.01],
        "split_seed": [0, 1, 2, 3],
    },
    seeds=range(2),
)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    rows = rows_of([SPACE])
    rows["auc"] = np.random.default_rng(4).uniform(0.5, 1, len(rows))
    people = {"patients_train": 50, "patients_validation": 10, "patients_test": 10}
    return rows.assign(split_hash=rows["split_seed"].astype(str), **people)


def _by_hand(runs: pd.DataFrame, ours: str, theirs: str) -> np.ndarray:
    """Differences by split: means over seeds of the means over pairs of one learning rate."""
    both = runs.query(ours).merge(runs.query(theirs), on=["split_seed", "seed", "learning_rate"])
    both["d"] = both["auc_x"] - both["auc_y"]
    return both.groupby(["split_seed", "seed"])["d"].mean().groupby("split_seed").mean().to_numpy()


@pytest.mark.parametrize(
    ("ours", "theirs", "of_ours", "of_theirs"),
    [
        (ER, FINETUNE, "strategy == 'er'", "strategy == 'finetune'"),
        (
            ER.but("large", memory_fraction=0.5),
            ER.but("small", memory_fraction=0.1),
            "memory_fraction == 0.5",
            "memory_fraction == 0.1",
        ),
    ],
)
def test_pairs_agree_in_what_no_side_names(
    runs: pd.DataFrame, tmp_path: Path, ours: Side, theirs: Side, of_ours: str, of_theirs: str
) -> None:
    claim = Claim("it", "x", Contrast(ours, theirs))
    (verdict,) = verdicts(collect([SPACE], runs), RunStore(tmp_path), claims=[claim])
    units = _by_hand(runs, of_ours, of_theirs)
    error = float(standard_error(units, 10 / 50))
    found = verdict.evidence[0]
    assert (found.n, found.mean, found.error) == pytest.approx((4, units.mean(), error))


def test_runs_that_differ_in_more_are_not_compared(runs: pd.DataFrame, tmp_path: Path) -> None:
    claim = Claim("it", "x", Contrast(ER.but("a", learning_rate=0.001), FINETUNE.but("b", learning_rate=0.01)))
    other = Claim("other", "x", Contrast(ER.but("a", learning_rate=0.001), FINETUNE))
    one, two = verdicts(collect([SPACE], runs), RunStore(tmp_path), claims=[claim, other])
    assert one.evidence[0].n == two.evidence[0].n == 4
    half = Claim("half", "x", Contrast(ER.but("a", memory_fraction=0.5), ER.but("b", learning_rate=0.01)))
    (verdict,) = verdicts(collect([SPACE], runs), RunStore(tmp_path), claims=[half])
    assert verdict.evidence[0].n == 4  # the learning rate and the memory are both named: they may differ


def test_a_claim_over_places_names_those_that_are_not_compared(tmp_path: Path) -> None:
    """A claim over two places was decided by one of them, without a word."""
    space = SearchSpace(
        "places",
        RunConfig(epochs_per_task=1),
        {"strategy": ["er", "finetune"], "learning_rate": [0.001, 0.01]},
        seeds=range(4),
    )
    rows = rows_of([space]).sort_values(["seed", "learning_rate", "strategy"]).reset_index(drop=True)
    rows["auc"] = np.random.default_rng(1).uniform(0.5, 1, len(rows))
    claim = Claim("c", "C", Contrast(ER, FINETUNE, places=({"learning_rate": 0.001}, {"learning_rate": 0.01})))

    def verdict_of(kept: pd.DataFrame) -> Verdict:
        (verdict,) = verdicts(collect([space], kept), RunStore(tmp_path), claims=[claim])
        return verdict

    assert verdict_of(rows).missing == ""
    at_one = rows[rows["learning_rate"] == 0.001]
    wide = at_one.pivot_table(index="seed", columns="strategy", values="auc")
    verdict = verdict_of(at_one)
    assert verdict.evidence[0].mean == pytest.approx((wide["er"] - wide["finetune"]).mean())
    assert (verdict.evidence[0].n, verdict.missing) == (4, "no runs to compare at learning_rate = 0.01")
    verdict = verdict_of(rows[(rows["learning_rate"] == 0.001) | (rows["seed"] != 2)])
    lacks = "1 of 4 pairs of split and seed left out: it lacks runs that others have"
    assert (verdict.evidence[0].n, verdict.missing) == (3, lacks)


@pytest.mark.parametrize(
    ("contrast", "words"),
    [
        (Contrast(Side("ER", {}), Side("EWC", {}), "test_auc"), "test AUC of ER minus EWC"),
        (Contrast(Side("ER", {}), None, "test_bwt"), "test BWT of ER"),
        (Contrast(None, Side("EWC", {}), "test_bwt"), "0 minus test BWT of EWC"),
        (
            Contrast(Side("ER", {}), Side("EWC", {}), "test_auc", of_theirs="auc"),
            "test AUC of ER minus AUC of EWC",
        ),
    ],
)
def test_a_verdict_says_what_is_subtracted_from_what(contrast: Contrast, words: str) -> None:
    assert contrast_in_words(contrast) == words
