"""The gallery: docs/results/gallery.md and the numbers of docs/gallery.md follow from the store beside them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep.analysis.report.claims_section import claims_csv
from clops_sweep.store.run_store import RunStore

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
FINDINGS, PAGE = ROOT / "docs" / "gallery.md", ROOT / "docs" / "results" / "gallery.md"
FOLDER = ROOT / "docs" / "gallery"


@pytest.fixture(scope="module")
def module(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("gallery", FOLDER / "gallery.py")


@pytest.fixture(scope="module")
def gallery(module: ModuleType) -> Any:
    return module.Gallery(RunStore(module.STORE))


def test_the_page_has_the_numbers_that_follow_from_the_store(module: ModuleType, gallery: Any) -> None:
    text = PAGE.read_text("utf-8")
    for part in module.page(gallery, {}):
        assert part in text
    said = re.findall(r"\b0\.\d{3}", FINDINGS.read_text("utf-8"))
    assert said
    assert [number for number in said if number not in text] == []


def test_a_verdict_is_what_plain_pandas_and_scipy_say(gallery: Any) -> None:
    runs = gallery.store.read("runs")
    auc = runs.query("dataset == 'ptbxl' and scenario == 'time_il' and weight_replay != True")
    auc = auc.pivot_table("auc", ["split_seed", "seed"], "strategy")
    by_split = (auc["multitask"] - auc["clops"]).groupby("split_seed").mean()
    (verdict,) = [it for it in gallery.verdicts["ptbxl"] if it.claim.key == "time_il_mtl_above"]
    (found,) = verdict.evidence
    assert found.mean == pytest.approx(by_split.mean())
    assert found.n == 12
    error = by_split.std() * np.sqrt(1 / 12 + 92 / 276)  # validation people over training people
    assert found.p_for == pytest.approx(stats.t.sf(by_split.mean() / error, 11))
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 11, by_split.mean(), error))


BY_HAND = {
    ("cinc2017", "class_il_constructive"): "does not hold",
    ("cinc2017", "acquisition_costs_bwt"): "holds",
    ("mitbih", "class_il_clops_above_mtl"): "undecided",
    ("physionet2020", "domain_il_opposite_leads"): "undecided",  # two differences
    ("cinc2017", "area_as_good"): "holds",  # not less
    ("mitbih", "samples_saturate"): "undecided",  # an equality
}


def test_verdicts_follow_from_claims_csv(gallery: Any) -> None:
    """From nothing but differences, intervals and n in the file: t, one-sided p, Holm, verdict."""
    verdicts = [verdict for found in gallery.verdicts.values() for verdict in found]
    rows = pd.read_csv(io.StringIO(claims_csv(verdicts)))
    error = (rows["high"] - rows["low"]) / 2 / stats.t.ppf(0.975, rows["n"] - 1)
    above = {k: stats.t.sf((rows["difference"] - k * rows["matters"]) / error, rows["n"] - 1) for k in (-1, 0, 1)}
    below = {k: 1 - p for k, p in above.items()}
    says = [rows["says"] == it for it in ("more", "same", "not less")]
    rows["for"] = np.select(says, [above[0], np.maximum(above[-1], below[1]), above[-1]])
    rows["against"] = np.select(says, [below[1], np.minimum(1, 2 * np.minimum(above[1], below[-1])), below[0]])
    parts = rows.groupby(["dataset", "claim"], sort=False)
    claims = pd.DataFrame(
        {
            "says": parts["says"].first(),
            "verdict": parts["verdict"].first(),
            "for": parts["for"].agg(lambda p: p.max(skipna=False)),
            "against": parts["against"].min() * parts["for"].size(),
        }
    )
    for _, of_dataset in claims.groupby("dataset"):
        for side in ("for", "against"):
            ordered = of_dataset[side].dropna().clip(upper=1).sort_values(kind="stable")
            corrected = (ordered * np.arange(len(ordered), 0, -1)).cummax().clip(upper=1)
            claims.loc[corrected.index, side] = corrected
    holds, fails = claims["for"] < 0.05, claims["against"] < 0.05
    both = np.where(claims["says"] == "more", "does not hold", "holds")
    outcome = np.select([holds & fails, holds, fails], [both, "holds", "does not hold"], "undecided")
    assert claims["verdict"].tolist() == outcome.tolist()
    assert {key: claims["verdict"][key] for key in BY_HAND} == BY_HAND
