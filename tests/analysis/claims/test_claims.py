"""The paper's claims as data: what they are about is in the search spaces that are shipped, and is found there."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.claims.catalogue import (
    CLAIMS,
    CURRICULUM,
)
from clops_sweep.analysis.claims.claim_runs import FinishedRuns
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.report.write import ReportPaths
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.spaces.claims import Claim
from clops_sweep.experiment.spaces.search_space import load_spaces, shipped_space
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.store.run_store import RunStore

START = pd.Timestamp("2026-01-05", tz="UTC")


def finished(spaces: list[SearchSpace], store: RunStore, *, keep: Any = lambda config: True) -> FinishedRuns:
    return FinishedRuns(collect(spaces, rows_of(spaces, keep)), store)


def rows_of(spaces: list[SearchSpace], keep: Any = lambda config: True) -> pd.DataFrame:
    """Every run of some spaces that is kept, finished: a table `runs` without numbers."""
    configs = {r.config.identity: r.config for space in spaces for r in space.requests() if keep(r.config)}
    common = {"status": "finished", "data_hash": "x", "semantics_version": SEMANTICS_VERSION, "started_at": START}
    return pd.DataFrame([{"run_id": c.run_id("x"), **config_row(c), **common} for c in configs.values()])


@pytest.fixture(scope="module")
def paper() -> list[SearchSpace]:
    return load_spaces(shipped_space("paper"))


@pytest.fixture(scope="module")
def of_paper(paper: list[SearchSpace], tmp_path_factory: pytest.TempPathFactory) -> FinishedRuns:
    return finished(paper, RunStore(tmp_path_factory.mktemp("empty")))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_the_paper_s_search_spaces_hold_the_runs_of_every_claim(claim: Claim, of_paper: FinishedRuns) -> None:
    dataset = {"class_il": "cardiology", "time_il": "chapman", "domain_il": "physionet2020"}[claim.scenario]
    found = of_paper.of(claim, dataset)
    by_difficulty = any(side is CURRICULUM for contrast in claim.contrasts for side in (contrast.ours, contrast.theirs))
    if by_difficulty or claim.key == "penalty_keeps_beta":  # no run has decided the order; no experiment goes without
        assert found.units == 0
        assert "no finished run of" in found.contrasts[0].missing
        return
    assert (found.units, dict(found.departures)) == (5, {}), "five seeds, as the paper has them"
    for contrast in found.contrasts:
        assert {len(pairs) for pairs in contrast.pairs.values()} == {len(contrast.contrast.places)}


def test_the_condition_selects_the_runs_of_a_claim_and_no_other(
    paper: list[SearchSpace], of_paper: FinishedRuns
) -> None:
    configs = {request.config for space in paper for request in space.requests()}
    for claim in CLAIMS[::4]:
        for dataset in {config.dataset for config in configs if config.scenario == claim.scenario}:
            found = of_paper.of(claim, dataset)
            if found.units == 0:
                continue
            holds = Where(found.condition)
            selected = {config.run_id("x") for config in configs if holds(config)}
            ids = {run_id for run_id in found.run_ids if run_id is not None}
            assert ids <= selected, claim.key
            if len(claim.contrasts) == 1 and len(claim.contrasts[0].places) == 1:
                assert ids == selected, claim.key


# --- which runs -------------------------------------------------------------------------------------------------------


def space(name: str, base: RunConfig, seeds: int = 3, **axes: Any) -> SearchSpace:
    return SearchSpace(name, base, axes, range(seeds))


# --- in the report ----------------------------------------------------------------------------------------------------


def test_the_report_ends_with_the_claims_that_have_runs(report: ReportPaths, store: RunStore) -> None:
    page = report.index.read_text()
    assert page.index('<section id="claims">') > page.index('<section id="grid">')
    assert "Storing at random costs average AUC" in page
    (of_mir,) = (claim.sentence for claim in CLAIMS if claim.key == "class_il_clops_above_mir")
    assert of_mir not in page, "there is no run of MIR"
    assert '<a href="#grid-heatmap-auc">Figure with these runs.</a>' in page
    assert '<figure id="grid-heatmap-auc">' in page
    csv = pd.read_csv(report.index.parent / "tables" / "claims.csv").set_index("claim")
    cells = ["storage_order", "storage_fraction", "acquisition_fraction", "seed"]
    auc = store.read("runs").query("status == 'finished' and strategy == 'clops'").set_index(cells)["auc"]
    difference = (auc["top"] - auc["random"]).dropna().drop(index=2, level="seed")  # it lacks a place that others have
    assert len(difference) == 8
    assert csv.loc["storage_costs", "difference"] == pytest.approx(difference.mean())
    assert csv.loc["storage_costs", "n"] == 2
    assert csv.loc["storage_costs", "missing"] == "2 seeds where 3 are needed"
    assert csv.loc["class_il_clops_above_mir", "missing"].tolist() == ["no finished run of MIR"] * 2
